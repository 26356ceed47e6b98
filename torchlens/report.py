"""Measurements that need a run of their own: which device time each op took, by the profiler of torch.

Every recorded call is marked in the profiler's session, so that a kernel is either known to be an op's or not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import EventLog
from torchlens.settings.capture_options import CaptureOptions, capture_options
from torchlens.verbs import trace_through

if TYPE_CHECKING:
    from torchlens.capture.functions import FunctionInfo
    from torchlens.records.trace_data import TraceData
    from torchlens.trace_view import Trace

__all__ = ["kernel_profile"]

_MARK = "torchlens op "
JOINED = "joined"
# Whether an operator computes by a kernel for the CPU, by one for all devices, or not at all.
OWN, SHARED, NONE = "own", "shared", "none"
# Operators that only make room or change a tensor's description.
_NO_WORK = frozenset({
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::resize_", "aten::as_strided_",
    "aten::set_", "aten::result_type", "aten::is_nonzero", "aten::item", "aten::_local_scalar_dense",
})  # fmt: skip


def kernel_profile(
    model: nn.Module,
    x: object = None,
    *,
    input_kwargs: Mapping[str, object] | None = None,
    input_shape: object = None,
    capture: CaptureOptions | Mapping[str, object] | None = None,
) -> Trace:
    """Record a model as `torchlens.trace` does, within a session of the profiler: a trace that knows its device times.

    `op.device_time` is the time, in nanoseconds, of the kernels that the op launched, None if it launched none. On the
    CPU the kernels are the operators that compute, without the time of those that only dispatch, describe or allocate.
    Only kernels launched within the call of an op are counted; `trace.draw(color_by="device_time")` shows them.
    capture: by default keeps no values, and lets one plain run go before. The call times of this trace include the
    profiler's own; take them from a trace without it.
    """
    options = capture_options("none", {"warmup": 1}) if capture is None else capture_options(None, capture)
    marking: list[_Marking] = []

    def recorder(log: EventLog) -> Recorder:
        marking.append(_Marking(log))
        return marking[0]

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
    with profile(activities=activities) as session:
        result = trace_through(recorder, model, x, input_kwargs, input_shape, options)
    join(result.data, session.events() or (), marking[0].nodes)
    return result


class _Marking(Recorder):
    """A recorder that names every call it makes in the profiler's session. nodes: number in the name -> trace node."""

    fast = False

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self.nodes: dict[int, int] = {}
        self._marks = 0

    def record(
        self, info: FunctionInfo, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None,
        **facts: Any,
    ) -> Any:  # fmt: skip
        """Run and log one call within a range of the profiler."""
        number, before = self._marks, self.log.op_count
        self._marks += 1

        def marked(*own: Any, **named: Any) -> Any:
            with record_function(f"{_MARK}{number}"):
                return func(*own, **named)

        out = super().record(info, marked, args, kwargs, **facts)
        if self.log.op_count > before:
            self.nodes[number] = self.log.last_op
        return out


# -- joining
def join(data: TraceData, events: Iterable[Any], nodes: Mapping[int, int]) -> None:
    """Put the kernels of a session into the columns of a trace.

    events: of `torch.profiler.profile.events()`; nodes: number of a range -> trace node. An op whose range is missing
    or there twice makes the whole join fail, and the trace says why: no time is ever guessed.
    """
    found: dict[int, list[Any]] = {number: [] for number in nodes}
    for event in events:
        if event.device_type == DeviceType.CPU and event.name.startswith(_MARK):
            found.setdefault(int(event.name.removeprefix(_MARK)), []).append(event)
    lost = [number for number in nodes if len(found[number]) != 1]
    if lost:
        data.kernel_join = f"{len(lost)} of {len(nodes)} ops were not found in the profiler's session"
        return
    on_device = any(event.kernels for (event,) in (found[number] for number in nodes) for event in _below(event))
    count = len(data.nodes)
    times, kernels = list[int | None]([None] * count), list[int | None]([None] * count)
    for number, node in nodes.items():
        durations = _device_kernels(found[number][0]) if on_device else _operators(found[number][0])
        kernels[node] = len(durations)
        times[node] = round(1000 * sum(durations)) if durations else None
    data.nodes.device_time, data.nodes.num_kernels, data.kernel_join = times, kernels, JOINED


def _below(event: Any) -> Iterator[Any]:
    """An event and all that ran within it."""
    pending = [event]
    while pending:
        current = pending.pop()
        yield current
        pending += current.cpu_children


def _device_kernels(event: Any) -> list[float]:
    """Microseconds of each kernel launched within a range."""
    return [kernel.duration for inner in _below(event) for kernel in inner.kernels]


def _operators(event: Any) -> list[float]:
    """Microseconds of each computing operator within a range, without the time of those inside it.

    One with a kernel for all devices alone may do no more than call others, and counts only if it did not.
    """
    inside = list(_below(event))[1:]
    # What called a computing operator, or called what did.
    busy: set[int] = set()
    durations: list[float] = []
    for inner in reversed(inside):  # what ran within an operator comes before it
        kernel = _kernel_of(inner.name)
        if kernel == OWN or (kernel == SHARED and id(inner) not in busy):
            durations.append(inner.self_cpu_time_total)
            busy.add(id(inner))
        if id(inner) in busy and inner.cpu_parent is not None:
            busy.add(id(inner.cpu_parent))
    return durations


@cache
def _kernel_of(name: str) -> str:
    """Which kernel of an operator computes on the CPU; a view or an allocation only describes, and computes nothing."""
    if "::" not in name or name in _NO_WORK:
        return NONE
    schemas = torch._C._jit_get_schemas_for_operator(name)
    views = [any(out.alias_info and not out.alias_info.is_write for out in schema.returns) for schema in schemas]
    if views and all(views):
        return NONE
    if _is_registered(schemas, "CPU"):
        return OWN
    return NONE if _is_registered(schemas, "CompositeImplicitAutograd") else SHARED


def _is_registered(schemas: Iterable[Any], key: str) -> bool:
    for schema in schemas:
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        try:
            if torch._C._dispatch_has_kernel_for_dispatch_key(full, key):
                return True
        except RuntimeError:  # an overload of scripts alone
            continue
    return False
