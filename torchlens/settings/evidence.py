"""Whether a trace holds what a view is about: timings, bytes, FLOPs. Refuses with a code; decides nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from torchlens.base.errors import fail
from torchlens.records.trace_data import TraceData

if TYPE_CHECKING:
    from torchlens.settings.options import DrawOptions
    from torchlens.settings.view import View

_Column = Callable[[TraceData], Sequence[float | int | None]]

# Family of evidence -> the words for it, and the column of the trace that holds it.
FAMILIES: dict[str, tuple[str, _Column]] = {
    "timings": ("call times", lambda data: data.nodes.time_s),
    "bytes": ("output sizes", lambda data: data.nbytes),
    "flops": ("FLOP counts", lambda data: data.nodes.flops),
}
# Value source of a colour channel -> its family.
SOURCES = {"time": "timings", "bytes": "bytes", "flops": "flops"}


def check(data: TraceData, view: View | None, options: DrawOptions) -> None:
    """Refuse a view whose subject the trace does not hold. Without a view nothing is refused: the key says it.

    Only ops count: an input takes no time, and knowing that is no evidence.
    Raises: EvidenceError[view_headline_evidence_missing] when no op has the evidence the view needs,
    EvidenceError[view_source_zero_coverage] when no op has a value of another colour source put into the view.
    """
    if view is None:
        return
    for need in view.needs:
        words, column = FAMILIES[need]
        if not _covers(data, column):
            what = f"view={view.name!r} is about {words}, and no op of this trace has any"
            fail("view_headline_evidence_missing", what, view=view.name)
    if options.color_by is not None:
        words, column = FAMILIES[SOURCES[options.color_by]]
        if not _covers(data, column):
            what = f"view={view.name!r} colours by {options.color_by}, and no op of this trace has {words}"
            fail("view_source_zero_coverage", what, view=view.name, source=options.color_by)


def _covers(data: TraceData, column: _Column) -> bool:
    values = column(data)
    return any(values[op] is not None for op in data.op_indexes)
