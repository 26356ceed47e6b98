"""One recording, whole: everything entered and left in one place, also when the forward raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from torchlens.analysis import finish
from torchlens.base.errors import fail
from torchlens.capture import patches
from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import EventLog
from torchlens.capture.memory import registered_modules
from torchlens.capture.session import Session
from torchlens.capture.values import Payloads
from torchlens.capture.warmup import seeded, warm_up
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.records.trace_data import TraceData
from torchlens.settings.capture_options import CaptureOptions


@dataclass(slots=True)
class Recording:
    """What one run left behind. payloads and result are None when only metadata was recorded."""

    data: TraceData
    payloads: Payloads | None
    result: object


def record(
    model: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    *,
    options: CaptureOptions,
    provenance: InputProvenance | None = None,
    recorder: Callable[[EventLog], Recorder] = Recorder,
) -> tuple[Recording, list[BaseException]]:
    """Run the model once and record it. recorder: makes what sees the calls.

    Returns the recording, which holds what ran before if the forward raised, and a list with the exception that ended
    it, to be emptied by whoever raises it: a frame that kept the exception would tie it, and all that its traceback
    holds, into a cycle. Random streams, flags, hooks and the caller's objects are as after a plain call.
    Raises CaptureError[lazy_uninitialized] before any forward; InvalidArgumentError[save_predicate_failed] after one
    that went through, if the predicate raised.
    """
    lazy = _lazy_parameters(model)
    warm_up(model, args, kwargs, options.warmup)
    with torch._C.DisableTorchFunction():
        session = Session(model, options, recorder)
    with patches.watching(session):
        with seeded(options.random_seed):
            result, raised = session.run(args, dict(kwargs))
        with torch._C.DisableTorchFunction():
            outcome = Outcome(not raised, _describe(raised), options.keeps_values)
            data = finish.build(session.recorder, model, outcome, provenance or InputProvenance())
            data.provenance.lazy_transitions = tuple(name for name, param in lazy.items() if not is_lazy(param))
            session.complete(data)
    if session.selection is not None and session.log.payloads is not None:
        session.selection.settle(data, session.log.payloads)
    return Recording(data, session.log.payloads, result if options.keeps_values else None), raised


def _lazy_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters without a shape yet, which a forward gives them as in a plain call; a lazy buffer is refused."""
    modules = registered_modules(model)
    for prefix, module in modules:
        for name, buffer in module._buffers.items():
            if buffer is not None and is_lazy(buffer):
                address = f"{prefix}.{name}" if prefix else name
                fail(
                    "lazy_uninitialized", f"the buffer {address} has no shape before the first forward", address=address
                )
    return {
        f"{prefix}.{name}" if prefix else name: param
        for prefix, module in modules
        for name, param in module._parameters.items()
        if param is not None and is_lazy(param)
    }


def _describe(raised: list[BaseException]) -> str:
    if not raised:
        return ""
    name = type(raised[0]).__name__
    try:
        return f"{name}: {raised[0]}"
    except Exception:  # noqa: BLE001 - the text of a user's exception is the user's code
        return name
