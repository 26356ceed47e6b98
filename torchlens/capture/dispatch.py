"""The function mode that sees every torch call of one thread and appends one event per op.

While its handler runs, torch has popped the mode, so nothing done in it is seen again. Whatever can be derived later
(labels, argument names, FLOPs, lines) is left to `finish`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns

import torch
from torch.overrides import TorchFunctionMode

from torchlens.capture import callsite
from torchlens.capture.events import BUFFER, CONSTANT, INPUT, OP, OUTPUT as OUTPUT_KIND, Event, Known
from torchlens.capture.functions import OPEN, READ, SILENT_WRITES, SKIP, Bodies, FunctionInfo, info_of
from torchlens.capture.modules import ModuleTable
from torchlens.capture.tensors import LATE, NODE, OUTPUT, SPEC, STATE, VERSION, TensorTable, map_tensors, version_of
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import leaves
from torchlens.records.tensors import TensorSpec

_POSITIONS = tuple((i,) for i in range(64))
IDENTITY = FunctionInfo(torch.nn.Identity, "identity", -1, False)  # type: ignore[arg-type]
Parent = tuple[int, int, tuple[int | str, ...], bool]


class _Call:
    """What the arguments of one call held: parents, state read, the tensors met with their versions."""

    __slots__ = ("buffers", "kwargs", "params", "parents", "silent", "spec_args", "tensors")

    def __init__(self) -> None:
        self.parents: list[Parent] = []
        self.params: list[int] = []
        self.buffers: list[int] = []
        self.tensors: list[tuple[torch.Tensor, int]] = []
        self.spec_args: list[object] = []
        self.kwargs: dict[str, object] | None = None
        self.silent: list[torch.Tensor] = []


class Recorder(TorchFunctionMode):
    """Records the ops of one forward pass.

    events: tuples as documented in `events.Event`, indexed by node; tests: (node, value, site) of every tensor that
    Python turned into a bool; composites: (first event, one past the last, name) of opened functions with several ops.
    """

    def __init__(self, tensors: TensorTable, modules: ModuleTable, payloads: Payloads | None) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.tensors, self.modules, self.payloads = tensors, modules, payloads
        self.tests: list[tuple[int, bool, tuple[object, ...]]] = []
        self.composites: list[tuple[int, int, str]] = []
        self._bodies = Bodies()
        self._opening: list[tuple[object, int]] = []
        self.op_count = 0
        self._last_op = -1

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        info = info_of(func)
        action = info.action
        if action == SKIP:
            return func(*args, **kwargs) if kwargs else func(*args)
        if action == OPEN:
            return self._open(info, args, kwargs or {})
        if action == READ:
            return self._read(info, args, kwargs or {})
        return self.record(info, func, args, kwargs)

    # -- one op
    def record(
        self,
        info: FunctionInfo,
        func: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object] | None,
        params: tuple[int, ...] = (),
    ) -> object:
        """Run one call and append its event, unless it neither returned nor wrote a tensor.

        params: parameters the call is known to use beside those among its arguments.
        """
        call = self._inspect(args, kwargs)
        call.params.extend(params)
        if self.payloads is not None and (info.mutates or (kwargs and "out" in kwargs)):
            self.payloads.save_from_write(targets(info, args, kwargs))
        site = callsite.walk(sys._getframe(2))
        start = perf_counter_ns()
        out = func(*args, **kwargs) if kwargs else func(*args)
        nanoseconds = perf_counter_ns() - start
        if info.name in SILENT_WRITES:
            call.silent = silently_written(info.name, args)
        self._append(info, call, out, nanoseconds, site)
        return out

    def _inspect(self, args: tuple[object, ...], kwargs: dict[str, object] | None) -> _Call:
        call = _Call()
        spec_args = call.spec_args
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                spec_args.append(self._consume(value, _POSITIONS[i] if i < 64 else (i,), call))
            elif isinstance(value, (list, tuple, dict)):
                spec_args.append(self._consume_nested(value, (i,), call))
            else:
                spec_args.append(value)
        if kwargs:
            call.kwargs = {key: self._consume_nested(value, (key,), call) for key, value in kwargs.items()}
        return call

    def _consume_nested(self, value: object, position: tuple[int | str, ...], call: _Call) -> object:
        if isinstance(value, torch.Tensor):
            return self._consume(value, position, call)
        if isinstance(value, (list, tuple)) and type(value) is not torch.Size:
            return tuple(self._consume_nested(part, (*position, i), call) for i, part in enumerate(value))
        if isinstance(value, dict):
            return {key: self._consume_nested(part, (*position, str(key)), call) for key, part in value.items()}
        return value

    def _consume(self, tensor: torch.Tensor, position: tuple[int | str, ...], call: _Call) -> object:
        """Note one tensor argument; returns its spec, the stand-in for it in the recorded arguments."""
        entry = self.tensors.known.get(id(tensor))
        if entry is None or entry[0]() is not tensor:  # type: ignore[operator]
            entry = self._adopt(tensor)
        version = version_of(tensor)
        if version != entry[VERSION]:
            entry = self.tensors.refresh(tensor, entry)
        if entry[STATE]:
            entry = self._read_state(tensor, entry, call)
        if entry[NODE] >= 0:
            call.parents.append((entry[NODE], entry[OUTPUT], position, False))
        for writer in entry[LATE]:
            call.parents.append((writer, 0, position, True))
        call.tensors.append((tensor, version))
        return entry[SPEC]

    def _append(
        self, info: FunctionInfo, call: _Call, out: object, nanoseconds: int | None, site: tuple[object, ...]
    ) -> None:
        node, tensors = len(self.events), self.tensors
        written = [t for t, version in call.tensors if version_of(t) != version]
        if info.mutates and not written:  # inference tensors have no versions: only the name of the call tells
            written = [t for t, version in call.tensors[:1] if version == -1]
        inplace = bool(written)
        if call.silent:
            written += call.silent
        outs: list[TensorSpec] = []
        value: object = None
        if isinstance(out, torch.Tensor):
            outs.append(tensors.register(out, node, 0, None))
            if outs[0].shape == ():
                value = scalar_value(out, outs[0])
        elif out is not None:
            for tensor in flat_tensors(out):
                outs.append(tensors.register(tensor, node, len(outs), None))
        owned = self._settle_writes(written, node, outs) if written else ()
        if not outs and not owned:
            return
        self.events.append((  # type: ignore[arg-type]
            OP, info, tuple(call.parents), tuple(call.spec_args), call.kwargs, tuple(outs), nanoseconds,
            self.modules.current, site, tuple(call.params), tuple(call.buffers), inplace, value, "",
        ))  # fmt: skip
        self.op_count += 1
        self._last_op = node
        self.modules.own(node)
        if self.payloads is not None:
            self.payloads.keep(node, out, written)
        for tensor, state in owned:
            self._new_buffer_version(tensor, state, ((node, 0, (), False),))

    def _settle_writes(
        self, written: list[torch.Tensor], node: int, outs: list[TensorSpec]
    ) -> list[tuple[torch.Tensor, int]]:
        """Make the op the producer of what it wrote in place; returns the written buffers, which get a new version."""
        buffers: list[tuple[torch.Tensor, int]] = []
        for tensor in {id(t): t for t in written}.values():
            self.tensors.note_write(tensor, node)
            entry = self.tensors.known[id(tensor)]
            state = self.modules.state.get(id(tensor), 0)
            if state < 0:
                buffers.append((tensor, state))
            elif entry[NODE] == node:  # the call returned it: already registered
                self.tensors.register(tensor, node, entry[OUTPUT], None, state)
            else:
                self.tensors.register(tensor, node, len(outs), None, state)
                outs.append(self.tensors.known[id(tensor)][SPEC])  # type: ignore[arg-type]
        return buffers

    def _read(self, info: FunctionInfo, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """A tensor leaves the graph as a Python value; a bool is a possible branch test."""
        out = info.func(*args, **kwargs)
        if info.name == "__bool__" and args and isinstance(args[0], torch.Tensor):
            entry = self.tensors.find(args[0])
            if entry is not None and entry[NODE] >= 0:
                self.tests.append((entry[NODE], bool(out), callsite.walk(sys._getframe(2))))
        return out

    # -- opened functions
    def _open(self, info: FunctionInfo, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Run a Python-level torch function so that its inner calls are seen; one inner op takes its public name."""
        if self._opening and self._opening[-1] == (info.func, self.op_count):  # its body dispatches back to itself
            return self.record(info, info.func, args, kwargs)
        before, first = self.op_count, len(self.events)
        self._opening.append((info.func, before))
        torch._C._push_on_torch_function_stack(self)
        start = perf_counter_ns()
        try:
            out = self._bodies.of(info.func)(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            torch._C._pop_torch_function_stack()
            self._opening.pop()
        made = self.op_count - before
        if made == 1:
            self._rename(self._last_op, info, args, kwargs)
        elif made > 1:
            self.composites.append((first, len(self.events), info.name))
        elif any(self.tensors.find(t) is None for t in flat_tensors(out)):
            call = self._inspect(args, kwargs)
            self._append(info, call, out, perf_counter_ns() - start, callsite.walk(sys._getframe(2)))
        return out

    def _rename(self, node: int, info: FunctionInfo, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        event = self.events[node]
        spec_args = tuple(map_tensors(value, self._spec_of) for value in args)
        spec_kwargs = {key: map_tensors(value, self._spec_of) for key, value in kwargs.items()}
        self.events[node] = (*event[:1], info, event[2], spec_args, spec_kwargs, *event[5:])  # type: ignore[assignment]

    def _spec_of(self, tensor: torch.Tensor) -> object:
        entry = self.tensors.find(tensor)
        return entry[SPEC] if entry is not None else self.tensors.spec_of(tensor)

    # -- sources
    def add_input(self, path: str, tensor: torch.Tensor) -> None:
        """Append an input node; the first of several leaves that are one tensor object is its producer."""
        known = self.tensors.find(tensor)
        spec = known[SPEC] if known is not None and known[NODE] >= 0 else None
        node = self._source(INPUT, tensor, path, spec)  # type: ignore[arg-type]
        if spec is None:
            self.tensors.register(tensor, node, 0, None)

    def add_output(self, path: str, tensor: torch.Tensor) -> None:
        """Append an output node that reads whatever made the tensor; a returned parameter is named as used."""
        call = self._inspect((tensor,), None)
        self.events.append((  # type: ignore[arg-type]
            OUTPUT_KIND, None, tuple(call.parents), (), None, (call.spec_args[0],), None, 0, (),
            tuple(call.params), tuple(call.buffers), False, self._last_value(call), path,
        ))  # fmt: skip
        if self.payloads is not None:
            self.payloads.keep(len(self.events) - 1, tensor, ())

    def _last_value(self, call: _Call) -> object:
        tensor, spec = call.tensors[0][0], call.spec_args[0]
        return scalar_value(tensor, spec) if spec.shape == () else None  # type: ignore[attr-defined, arg-type]

    def _source(
        self, kind: int, tensor: torch.Tensor, path: str, spec: TensorSpec | None = None,
        parents: tuple[Parent, ...] = (), buffers: tuple[int, ...] = (),
    ) -> int:  # fmt: skip
        node = len(self.events)
        spec = spec or self.tensors.spec_of(tensor)
        value = scalar_value(tensor, spec) if spec.shape == () else None
        self.events.append((  # type: ignore[arg-type]
            kind, None, parents, (), None, (spec,), None, self.modules.current, (), (), buffers, False, value, path,
        ))  # fmt: skip
        if self.payloads is not None:
            self.payloads.keep(node, tensor, ())
        return node

    def _adopt(self, tensor: torch.Tensor) -> Known:
        """An argument that no recorded call made: state that is not registered yet, or a constant from outside."""
        state = self.modules.state.get(id(tensor), 0)
        node = -1 if state else self._source(CONSTANT, tensor, self.modules.attribute_path(tensor))
        self.tensors.register(tensor, node, 0, None, state)
        return self.tensors.known[id(tensor)]

    def _read_state(self, tensor: torch.Tensor, entry: Known, call: _Call) -> Known:
        state = entry[STATE]
        if state > 0:
            if state - 1 not in call.params:
                call.params.append(state - 1)
            if entry[SPEC].shape is None:  # type: ignore[attr-defined]  # a lazy parameter, materialised meanwhile
                self.tensors.register(tensor, entry[NODE], entry[OUTPUT], None, state)
                entry = self.tensors.known[id(tensor)]
            return entry
        if -1 - state not in call.buffers:
            call.buffers.append(-1 - state)
        if entry[NODE] < 0:
            entry = self._new_buffer_version(tensor, state, ())
        return entry

    def _new_buffer_version(self, tensor: torch.Tensor, state: int, parents: tuple[Parent, ...]) -> Known:
        index = -1 - state
        node = self._source(BUFFER, tensor, self.modules.buffer_addresses[index], None, parents, (index,))
        self.tensors.register(tensor, node, 0, None, state)
        return self.tensors.known[id(tensor)]

    # -- module boundaries
    def leave_module(self, call: int, result: object) -> None:
        """Note the tensors a module returned; a module without an op of its own gets a synthetic identity op."""
        found = [(t, e) for t in flat_tensors(result, deep=True) if (e := self.tensors.find(t)) is not None]
        found = [(t, e) for t, e in found if e[NODE] >= 0]
        if found and self.modules.is_silent(call, self.op_count):
            self._identity(found)
            found = [(t, self.tensors.known[id(t)]) for t, _ in found]
        self.modules.returned(call, tuple(dict.fromkeys((e[NODE], e[OUTPUT]) for _, e in found)))

    def _identity(self, found: list[tuple[torch.Tensor, Known]]) -> None:
        node = len(self.events)
        outs, parents = [], []
        for i, (tensor, entry) in enumerate({id(t): (t, e) for t, e in found}.values()):
            parents.append((entry[NODE], entry[OUTPUT], (i,), False))
            outs.append(entry[SPEC])
            fresh = (entry[0], node, i, entry[VERSION], entry[SPEC], entry[STATE], ())
            self.tensors.known[id(tensor)] = fresh  # type: ignore[assignment]
        value = self.events[parents[0][0]][12] if len(parents) == 1 else None
        self.events.append((  # type: ignore[arg-type]
            OP, IDENTITY, tuple(parents), tuple(outs), None, tuple(outs), None, self.modules.current, (), (), (), False,
            value, "",
        ))  # fmt: skip
        self.op_count += 1
        self._last_op = node
        self.modules.own(node)
        if self.payloads is not None:
            with torch._C.DisableTorchFunction():  # a module's end is outside the handler: the mode is on
                self.payloads.keep(node, [t for t, _ in found] if len(found) > 1 else found[0][0], ())


def flat_tensors(value: object, *, deep: bool = False) -> list[torch.Tensor]:
    """Tensors of a call's result in order; `deep` also looks into the objects a module may return."""
    if isinstance(value, torch.Tensor):
        return [value]
    if value is None or isinstance(value, (int, float, str)):
        return []
    if deep:
        return [tensor for _, tensor in leaves(value)]
    found: list[torch.Tensor] = []
    map_tensors(value, found.append)
    return found


def targets(info: FunctionInfo, args: tuple[object, ...], kwargs: dict[str, object] | None) -> list[torch.Tensor]:
    """Tensors that a mutating call is about to write, by its name: `out=`, every tensor of a schema that says so, or
    the first argument (a list for the foreach functions)."""
    if kwargs and "out" in kwargs:
        return flat_tensors(kwargs["out"])
    if isinstance(info.func, torch._ops.OpOverload):
        return flat_tensors(args)
    return flat_tensors(args[0]) if args else []


def silently_written(name: str, args: tuple[object, ...]) -> list[torch.Tensor]:
    """Statistics that a fused norm in training mode writes without telling; none in eval mode."""
    flag, positions = SILENT_WRITES[name]
    if len(args) <= flag or not args[flag]:
        return []
    return [args[i] for i in positions if isinstance(args[i], torch.Tensor)]  # type: ignore[misc]


def scalar_value(tensor: torch.Tensor, spec: TensorSpec) -> object:
    """Python value of a 0-dim CPU tensor, None where it cannot be read (other devices, batched or fake tensors)."""
    if spec.device != "cpu":
        return None
    try:
        return tensor.item()
    except (RuntimeError, TypeError, NotImplementedError):
        return None
