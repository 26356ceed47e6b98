"""Whether a trace holds what a view or an option is about: timings, bytes, FLOPs, what autograd kept.

Refuses a view without its subject, and names the wishes that are left out. Decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchlens.base.errors import fail, warn
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
# Value source of a colour channel -> its family; the others belong to none.
SOURCES = {
    "time": "timings", "func_duration": "timings", "total_func_duration": "timings",
    "bytes": "bytes", "activation_memory": "bytes", "total_activation_memory": "bytes",
    "flops": "flops", "flops_forward": "flops", "total_flops_forward": "flops",
}  # fmt: skip


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
    if isinstance(options.color_by, str) and options.color_by in SOURCES:
        words, column = FAMILIES[SOURCES[options.color_by]]
        if not _covers(data, column):
            what = f"view={view.name!r} colours by {options.color_by}, and no op of this trace has {words}"
            fail("view_source_zero_coverage", what, view=view.name, source=options.color_by)


def shows_saved(options: DrawOptions) -> bool:
    """Whether a drawing says what ops kept for the backward pass: recording measures that only on request."""
    return options.show_saved_for_backward or "saved" in (options.node_label_fields or ())


class Lack(NamedTuple):
    """A wish that the trace cannot meet: in the words of a caption, and what would help."""

    what: str
    fix: str


def lacking(data: TraceData, options: DrawOptions) -> list[Lack]:
    """The wishes that are left out for want of evidence. The figure says so, and `warn_of` the caller."""
    found: list[Lack] = []
    if shows_saved(options):
        if data.saved_for_backward is None:
            fix = "record with tl.trace(..., capture=tl.options.CaptureOptions(saved_for_backward=True))"
            found.append(Lack("saved for backward: not measured", fix))
        elif not data.saved_for_backward and not _has_gradients(data):
            found.append(Lack("saved for backward: recorded without gradients", "record outside torch.no_grad()"))
    if options.show_containers and not any(
        path for kind, path in zip(data.nodes.kind, data.nodes.path, strict=True) if kind == "output"
    ):
        found.append(Lack("container labels: the result is no container", "leave show_containers unset"))
    return found


def warn_of(data: TraceData, options: DrawOptions) -> None:
    """Warn [view_secondary_degraded] of every wish that is left out."""
    for lack in lacking(data, options):
        warn("view_secondary_degraded", lack.what, fix=lack.fix)


def _has_gradients(data: TraceData) -> bool:
    return any(spec.requires_grad for i in data.op_indexes for spec in data.nodes.outs[i])


def _covers(data: TraceData, column: _Column) -> bool:
    values = column(data)
    return any(values[op] is not None for op in data.op_indexes)
