"""Which folded drawing a request gets: a step of the schedule, and for `auto` the readable one, evened.

Evening only ever folds further: it boxes what stands open beside boxes of its size, and draws a row of boxes that are
alike as one. Knows nothing of texts or colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.runs import Kinship
from torchlens.plan.collapse.schedule import Path
from torchlens.plan.collapse.segments import like_segments
from torchlens.plan.collapse.units import Candidate
from torchlens.records.trace_data import TraceData

AUTO, MAX, NONE = "auto", "max", "none"
# Traces of so many records are left alone up to the larger band.
SMALL_TRACE, SMALL_BAND, BAND = 100, 50, 25


@dataclass(frozen=True, slots=True)
class Choice:
    """A folded drawing. step: of the schedule that it starts from; reason: why this one, in words."""

    board: Board
    step: int
    reason: str


def readable_band(data: TraceData, members: Sequence[int] | None = None) -> int:
    """Nodes that fit a readable page, by the size of the trace. members: what a focused figure is about."""
    kinds = data.nodes.kind if members is None else [data.nodes.kind[i] for i in members]
    records = sum(kind != "constant" for kind in kinds)
    return SMALL_BAND if records <= SMALL_TRACE else BAND


def choose(path: Path, mode: str | float, band: int, *, evens: bool = True) -> Choice:
    """The drawing of a mode. mode: auto, max, or a level of the schedule; evens: whether auto folds stray modules."""
    if mode == AUTO:
        return _choose_readable(path, band, evens)
    if mode == MAX:
        return Choice(path.board(len(path.acts)), len(path.acts), "the strongest legal fold")
    step = path.schedule().place(float(mode))
    return Choice(path.board(step, overview=float(mode) > 0), step, f"step {step} of {len(path.acts)} of the schedule")


def _choose_readable(path: Path, band: int, evens: bool) -> Choice:
    start = path.board(0)
    if start.count <= band:
        return Choice(start, 0, f"{start.count} nodes are within the readable band of {band}")
    fitting = (k for k, count in enumerate(path.counts) if k and count <= band)
    step = next(fitting, len(path.acts))
    board = path.board(step)
    reached = path.counts[step] <= band
    reason = f"the first step within the readable band of {band}" if reached else f"no step reaches the band of {band}"
    before = board.count
    if evens:
        even(board, path.kinship)
    return Choice(board, step, f"{reason}, evened from {before} nodes" if board.count < before else reason)


def even(board: Board, kinship: Kinship) -> None:
    """Box stray open modules beside boxes, and join rows of boxes that are alike, until nothing changes."""
    changed = True
    while changed:
        beside = _Neighbours(board)
        strays = [candidate for candidate in _open(board) if candidate.hides <= beside.smallest(candidate.module)]
        for candidate in strays:
            board.box(candidate.calls)
        rows = like_segments(board, kinship)
        for capsule in rows:
            board.join(capsule)
        changed = bool(strays or rows)


def _open(board: Board) -> list[Candidate]:
    found = [c for c in board.units.candidates.values() if not all(board.covered[call] for call in c.calls)]
    return sorted(found, key=lambda candidate: candidate.calls[0])


class _Neighbours:
    """The boxes beside a module: its siblings in the tree of modules, and what lies one level inside a sibling."""

    def __init__(self, board: Board) -> None:
        self._modules = board.units.data.modules
        self._siblings: dict[int | None, int] = {}
        # By grandparent: per parent the least that a box hides.
        self._inside: dict[int | None, dict[int, int]] = {}
        sizes: dict[int, int] = {}
        for c in board.visible_boxes():
            module = board.units.data.calls[c].module
            sizes[module] = sizes.get(module, 0) + board.units.hides[c]
        for module, hides in sizes.items():
            above = self._modules[module].parent
            self._siblings[above] = min(hides, self._siblings.get(above, hides))
            if above is not None:
                rows = self._inside.setdefault(self._modules[above].parent, {})
                rows[above] = min(hides, rows.get(above, hides))

    def smallest(self, module: int) -> int:
        """Units that the smallest box beside a module hides, 0 if there is none."""
        above = self._modules[module].parent
        found = [hides for sibling, hides in self._inside.get(above, {}).items() if sibling != module]
        if above in self._siblings:
            found.append(self._siblings[above])
        return min(found, default=0)
