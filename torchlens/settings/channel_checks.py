"""Whether a trace holds what its channels show: refuses by the codes of the encodings, before anything is planned.

A source that recording measures only on request is refused where it was not, with the way to get it; never drawn as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchlens.base.errors import fail
from torchlens.settings.evidence import in_lockstep, shows_nonfinite, shows_saved

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData
    from torchlens.settings.options import DrawOptions

CHANNELS = ("color_by", "size_by", "stack_by")
# Sources that are measured times.
TIMES = ("time", "func_duration", "total_func_duration")
_SAVED = ("autograd_memory", "num_autograd_tensors")
_RECORD = "record with tl.trace(..., capture=tl.options.CaptureOptions({}=True))"


def has_channel(options: DrawOptions) -> bool:
    """Whether any value is mapped to the look or the place of nodes."""
    return any(getattr(options, name) is not None for name in CHANNELS)


def sources_of(options: DrawOptions) -> set[str]:
    """Names of the values that colour or size nodes; functions have none."""
    return {source for source in (options.color_by, options.size_by) if isinstance(source, str)}


def shows_times(options: DrawOptions) -> bool:
    """Whether a drawing shows measured times, in colours, sizes or rows."""
    rows = options.node_label_fields or ()
    return not sources_of(options).isdisjoint(TIMES) or "time" in rows or options.node_style == "profiling"


def measures(drawn: Sequence[DrawOptions]) -> tuple[bool, bool]:
    """Whether drawings with these options need what autograd keeps, and statistics of outputs, to be measured."""
    saved = any(shows_saved(options) or not sources_of(options).isdisjoint(_SAVED) for options in drawn)
    return saved, any("magnitude" in sources_of(options) or shows_nonfinite(options) for options in drawn)


def check_channels(data: TraceData, options: DrawOptions) -> None:
    """Refuse channels that this trace cannot serve.

    Raises: InvalidArgumentError[encoding_evidence_missing, device_time_unavailable, stack_by_auto_underivable].
    """
    names = sources_of(options)
    if "grad_norm" in names:
        what = "no gradient was recorded: a trace holds one forward pass"
        fail("encoding_evidence_missing", what, fix="use another source", source="grad_norm")
    if "magnitude" in names and not any(data.nodes.stats[i] is not None for i in data.op_indexes):
        what = "magnitude is about the values of outputs, and none was kept or measured"
        fix = f'{_RECORD.format("out_stats")}, or with save="all"'
        fail("encoding_evidence_missing", what, fix=fix, source="magnitude")
    for name in _SAVED:
        if name in names and data.saved_for_backward is None:
            what = f"{name} was not measured"
            fail("encoding_evidence_missing", what, fix=_RECORD.format("saved_for_backward"), source=name)
    if "device_time" in names and data.kernel_join != "joined":
        cause = data.kernel_join or "no profiler session was on while this trace was recorded"
        fail("device_time_unavailable", cause, source="device_time")
    if options.stack_by == "auto" and not in_lockstep(data):
        fail("stack_by_auto_underivable", _why_not_aligned(data))


def _why_not_aligned(data: TraceData) -> str:
    if not any(data.layers[data.nodes.layer[i]].num_passes > 1 for i in data.op_indexes):
        return "no op of this trace ran more than once, so there is nothing to align"
    return "the repeated ops do not run in lockstep: an earlier pass of one starts after a later pass of another"
