"""Which folded drawing a request gets: a step of the schedule, and for `auto` the readable one, evened.

Knows nothing of texts or colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.evening import even
from torchlens.plan.collapse.schedule import Path
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


def choose(path: Path, mode: str | float, band: int) -> Choice:
    """The drawing of a mode. mode: auto, max, or a level of the schedule."""
    if mode == AUTO:
        return _choose_readable(path, band)
    if mode == MAX:
        return Choice(path.board(len(path.acts)), len(path.acts), "the strongest legal fold")
    step = path.schedule().place(float(mode))
    return Choice(path.board(step, overview=float(mode) > 0), step, f"step {step} of {len(path.acts)} of the schedule")


def _choose_readable(path: Path, band: int) -> Choice:
    start = path.board(0)
    if start.count <= band:
        return Choice(start, 0, f"{start.count} nodes are within the readable band of {band}")
    fitting = (k for k, count in enumerate(path.counts) if k and count <= band)
    step = next(fitting, len(path.acts))
    board = path.board(step)
    reached = path.counts[step] <= band
    reason, before = f"the first step within the readable band of {band}", board.count
    even(board, path.kinship)
    if not reached and board.count <= band:
        reason = f"the last step, as none is within the readable band of {band}"
    elif not reached:
        alone = "what no module holds that could be a box"
        reason = f"no step reaches the band of {band}: {_count_bare(board)} of {before} nodes are {alone}"
    return Choice(board, step, f"{reason}, evened from {before} nodes" if board.count < before else reason)


def _count_bare(board: Board) -> int:
    """Nodes that stand alone, and for themselves, in no module that could be a box."""
    units = board.units
    folds = {c for candidate in units.candidates.values() for c in candidate.calls}
    held: list[bool] = []
    for c, call in enumerate(units.data.calls):
        held.append(c in folds or (call.parent is not None and held[call.parent]))
    call_of = units.data.nodes.call
    return len({thing for i, c in enumerate(call_of) if not held[c] and (thing := board.thing(i)) >= 0})
