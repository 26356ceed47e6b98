"""Watching one forward pass: module boundaries, script calls and doors, also when the forward raises."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import nn

from torchlens.capture.advisories import SHOWN, about_call, about_classes, about_reads, about_run, advisory
from torchlens.capture.dispatch import Recorder
from torchlens.capture.doors import Doorkeeper
from torchlens.capture.event_log import EventLog
from torchlens.capture.forwards import forward_classes
from torchlens.capture.functions import RECORD, FunctionInfo
from torchlens.capture.measures import Measures
from torchlens.capture.modules import ModuleTable
from torchlens.capture.selection import select
from torchlens.capture.tensors import changed, undispatched
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import argument_leaves, leaves, named_forward
from torchlens.records.trace_data import TraceData
from torchlens.settings.capture_options import CaptureOptions


class Session:
    """Watches one forward pass: module boundaries and script calls here, torch functions in the recorder."""

    def __init__(
        self, model: nn.Module, options: CaptureOptions, recorder: Callable[[EventLog], Recorder] = Recorder
    ) -> None:
        self.model = model
        self.modules = ModuleTable(model)
        self.forward_classes = forward_classes(self.modules.all())
        self._params_before = sum(state > 0 for state in self.modules.state.values())
        self._measures = Measures(options, [tensor for tensor, state in self.modules.owned() if state > 0])
        self.log = EventLog(self.modules, None, self._measures.observers)
        self.recorder = recorder(self.log)
        self.doorkeeper = Doorkeeper(self.recorder)
        self.selection = select(options.save, self.log, self.recorder.opened)
        if options.keeps_values:
            self.log.payloads = Payloads(self.selection.wants if self.selection is not None else None)
        self._root_pending = False
        # Codes, ordered, each once.
        self.advisories: dict[str, None] = {}

    def complete(self, data: TraceData) -> None:
        """Put into a finished trace what was measured in passing, and what its reader has to know."""
        self._measures.fill(data)
        if self.doorkeeper.threads and "ops_in_other_threads" not in self.advisories:
            self.advisories["threads_started"] = None
        rows = [*map(advisory, self.advisories), *about_run(data, self._params_before)]
        rows += about_reads(data, self.recorder.reads)
        rows += about_classes(self.recorder.classes)
        data.annotations["capture_advisories"] = rows
        data.outcome.advisories.extend(row["text"] for row in rows if row["code"] in SHOWN)

    def ran_elsewhere(self, module: nn.Module) -> None:
        """A module of the model is called by a thread that is not recorded."""
        if self.modules.knows(module):
            self.advisories["ops_in_other_threads"] = None

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
        if isinstance(module, nn.TransformerEncoder) and (note := about_call(module, args, kwargs)):
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
        state = self.modules.state_below_current() if isinstance(script, torch._C.ScriptMethod) else {}
        written: list[torch.Tensor] = []

        def call(*inner: object, **named: object) -> object:
            buffers = {name: tensor for name, tensor in state.items() if self.modules.is_buffer(tensor)}
            before = {name: undispatched(tensor.clone) for name, tensor in buffers.items()}
            out = plain(script, *inner, **named)
            written.extend(state[name] for name, value in before.items() if changed(value, state[name]))
            return out

        with torch._C.DisableTorchFunction():
            return self.recorder.record(info, call, args, kwargs, state=state, written=written)

    def pass_door(
        self, kind: str, name: str, plain: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """One call by which a tensor comes, goes or changes unseen by function modes."""
        if not self.recorder.is_on():  # within a call that is one op already
            return plain(*args, **kwargs)
        return self.doorkeeper.passes(kind, name, plain, args, kwargs)


def _script(*args: object, **kwargs: object) -> object:
    """What stands for any script call where only names of arguments are asked for."""
    raise NotImplementedError
