"""What each call means for the graph: who made its arguments, what it returned and wrote, which module ran it.

The log appends events; it neither intercepts calls nor times them. It must be used while no function mode is on, or
under `DisableTorchFunction`, because it asks tensors for their geometry.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch

from torchlens.capture.events import (
    BUFFER,
    CONSTANT,
    INPUT,
    OP,
    OUTPUT,
    Event,
    Known,
    Parent,
    Position,
    make_event,
)
from torchlens.capture.functions import RECORD, FunctionInfo
from torchlens.capture.modules import ModuleTable
from torchlens.capture.tensors import NO_VERSION, TensorTable, extent, flat_tensors, scalar_value, version_of
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import leaves
from torchlens.records.tensors import TensorSpec

POSITIONS: tuple[Position, ...] = tuple((i,) for i in range(64))
IDENTITY = FunctionInfo(torch.nn.Identity.forward, "identity", RECORD, False, True)


# Argument values that can be kept as they are.
ATOMS = frozenset({
    int, float, bool, str, complex, type(None), type(...), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size,
})  # fmt: skip


# Numbers of a list that are kept; a figure shows the first few.
_LONG = 1024


class Writes(NamedTuple):
    """What a call writes: named, tensors that its name says it may write; silent, ones that it writes although no
    version will move.
    """

    named: list[torch.Tensor]
    silent: list[torch.Tensor]


NO_WRITES = Writes([], [])


class Call:
    """What the arguments of one call held: parents, state read, and the tensors met with their versions."""

    buffers: tuple[int, ...] = ()

    def __init__(
        self, parents: list[Parent], args: list[object], params: tuple[int, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.parents, self.args, self.params, self.kwargs = parents, args, params, kwargs
        self.tensors: list[tuple[torch.Tensor, int]] = []


class Observer(Protocol):
    """What looks at every result as it comes: statistics, what autograd saved."""

    def saw(self, node: int, out: object) -> None:
        """Look at the result of a node; `out` is not to be kept."""
        ...


class EventLog:
    """Events of one forward pass, indexed by node. To be used under `DisableTorchFunction` where a mode is on.

    op_count: ops so far; last_op: index of the last one; payloads: None when only metadata is recorded.
    """

    def __init__(self, modules: ModuleTable, payloads: Payloads | None, observers: tuple[Observer, ...] = ()) -> None:
        self.events = events = list[Event]()
        self.op_count, self.last_op = 0, -1
        self.tensors = TensorTable(lambda node: [parent[0] for parent in events[node].parents])
        self.modules, self.payloads, self.observers = modules, payloads, observers
        # All at once and before the run: one by one between large ops, each would find the caches cold.
        for tensor, state in modules.owned():
            self.tensors.register(tensor, -1, 0, state)

    # -- arguments
    def read(self, args: tuple[object, ...], kwargs: dict[str, object] | None) -> Call:
        """Look up every tensor among the arguments of a call that is about to run."""
        call = Call([], [])
        for i, value in enumerate(args):
            position = POSITIONS[i] if i < 64 else (i,)
            if isinstance(value, torch.Tensor):
                call.args.append(self._consume(value, position, call))
            elif type(value) in ATOMS:
                call.args.append(value)
            else:
                call.args.append(self._consume_nested(value, position, call))
        if kwargs:
            call.kwargs = {key: self._consume_nested(value, (key,), call) for key, value in kwargs.items()}
        return call

    def read_state(self, call: Call, state: Mapping[str, torch.Tensor]) -> None:
        """Look up parameters and buffers that a call reads although they are not among its arguments."""
        for address, tensor in state.items():
            self._consume(tensor, (address,), call)

    def _consume_nested(self, value: object, position: Position, call: Call) -> object:
        if isinstance(value, torch.Tensor):
            return self._consume(value, position, call)
        if isinstance(value, (list, tuple)) and type(value) is not torch.Size:
            if len(value) > _LONG and all(type(part) in ATOMS for part in value):
                return value[:_LONG]
            parts = [self._consume_nested(part, (*position, i), call) for i, part in enumerate(value)]
            # As an index a list and a tuple do not mean the same.
            return parts if isinstance(value, list) else tuple(parts)
        if isinstance(value, dict):
            return {key: self._consume_nested(part, (*position, str(key)), call) for key, part in value.items()}
        if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
            self._consume_storage(value, position, call)
        return value if type(value) in ATOMS else _stand_in(value)

    def _consume_storage(
        self, storage: torch.UntypedStorage | torch.TypedStorage, position: Position, call: Call
    ) -> None:
        """Note the tensor whose memory an argument is."""
        first = storage.data_ptr()
        made = self.tensors.aliases.at(first, first + storage.nbytes()) if first else None
        if made is not None:
            call.parents.append((made.node, made.output, position, False))

    def _consume(self, tensor: torch.Tensor, position: Position, call: Call) -> TensorSpec:
        """Note one tensor argument; returns its spec, the stand-in for it among the recorded arguments."""
        entry = self.tensors.known.get(id(tensor))
        if entry is None or entry.ref() is not tensor:
            entry = self._adopt(tensor)
        # Once per tensor read, so the usual answers are given here.
        try:
            version = tensor._version
        except RuntimeError:
            version = NO_VERSION
        if version != entry.version or version < 0 or self.tensors.loose:
            entry = self.tensors.refresh(tensor, entry)
        _, node, output, _, spec, state, late = entry
        if state > 0 and spec.shape is not None:
            if state - 1 not in call.params:
                call.params = (*call.params, state - 1)
        elif state:
            _, node, output, _, spec, _, late = self._read_state(tensor, entry, call)
        if node >= 0:
            call.parents.append((node, output, position, False))
        if late:
            call.parents.extend([(writer, 0, position, True) for writer in late])
        call.tensors.append((tensor, version))
        return spec

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """Spec of a tensor as last seen."""
        entry = self.tensors.find(tensor)
        return entry.spec if entry is not None else self.tensors.spec_of(tensor)

    def node_of(self, tensor: torch.Tensor) -> int:
        """The node whose value a tensor holds, made for a buffer or constant read the first time; -1 for parameters."""
        entry = self.tensors.find(tensor)
        if entry is not None and entry.node >= 0:
            return entry.node
        with torch._C.DisableTorchFunction():
            parents = self.read((tensor,), None).parents
        return parents[0][0] if parents else -1

    # -- ops
    def append_op(
        self, info: FunctionInfo, call: Call, out: object, nanoseconds: int, site: tuple[object, ...],
        writes: Writes = NO_WRITES,
    ) -> None:  # fmt: skip
        """Append the event of a call that has run, unless it neither returned nor wrote a tensor."""
        node, register = len(self.events), self.tensors.register
        written = [] if info.pure and not writes.named else _written(call, writes)
        inplace = bool(written)
        written += writes.silent
        if info.name == "data":
            self.tensors.loose = True
        value: object = None
        if isinstance(out, torch.Tensor):
            # An argument handed back, a parameter too, is from now on what this call made: nobody can tell them apart.
            outs = [register(out, node).spec]
            if outs[0].shape == ():
                value = scalar_value(out, outs[0])
        elif out is None:
            outs = []
        else:
            outs = [register(tensor, node, i).spec for i, tensor in enumerate(flat_tensors(out))]
        buffers = self._settle_writes(written, node, outs) if written else ()
        if not outs and not buffers:
            return
        modules = self.modules
        self.events.append(make_event((
            OP, info, tuple(call.parents), tuple(call.args), call.kwargs, tuple(outs), nanoseconds, modules.current,
            site, call.params, call.buffers, inplace, value, "",
        )))  # fmt: skip
        self._count_op(node)
        if self.payloads is not None:
            self.payloads.keep(node, out, written)
        for observer in self.observers:
            observer.saw(node, list({id(t): t for t in written}.values()) if out is None else out)
        for tensor, state in buffers:
            self._new_buffer_version(tensor, state, ((node, 0, (), False),))

    def _settle_writes(
        self, written: list[torch.Tensor], node: int, outs: list[TensorSpec]
    ) -> list[tuple[torch.Tensor, int]]:
        """Make the op the producer of what it wrote in place; returns the written buffers, which get a new version."""
        buffers: list[tuple[torch.Tensor, int]] = []
        returned_none = not outs
        for tensor in {id(t): t for t in written}.values():
            self.tensors.note_write(tensor, node)
            state = self.modules.state.get(id(tensor), 0)
            entry = self.tensors.known[id(tensor)]
            if state < 0:
                buffers.append((tensor, state))
                if returned_none:
                    outs.append(entry.spec)
            elif entry.node == node:  # the call returned it: its place among the outputs is known
                self.tensors.register(tensor, node, entry.output, state)
            else:
                outs.append(self.tensors.register(tensor, node, len(outs), state).spec)
        return buffers

    def _append(
        self, kind: str, info: FunctionInfo | None, parents: tuple[Parent, ...], outs: tuple[TensorSpec, ...],
        value: object, path: str, call: Call,
    ) -> None:  # fmt: skip
        """Append an event that no call of torch made."""
        self.events.append(make_event((
            kind, info, parents, tuple(call.args), None, outs, None, self.modules.current, (),
            call.params, call.buffers, False, value, path,
        )))  # fmt: skip

    def _count_op(self, node: int) -> None:
        self.op_count += 1
        self.last_op = node

    # -- inputs, outputs, constants, state
    def add_input(self, path: str, tensor: torch.Tensor) -> None:
        """Append an input node; the first of several leaves that are one tensor object is its producer."""
        first = self.tensors.find(tensor) is None
        node = self._source(INPUT, tensor, path, Call([], []))
        if first:
            self.tensors.register(tensor, node)

    def add_outputs(self, found: list[tuple[str, torch.Tensor]]) -> None:
        """Append the output nodes, each reading what made its tensor; a returned parameter is named as used.

        All are read first, so that a constant or buffer met here stands before the outputs.
        """
        calls = [self.read((tensor,), None) for _, tensor in found]
        for (path, tensor), call in zip(found, calls, strict=True):
            call.args.clear()
            self._source(OUTPUT, tensor, path, call, tuple(call.parents))

    def _source(self, kind: str, tensor: torch.Tensor, path: str, call: Call, parents: tuple[Parent, ...] = ()) -> int:
        node, spec = len(self.events), self.spec_of(tensor)
        self._append(kind, None, parents, (spec,), scalar_value(tensor, spec), path, call)
        if self.payloads is not None:
            self.payloads.keep(node, tensor)
        for observer in self.observers:
            observer.saw(node, tensor)
        return node

    def _adopt(self, tensor: torch.Tensor) -> Known:
        """An argument that no recorded call made: in the memory of one that was made, new state, or a constant."""
        state = self.modules.state_of(tensor)
        made = self.tensors.aliases.find(tensor)
        if made is not None and self.events[made.node].kind != CONSTANT:
            return self.tensors.alias(tensor, made, state)
        if not state:
            return self._constant(tensor)
        # Its memory is nobody's that is known: what was written there was written to tensors that are gone.
        self.tensors.forget_writes(tensor)
        return self.tensors.register(tensor, -1, 0, state)

    def _constant(self, tensor: torch.Tensor) -> Known:
        node = self._source(CONSTANT, tensor, self.modules.attribute_path(tensor), Call([], []))
        return self.tensors.register(tensor, node)

    def _read_state(self, tensor: torch.Tensor, entry: Known, call: Call) -> Known:
        """The entry of a buffer, read as a node, or of a lazy parameter, materialised meanwhile."""
        if entry.state > 0:
            if entry.state - 1 not in call.params:
                call.params = (*call.params, entry.state - 1)
            return self.tensors.register(tensor, entry.node, entry.output, entry.state)
        if -1 - entry.state not in call.buffers:
            call.buffers = (*call.buffers, -1 - entry.state)
        if entry.node >= 0:
            return entry
        return self._new_buffer_version(tensor, entry.state, tuple([(node, 0, (), True) for node in entry.late]))

    def _new_buffer_version(self, tensor: torch.Tensor, state: int, parents: tuple[Parent, ...]) -> Known:
        call = Call([], [])
        call.buffers = (-1 - state,)
        node = self._source(BUFFER, tensor, self.modules.buffer_addresses[-1 - state], call, parents)
        return self.tensors.register(tensor, node, 0, state)

    def reassign(self, before: torch.Tensor, value: torch.Tensor) -> None:
        """A tensor was put in the place of a buffer: the next version of it, made by what made the tensor."""
        old, new = self.tensors.find(before), self.tensors.current(value) or self._constant(value)
        state = self.modules.rebind(before, value)
        if not state:
            return
        if old is not None and old.node >= 0:
            self.tensors.replace(before, old._replace(state=0))
        parents = [(new.node, new.output, (), False), *((node, 0, (), True) for node in new.late)]
        self._new_buffer_version(value, state, tuple(parents))

    # -- module boundaries
    def claim_state(self) -> None:
        """Tell the entries of tensors that became parameters or buffers during the forward, after an op made them."""
        for tensor in self.modules.fresh:
            entry = self.tensors.find(tensor)
            if entry is not None:
                self.tensors.replace(tensor, entry._replace(state=self.modules.state[id(tensor)]))
        self.modules.fresh.clear()

    def leave_module(self, call: int, result: object) -> None:
        """Note the tensors a module returned; a module without an op of its own gets a synthetic identity op.

        A function mode may be on: the usual result, one tensor that some op made, is told without asking it anything.
        """
        entry = self.tensors.known.get(id(result))
        if entry is None or entry[1] < 0 or entry[0]() is not result or self.modules.is_silent(call, self.op_count):
            with torch._C.DisableTorchFunction():
                self._leave_module(call, result)
        else:
            self.modules.returned(call, (entry[1:3],))

    def _leave_module(self, call: int, result: object) -> None:
        if isinstance(result, torch.Tensor):
            tensors = [result]
        else:
            tensors = list({id(tensor): tensor for _, tensor in leaves(result)}.values())
        known = [t for t in tensors if (entry := self.tensors.find(t)) is not None and entry.node >= 0]
        if known and self.modules.is_silent(call, self.op_count):
            self._identity(known)
        entries = [self.tensors.find(tensor) for tensor in known]
        self.modules.returned(call, tuple([(entry.node, entry.output) for entry in entries if entry is not None]))

    def _identity(self, tensors: list[torch.Tensor]) -> None:
        node, call = len(self.events), self.read(tuple(tensors), None)
        specs = tuple([self.spec_of(tensor) for tensor in tensors])
        value = scalar_value(tensors[0], specs[0]) if len(tensors) == 1 else None
        self._append(OP, IDENTITY, tuple(call.parents), specs, value, "", call)
        self._count_op(node)
        if self.payloads is not None:
            self.payloads.keep(node, tensors if len(tensors) > 1 else tensors[0])
        for observer in self.observers:
            observer.saw(node, tensors if len(tensors) > 1 else tensors[0])
        for i, tensor in enumerate(tensors):
            self.tensors.register(tensor, node, i, self.modules.state.get(id(tensor), 0))


def _written(call: Call, writes: Writes) -> list[torch.Tensor]:
    """Arguments that the call wrote, by their version; for inference tensors, which have none, by the call's name.

    A view that is only read shares its counter with what is written beside it: it is none that the name announced.
    """
    written = [tensor for tensor, version in call.tensors if version_of(tensor) != version]
    if len(written) > 1 and writes.named:
        named = {id(tensor) for tensor in writes.named}
        counters = {place[0] for tensor in writes.named if (place := extent(tensor)) is not None}
        written = [t for t in written if id(t) in named or (place := extent(t)) is None or place[0] not in counters]
    return written + [tensor for tensor in writes.named if version_of(tensor) == NO_VERSION]


def _stand_in(value: object) -> object:
    """What is recorded of an argument that is neither a tensor nor plain: its type, so that nothing is kept alive."""
    if isinstance(value, slice):
        return slice(*[part if isinstance(part, int) else None for part in (value.start, value.stop, value.step)])
    if isinstance(value, (int, float, str, complex)):
        return value
    named = isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType))  # any other may run code
    return value.__name__ if named else type(value).__name__
