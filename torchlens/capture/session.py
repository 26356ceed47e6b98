"""One recording: everything entered and left in one place, also when the forward raises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from torchlens.base.errors import fail
from torchlens.capture import callsite, finish, patches
from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import EventLog
from torchlens.capture.functions import RECORD, FunctionInfo
from torchlens.capture.modules import ModuleTable
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import argument_leaves, leaves, named_forward
from torchlens.records.provenance import InputProvenance
from torchlens.records.trace_data import TraceData


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
    keep_values: bool,
    provenance: InputProvenance | None = None,
) -> tuple[Recording, BaseException | None]:
    """Run the model once and record it.

    Returns the recording and the exception that ended the forward, None if it returned; a partial recording holds
    what ran before. Random streams, flags, hooks and the caller's objects are as after a plain call.
    """
    if patches.is_active():
        fail("trace_nested", "a trace of this thread is already running")
    session = Session(model, keep_values=keep_values)
    with patches.watching(session):
        result, error = session.run(args, dict(kwargs))
        data = finish.build(session.recorder, model, error, provenance or InputProvenance(), keep_values=keep_values)
    return Recording(data, session.log.payloads, result if keep_values else None), error


class Session:
    """Watches one forward pass: module boundaries and script calls here, torch functions in the recorder."""

    def __init__(self, model: nn.Module, *, keep_values: bool) -> None:
        self.model = model
        self.modules = ModuleTable(model)
        self.log = EventLog(self.modules, Payloads() if keep_values else None)
        self.recorder = Recorder(self.log)
        self._root_pending = False

    def run(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, BaseException | None]:
        """Run the forward; outputs become nodes only if it returned."""
        log, result, error = self.log, None, None
        root = self.modules.enter(self.model, 0, 0, ())
        for path, tensor in argument_leaves(named_forward(self.model), args, kwargs):
            log.add_input(path, tensor)
        self._root_pending = True
        try:
            with self.recorder:
                result = self.model(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - handed to the caller, who raises it again
            error = raised
        if error is None:
            if not self.modules.is_done(root):  # a class whose own __call__ never reaches nn.Module's
                log.leave_module(root, result)
            for path, tensor in leaves(result):
                log.add_output(path, tensor)
        self.modules.leave(root, len(log.events))
        return result, error

    def run_module(
        self, plain: Callable[..., object], module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """One module call: its frame is closed whatever happens inside."""
        log, modules = self.log, self.modules
        if self._root_pending and module is self.model:
            self._root_pending = False
            out = plain(module, *args, **kwargs)
            log.leave_module(0, out)
            return out
        call = modules.enter(module, len(log.events), log.op_count, callsite.walk(sys._getframe(2)))
        try:
            out = plain(module, *args, **kwargs)
            log.leave_module(call, out)
        finally:
            modules.leave(call, len(log.events))
        return out

    def run_script(
        self, plain: Callable[..., object], script: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """One opaque op per script call; the arguments and results are ordinary tensors, so no arrow is lost."""
        name = str(getattr(script, "name", "script"))
        info = FunctionInfo(_script, "script" if name == "forward" else name, RECORD, False)
        params = self.modules.params_below_current() if isinstance(script, torch._C.ScriptMethod) else ()

        def call(*inner: object, **named: object) -> object:
            return plain(script, *inner, **named)

        with torch._C.DisableTorchFunction():
            return self.recorder.record(info, call, args, kwargs, params)


def _script(*args: object, **kwargs: object) -> object:
    """What stands for any script call where only names of arguments are asked for."""
    raise NotImplementedError
