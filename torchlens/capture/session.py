"""One recording: everything entered and left in one place, also when the forward raises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from torchlens.base.errors import fail
from torchlens.capture import finish, patches
from torchlens.capture.advisories import about_call
from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import EventLog
from torchlens.capture.functions import RECORD, FunctionInfo
from torchlens.capture.modules import ModuleTable
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import argument_leaves, leaves, named_forward
from torchlens.records.provenance import InputProvenance, Outcome
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
) -> tuple[Recording, list[BaseException]]:
    """Run the model once and record it.

    Returns the recording, which holds what ran before if the forward raised, and a list with the exception that ended
    it, to be emptied by whoever raises it: a frame that kept the exception would tie it, and all that its traceback
    holds, into a cycle. Random streams, flags, hooks and the caller's objects are as after a plain call.
    """
    if patches.is_active():
        fail("trace_nested", "a trace of this thread is already running")
    with torch._C.DisableTorchFunction():
        session = Session(model, keep_values=keep_values)
    with patches.watching(session):
        result, raised = session.run(args, dict(kwargs))
        with torch._C.DisableTorchFunction():
            outcome = Outcome(not raised, _describe(raised), keep_values, list(session.advisories))
            data = finish.build(session.recorder, model, outcome, provenance or InputProvenance())
    return Recording(data, session.log.payloads, result if keep_values else None), raised


def _describe(raised: list[BaseException]) -> str:
    if not raised:
        return ""
    name = type(raised[0]).__name__
    try:
        return f"{name}: {raised[0]}"
    except Exception:  # noqa: BLE001 - the text of a user's exception is the user's code
        return name


class Session:
    """Watches one forward pass: module boundaries and script calls here, torch functions in the recorder."""

    def __init__(self, model: nn.Module, *, keep_values: bool) -> None:
        self.model = model
        self.modules = ModuleTable(model)
        self.log = EventLog(self.modules, Payloads() if keep_values else None)
        self.recorder = Recorder(self.log)
        self._root_pending = False
        # Ordered, each once.
        self.advisories: dict[str, None] = {}

    def run(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, list[BaseException]]:
        """Run the forward; outputs become nodes only if it returned. Gives its result, and what it raised."""
        log, result = self.log, None
        raised: list[BaseException] = []
        root = self.modules.enter(self.model, 0, 0, ())
        with torch._C.DisableTorchFunction():
            for path, tensor in argument_leaves(named_forward(self.model), args, kwargs):
                log.add_input(path, tensor)
        self._root_pending = True
        try:
            with self.recorder:
                result = self.model(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it again
            raised.append(error)
        with torch._C.DisableTorchFunction():
            if not raised and not self.modules.is_done(root):  # a class whose own __call__ never reaches nn.Module's
                log.leave_module(root, result)
            if not raised:
                log.add_outputs(list(leaves(result)))
        self.modules.leave(root, len(log.events))
        return result, raised

    def run_module(
        self, plain: Callable[..., object], module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """One module call: its frame is closed whatever happens inside."""
        log, modules = self.log, self.modules
        if note := about_call(module, args, kwargs):
            self.advisories[note] = None
        if self._root_pending and module is self.model:
            self._root_pending = False
            out = plain(module, *args, **kwargs)
            log.leave_module(0, out)
            return out
        call = modules.enter(module, len(log.events), log.op_count, self.recorder.sites.walk(sys._getframe(2)))
        if modules.fresh:
            log.claim_state()
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
            return self.recorder.record(info, call, args, kwargs, params=params)


def _script(*args: object, **kwargs: object) -> object:
    """What stands for any script call where only names of arguments are asked for."""
    raise NotImplementedError
