"""The page of a view that wants a number of nodes: the coarsest fold inside its band, or nothing if everything fits.

Picks among steps of the schedule, or among levels of the module tree where there is too much to plan. Knows a band,
how repeats are folded and whose colours must stay; no option and no view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchlens.base.errors import warn
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.cut import Cut
from torchlens.plan.collapse.schedule import Path, start_path
from torchlens.plan.collapse.units import Units
from torchlens.plan.graph import FOLD
from torchlens.records.trace_data import TraceData
from torchlens.settings.deferred import Band

# Above so many units a level of the module tree is chosen.
PLANNED_UNITS = 2000
# Share of the coloured values that stay on the page.
SHARE = 0.80

Column = Callable[[TraceData], Sequence[float | int | None]]


class Fit(NamedTuple):
    """A page. step: of the path it was picked from, path: None for a level of the module tree, which depth is."""

    board: Board
    step: int
    path: Path | None
    depth: int | None
    reason: str


class Values:
    """Which values of a colour channel a folded drawing still shows.

    column: the values, None if all ops are taken to have one; sums: whether a box has the sum over its ops.
    """

    def __init__(self, units: Units, column: Column | None, *, sums: bool) -> None:
        data = units.data
        values: Sequence[float | int | None] = [0] * len(data.nodes) if column is None else column(data)
        ops = [i for i in data.op_indexes if units.base.selection.used[i]]
        self._units, self._sums = units, sums
        self._known = [i for i in ops if values[i] is not None]
        self._blank = [i for i in ops if values[i] is None and not data.nodes.synthetic[i]]

    def share(self, board: Board) -> float:
        """The values that are visible, alone or in the sum of a box; 1 if there are none."""
        cut = board.cut()
        blank = {self._place(cut, i) for i in self._blank}
        visible = sum(self._is_visible(cut, i, blank) for i in self._known)
        return visible / len(self._known) if self._known else 1.0

    def _place(self, cut: Cut, node: int) -> tuple[str, int] | None:
        """What an op is drawn in, None if as itself."""
        call = self._units.data.nodes.call[node]
        box, capsule = cut.boxed[call], cut.capsule_of(node, call)
        if capsule is not None:
            return "capsule", capsule
        if box is None or (self._units.kept[box] == node and box not in cut.whole):
            return None
        return "box", box

    def _is_visible(self, cut: Cut, node: int, blank: set[tuple[str, int] | None]) -> bool:
        place = self._place(cut, node)
        if place is None:
            return True
        folded = place[0] == "capsule" and cut.capsules[place[1]].kind == FOLD
        return self._sums and not folded and place not in blank


class _Option(NamedTuple):
    nodes: int
    number: int
    board: Callable[[], Board]


def fit(
    units: Units,
    band: Band,
    folds: bool | None,
    values: Values | None,
    plan: Callable[[bool | None], Path | None],
    *,
    optional: bool = False,
) -> Fit:
    """The page of a band.

    folds: as `fold_repeats=`; values: of a colour channel that is on; plan: the schedule, None if it is too much work;
    optional: whether repeats stay open where folding them would hide too many values.
    Warns: view_budget_band_missed.
    """
    start = start_path(units, folds)
    board = start.board(0)
    if folds and optional and values is not None and values.share(board) < SHARE:
        folds, start = False, start_path(units, False)
        board = start.board(0)
    if board.count <= band.high:
        return Fit(board, 0, start, None, f"{board.count} nodes are no more than {band.high}")
    path = plan(folds) if units.total <= PLANNED_UNITS else None
    if path is not None:
        options = [_Option(n, k, _maker(path, k)) for k, n in enumerate(path.counts) if k]
    else:
        options = _levels(units, start)
    found, fits = _pick(options, band, values)
    if not fits:
        _warn(units, band, board.count if found is None else found.nodes, colored=values is not None)
    if found is None:
        return Fit(board, 0, start, None, "nothing can be folded")
    how = f"depth {found.number}" if path is None else f"step {found.number} of {len(path.acts)} of the schedule"
    reason = f"{how}, the coarsest within {band.low} to {band.high} nodes"
    if not fits:
        reason = f"{how}, the nearest to {band.low} to {band.high} nodes"
    return Fit(found.board(), found.number, path, found.number if path is None else None, reason)


def _maker(path: Path, step: int) -> Callable[[], Board]:
    return lambda: path.board(step)


def _levels(units: Units, start: Path) -> list[_Option]:
    """Per level of the module tree, the page on which every module from there on is a box."""
    levels = units.base.levels

    def board(depth: int) -> Board:
        made = start.board(0)
        for candidate in sorted(units.candidates.values(), key=lambda candidate: levels[candidate.calls[0]]):
            made.box(c for c in candidate.calls if levels[c] >= depth)
        return made

    deepest = max((levels[c] for candidate in units.candidates.values() for c in candidate.calls), default=0)
    return [_Option(board(k).count, k, lambda k=k: board(k)) for k in range(1, deepest + 1)]


def _pick(options: Sequence[_Option], band: Band, values: Values | None) -> tuple[_Option | None, bool]:
    """The option with the fewest nodes inside the band that keeps its values, else the nearest one, and which it is."""
    inside = [option for option in options if band.low <= option.nodes <= band.high]
    for option in sorted(inside, key=lambda option: (option.nodes, -option.number)):
        if values is None or values.share(option.board()) >= SHARE:
            return option, True

    def distance(option: _Option) -> tuple[int, int, int]:
        outside = max(band.low - option.nodes, option.nodes - band.high, 0)
        return outside, abs(option.nodes - band.target), option.number

    return min(options, key=distance, default=None), False


def _warn(units: Units, band: Band, count: int, *, colored: bool) -> None:
    kept = f" and keeps {SHARE:.0%} of the coloured values on it" if colored else ""
    page = f"a page of {band.low} to {band.high} nodes{kept}"
    what = f"no fold of this model fills {page}: {count} of {units.total} are drawn"
    warn("view_budget_band_missed", what, nodes=count, total=units.total)
