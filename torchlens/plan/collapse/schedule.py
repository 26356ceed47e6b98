"""The monotone schedule: which box or fold comes next, from the full drawing to the strongest legal one.

Modules are boxed from the outside in, those that hide most first; a later step never shows what an earlier one hid.
Each step has a level between 0 and 1, so that equal steps of the level fold by equal ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from torchlens.base.units import counted
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.cut import Capsule
from torchlens.plan.collapse.evening import even
from torchlens.plan.collapse.runs import CHAIN, FAN, LEAST_RUN, Kinship, Run
from torchlens.plan.collapse.segments import bundles, condense
from torchlens.plan.collapse.units import Candidate, Units
from torchlens.plan.graph import FOLD

# A run that hides at least this share of the drawing folds as soon as its last member is a box.
LARGE_RUN = 0.50
# The step of outputs alike that are one node wherever anything may be folded, and its level: the least above 0.
BUNDLE, LEAST_LEVEL = "bundle outputs", 1e-6
Act = Callable[[Board], object]


def _no_check() -> None:
    """Let the planner run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. t: its level; target_count: nodes that the level asks for; visible_count: nodes drawn; event: what it
    did.
    """

    t: float
    target_count: int
    visible_count: int
    event: str
    _order: tuple[str, ...] = field(repr=False)
    _boxed: int = field(repr=False)

    @property
    def collapsed_addresses(self) -> tuple[str, ...]:
        """The modules that are boxes or have become part of one, in the order of the steps."""
        return self._order[: self._boxed]


@dataclass(frozen=True, slots=True)
class CollapseSchedule:
    """The steps of a drawing, from everything drawn to the strongest fold."""

    steps: tuple[Step, ...]

    def at(self, t: float) -> Step:
        """The step that `collapse=t` draws: the last one whose level is not above t."""
        return self.steps[self.place(t)]

    def place(self, t: float) -> int:
        """Number of that step."""
        return max(k for k, step in enumerate(self.steps) if step.t <= t or k == 0)

    def level_of(self, place: int) -> float:
        """The level with the fewest digits, two at least, that draws a step: what a caption can print."""
        exact = self.steps[place].t
        for digits in range(2, 6):
            level = math.ceil(exact * 10**digits) / 10**digits
            if level <= 1 and self.place(level) == self.place(exact):
                return level
        return exact


@dataclass(slots=True)
class Path:
    """The steps as they can be gone again. acts: per step what to do to the drawing; fixed: what is done before;
    modules: those boxed in the end, in order; counts and boxed: per step, the nodes drawn and how many of the modules.
    """

    units: Units
    kinship: Kinship
    fixed: list[Act]
    modules: tuple[int, ...] = ()
    acts: list[tuple[str, Act]] = field(default_factory=list[tuple[str, Act]])
    counts: list[int] = field(default_factory=list[int])
    boxed: list[int] = field(default_factory=list[int])

    def board(self, step: int, *, overview: bool = True) -> Board:
        """The drawing after a step; 0 is the full one. overview: whether outputs alike are drawn as one."""
        board = Board(self.units, bundles(self.units) if overview else ())
        for act in self.fixed:
            act(board)
        for _, act in self.acts[:step]:
            act(board)
        return board

    def schedule(self) -> CollapseSchedule:
        """The steps in numbers and names."""
        full, last = self.counts[0], self.counts[-1]
        order = tuple(_address(self.units, module) for module in self.modules)
        steps = [Step(0.0, full, full, "none", order, self.boxed[0])]
        for k, (event, _) in enumerate(self.acts, 1):
            t = 1.0 if k == len(self.acts) else level(full, self.counts[k], last)
            t = LEAST_LEVEL if event == BUNDLE else t
            steps.append(Step(t, round(full * (last / full) ** t), self.counts[k], event, order, self.boxed[k]))
        return CollapseSchedule(tuple(steps))


def level(full: int, count: int, last: int) -> float:
    """The level of a step that shows so many nodes: equal steps of it fold by equal ratios, 0 is full and 1 the last.

    Example: level(44, 20, 9) == 0.496839
    """
    return round(math.log(full / count) / math.log(full / last), 6) if last < full else 0.0


def one_step(units: Units) -> CollapseSchedule:
    """The schedule of a trace that is not planned: everything drawn."""
    return CollapseSchedule((Step(0.0, units.total, units.total, "none", (), 0),))


def make_path(units: Units, band: int, fold_repeats: bool | None, check: Callable[[], None] = _no_check) -> Path:
    """Plan all steps. band: nodes that fit a readable page; fold_repeats: None folds runs where the steps need it,
    True all of them from the start, False none; check: called before each step, and may raise.
    """
    return _Planner(units, band, fold_repeats, check).plan()


def make_fallback(units: Units, band: int, fold_repeats: bool | None) -> Path:
    """Plan the steps of the simple planner: boxes from the top, the largest first, then folds; no segments."""
    return _Planner(units, band, fold_repeats).plan_simply()


def start_path(units: Units, fold_repeats: bool | None) -> Path:
    """A schedule without steps: what is done before the first one."""
    kinship = Kinship(units)
    path = Path(units, kinship, _fold_all(units, kinship) if fold_repeats else [])
    start = path.board(0, overview=False)
    path.counts.append(start.count)
    path.boxed.append(len(start.modules))
    return path


class _Planner:
    def __init__(
        self, units: Units, band: int, fold_repeats: bool | None, check: Callable[[], None] = _no_check
    ) -> None:
        self._units, self._band, self._folds, self._check = units, band, fold_repeats is not False, check
        self._path = start_path(units, fold_repeats)
        self._kinship = self._path.kinship
        self._board = self._path.board(0)
        if self._board.count < self._path.counts[0]:  # outputs of modules that are boxes from the start
            self._do(BUNDLE, lambda _: None)

    def plan(self) -> Path:
        chosen = sorted(self._units.outermost(), key=self._units.order)
        runs = self._whole_runs(chosen)
        self._box_all(chosen, [run for run in runs if self._is_large(run)])
        self._fold_small(runs)
        self._box_dominant()
        self._condense()
        return self._finish()

    def plan_simply(self) -> Path:
        levels = self._units.base.levels
        chosen = self._units.outermost()
        for candidate in sorted(chosen, key=lambda c: (levels[c.calls[0]], *self._units.order(c))):
            if self._board.count <= self._band:
                break
            self._box(candidate)
        self._box_dominant()
        self._fold_small(self._whole_runs(chosen))
        return self._finish()

    def _finish(self) -> Path:
        self._path.modules = tuple(self._board.modules)
        return self._path

    def _do(self, event: str, act: Act) -> None:
        self._check()
        act(self._board)
        self._path.acts.append((event, act))
        self._path.counts.append(self._board.count)
        self._path.boxed.append(len(self._board.modules))

    def _box(self, candidate: Candidate) -> None:
        board = self._board
        if not all(board.covered[c] for c in candidate.calls) and board.shrinks(candidate.calls):
            self._do(f"box {_address(self._units, candidate.module)}", lambda board: board.box(candidate.calls))

    def _box_all(self, chosen: Sequence[Candidate], large: Sequence[Run]) -> None:
        """Box the outermost candidates, and fold each large run as soon as all of it is boxes."""
        place = {candidate.module: k for k, candidate in enumerate(chosen)}
        due: dict[int, list[Run]] = {}
        for run in large:
            due.setdefault(max(place.get(module, 0) for module in run.modules), []).append(run)
        for k, candidate in enumerate(chosen):
            self._box(candidate)
            for run in due.get(k, ()):
                if all(self._board.is_free(c) for c in run.calls):
                    self._do(f"fold {_span(self._units, run)}", partial(fold, run=run))

    def _fold_small(self, runs: Sequence[Run]) -> None:
        """Fold further runs, the longest first, while too much is left."""
        for run in sorted(runs, key=lambda run: (-len(run.modules), run.rows[0][0])):
            if self._board.count > self._band and all(self._board.is_free(c) for c in run.calls):
                self._do(f"fold {_span(self._units, run)}", partial(fold, run=run))

    def _whole_runs(self, chosen: Sequence[Candidate]) -> list[Run]:
        """The runs that will be boxes with nothing beside them."""
        if not self._folds:
            return []
        drawn = (c for c, box in enumerate(self._units.base.boxed) if box == c)
        legal = {c for c in (*drawn, *(c for one in chosen for c in one.calls)) if self._units.kept[c] is None}
        return _foldable(self._kinship.runs(legal.__contains__, alike=True, links=(CHAIN, FAN)))

    def _is_large(self, run: Run) -> bool:
        return sum(self._units.hides[c] for c in run.calls) >= LARGE_RUN * self._units.total

    def _box_dominant(self) -> None:
        """Box what hides most of the drawing, from the inside out, while too much is left."""
        units = self._units
        dominant = [candidate for candidate in units.candidates.values() if units.is_dominant(candidate.module)]
        for candidate in sorted(dominant, key=lambda candidate: (candidate.hides, -candidate.calls[0])):
            if self._board.count <= self._band:
                break
            self._box(candidate)

    def _condense(self) -> None:
        """The strongest legal fold: rows of boxes and chains of ops become segments.

        Strays are evened out first where that alone leaves less and `auto` would do so too.
        """
        self._check()
        before, joined, stray = self._board.count, condense(self._board, self._kinship, self._band), False
        if self._path.counts[0] > self._band:
            evened = self._path.board(len(self._path.acts))
            even(evened, self._kinship)
            stray = evened.count < self._board.count
            if stray:
                self._board, joined = evened, condense(evened, self._kinship, self._band)
        if self._board.count < before:
            event = ", ".join([*(["even"] if stray else []), *([counted(len(joined), "segment")] if joined else [])])
            self._path.acts.append((event, partial(_condense, kinship=self._kinship if stray else None, rows=joined)))
            self._path.counts.append(self._board.count)
            self._path.boxed.append(len(self._board.modules))


def _condense(board: Board, kinship: Kinship | None, rows: Sequence[Capsule]) -> None:
    """kinship: where strays are evened out first."""
    if kinship is not None:
        even(board, kinship)
    for capsule in rows:
        board.join(capsule)


def fold(board: Board, run: Run) -> None:
    """Draw the first member of a run as it is, and all others as one node."""
    rows = [list(zip(*run.rows, strict=True))] if board.units.base.rolled else [[(c,) for c in row] for row in run.rows]
    for head, *rest in rows:
        calls = tuple(sorted(c for member in rest for c in member))
        board.join(Capsule(FOLD, calls, (), tuple(head)))


def _fold_all(units: Units, kinship: Kinship) -> list[Act]:
    """Every run of alike modules that no other run contains, each member one box for the whole module."""
    legal = {c for candidate in units.candidates.values() for c in candidate.calls}
    runs = _foldable(kinship.runs(legal.__contains__, alike=True, links=(CHAIN, FAN)))
    return [partial(_fold_whole, run=run) for run in sorted(runs, key=lambda run: units.base.levels[run.rows[0][0]])]


def _fold_whole(board: Board, run: Run) -> None:
    if not any(board.covered[c] for c in run.calls):
        board.box(run.calls, whole=True)
        fold(board, run)


def _foldable(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if len(run.modules) >= LEAST_RUN]


def _address(units: Units, module: int) -> str:
    return units.data.modules[module].address or "self"


def _span(units: Units, run: Run) -> str:
    return f"{_address(units, run.modules[0])} +{len(run.modules) - 1} more"
