"""Modules, their calls, and the state they own, by object identity.

Holds the model's parameters and buffers for the length of the trace, so that an id in `state` cannot come to mean
another tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn

from torchlens.records.modules import ModuleCall, ModuleRecord
from torchlens.records.state import BufferRecord, ParamRecord
from torchlens.records.tensors import TensorSpec

# A module shared at every level of a deep tree has exponentially many paths.
_MOST_ADDRESSES = 8
_REGISTRIES = ("_modules", "_parameters", "_buffers")


class ModuleTable:
    """Addresses and running calls of one model.

    state: id of a parameter -> 1 + its index, of a buffer -> -1 - its index; current: index of the running call, which
    is one of module `running`;
    call_sites and call_parents: per call, the frames that made it and the call around it; fresh: state registered
    since the forward began, to be claimed by the event log.
    """

    def __init__(self, model: nn.Module) -> None:
        self.current, self.running = 0, model
        self.state: dict[int, int] = {}
        self.fresh: list[torch.Tensor] = []
        self.buffer_addresses: list[str] = []
        self._modules: list[nn.Module] = []
        self._addresses: list[list[str]] = []
        self._registered: list[bool] = []
        self._index: dict[int, int] = {}
        self._taken: set[str] = set()
        self._namesakes: dict[str, int] = {}
        self._params: list[tuple[torch.Tensor, list[str]]] = []
        self._buffers: list[tuple[torch.Tensor, list[str]]] = []
        self._retired: list[torch.Tensor] = []
        # one entry per module call
        self._call_module: list[int] = []
        self.call_parents: list[int | None] = []
        self._call_first: list[int] = []
        self._call_last: list[int] = []
        self._call_before: list[int] = []
        # None until the call returns
        self._call_outputs: list[tuple[tuple[int, int], ...] | None] = []
        self.call_sites: list[tuple[object, ...]] = []
        self._add(model, "", registered=True)
        self.fresh.clear()

    def _add(self, module: nn.Module, prefix: str, *, registered: bool) -> None:
        """Register a module with all that is below it, in `named_modules` order.

        Walks the registries themselves: the methods that list them may be overridden, and would not end on a cycle.
        """
        waiting: list[tuple[str, nn.Module | None]] = [(prefix, module)]
        path: dict[int, nn.Module] = {}
        while waiting:
            address, inner = waiting.pop()
            if inner is None:  # all below the last one of the path is done
                path.popitem()
            elif id(inner) not in path and self._note(inner, address, registered=registered):
                self._add_state(address, inner)
                path[id(inner)] = inner
                children = [(_join(address, name), child) for name, child in inner._modules.items()]
                waiting.append(("", None))
                waiting.extend((name, child) for name, child in reversed(children) if child is not None)

    def _note(self, module: nn.Module, address: str, *, registered: bool) -> bool:
        """Give a module one more address; False if it has that one, or enough of them."""
        index = self._index.get(id(module))
        if index is None:
            index = self._index[id(module)] = len(self._modules)
            self._modules.append(module)
            self._addresses.append([])
            self._registered.append(registered)
        if address in self._taken or len(self._addresses[index]) >= _MOST_ADDRESSES:
            return False
        self._taken.add(address)
        self._addresses[index].append(address)
        return True

    def _add_state(self, address: str, module: nn.Module) -> None:
        for name, param in module._parameters.items():
            if param is not None:
                self._own_state(_join(address, name), param, self._params, 1)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                self._own_state(_join(address, name), buffer, self._buffers, -1)

    def _own_state(
        self, address: str, tensor: torch.Tensor, table: list[tuple[torch.Tensor, list[str]]], sign: int
    ) -> None:
        known = self.state.get(id(tensor))
        if known is None:
            self.state[id(tensor)] = sign * (len(table) + 1)
            table.append((tensor, [address]))
            self.fresh.append(tensor)
            if sign < 0:
                self.buffer_addresses.append(address)
        elif known * sign > 0 and address not in table[abs(known) - 1][1]:
            table[abs(known) - 1][1].append(address)

    def all(self) -> list[nn.Module]:
        """All modules met so far."""
        return self._modules

    def owned(self) -> Iterator[tuple[torch.Tensor, int]]:
        """All parameters and buffers with what `state` says of them."""
        yield from ((tensor, 1 + i) for i, (tensor, _) in enumerate(self._params))
        yield from ((tensor, -1 - i) for i, (tensor, _) in enumerate(self._buffers))

    def state_of(self, tensor: torch.Tensor) -> int:
        """The state a tensor is, 0 if none; state that the running module got during the forward is registered now."""
        known = self.state.get(id(tensor), 0)
        if known or not self._call_module:
            return known
        owner = self._modules[self._call_module[self.current]]
        for name, value in owner._parameters.items():
            if value is tensor:
                self._own_state(self._below(owner, name), tensor, self._params, 1)
        for name, value in owner._buffers.items():
            if value is tensor:
                self._own_state(self._below(owner, name), tensor, self._buffers, -1)
        return self.state.get(id(tensor), 0)

    def add_param(self, module: nn.Module, name: str, param: nn.Parameter) -> None:
        """A parameter given to a module of the model during the forward; to be claimed."""
        if id(module) in self._index and module._parameters.get(name) is param:
            self._own_state(self._below(module, name), param, self._params, 1)

    # -- calls
    def enter(self, module: nn.Module, events: int, ops: int, site: tuple[object, ...]) -> int:
        """Open a call of a module; one met for the first time outside the tree is given an address."""
        index = self._index.get(id(module))
        if index is None:
            self._add(module, self._found_address(module), registered=False)
            index = self._index[id(module)]
        call = len(self._call_module)
        self._call_module.append(index)
        self.call_parents.append(self.current if call else None)
        self._call_first.append(events)
        self._call_last.append(events)
        self._call_before.append(ops)
        self._call_outputs.append(None)
        self.call_sites.append(site)
        self.current, self.running = call, module
        return call

    def leave(self, call: int, events: int) -> None:
        """Close a call, however it ended."""
        self._call_last[call] = events
        self.current = self.call_parents[call] or 0
        self.running = self._modules[self._call_module[self.current]]

    def returned(self, call: int, outputs: tuple[tuple[int, int], ...]) -> None:
        """Note what a call returned; without this it counts as left by an exception."""
        self._call_outputs[call] = outputs

    def is_done(self, call: int) -> bool:
        """Whether the call has returned."""
        return self._call_outputs[call] is not None

    def knows(self, module: nn.Module) -> bool:
        """Whether the module was met: as part of the model, or by running."""
        return id(module) in self._index

    def addresses_of_call(self, call: int) -> list[str]:
        """All addresses of the module of a call, the first one first."""
        return self._addresses[self._call_module[call]]

    def module_of_call(self, call: int) -> int:
        """Index of the module of a call."""
        return self._call_module[call]

    def param_address(self, index: int) -> str:
        """First address of a parameter."""
        return self._params[index][1][0]

    def state_below_current(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers of the running module and everything below it, by address."""
        address = self._addresses[self._call_module[self.current]][0]
        prefix = f"{address}." if address else ""
        return {names[0]: tensor for tensor, names in (*self._params, *self._buffers) if names[0].startswith(prefix)}

    def is_buffer(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a registered buffer."""
        return self.state.get(id(tensor), 0) < 0

    def rebind(self, before: torch.Tensor, value: torch.Tensor) -> int:
        """Let another tensor be the buffer that one was; returns what `state` says of it, 0 if it is no buffer."""
        state = self.state.get(id(before), 0)
        if state >= 0 or id(value) in self.state:
            return 0
        self.state[id(value)] = self.state.pop(id(before))
        self._retired.append(before)  # its id must not come to mean another tensor
        self._buffers[-1 - state] = (value, self._buffers[-1 - state][1])
        return state

    def is_silent(self, call: int, ops: int) -> bool:
        """Whether no op was recorded since the call began."""
        return self._call_before[call] == ops

    # -- addresses of what is not registered
    def _found_address(self, module: nn.Module) -> str:
        """Path of a module that the calling one holds, `late` or `blocks[1]`; else its class name."""
        return self._path_below_caller(module) or self._unused(type(module).__name__)

    def attribute_path(self, tensor: torch.Tensor) -> str:
        """Address of a tensor kept as a plain attribute of the running module, "" if it is none."""
        return self._path_below_caller(tensor)

    def _path_below_caller(self, target: object) -> str:
        if not self._call_module:
            return ""
        owner = self._modules[self._call_module[self.current]]
        held = [*owner._modules.items(), *((n, v) for n, v in vars(owner).items() if n not in _REGISTRIES)]
        for name, value in held:
            key = _key_in(value, target)
            if key is not None:
                return self._below(owner, f"{name}{key}")
        return ""

    def _below(self, owner: nn.Module, name: str) -> str:
        return _join(self._addresses[self._index[id(owner)]][0], name)

    def _unused(self, name: str) -> str:
        if name not in self._taken:
            return name
        self._namesakes[name] = self._namesakes.get(name, 1) + 1
        return f"{name}~{self._namesakes[name]}"

    # -- records
    def module_records(self) -> list[ModuleRecord]:
        """All modules in `named_modules` order, then those met only by running."""
        by_address = {a: i for i in range(len(self._modules) - 1, -1, -1) for a in self._addresses[i]}
        parents = [self._parent_of(addresses[0], by_address) for addresses in self._addresses]
        children: list[list[int]] = [[] for _ in self._modules]
        calls: list[list[int]] = [[] for _ in self._modules]
        for index, parent in enumerate(parents):
            if parent is not None:
                children[parent].append(index)
        for call, index in enumerate(self._call_module):
            calls[index].append(call)
        params, buffers = self._owners(self._params, by_address), self._owners(self._buffers, by_address)
        return [
            ModuleRecord(
                index, self._addresses[index][0], tuple(self._addresses[index][1:]), type(module).__name__,
                parents[index], tuple(children[index]), getattr(module, "training", False), tuple(calls[index]),
                tuple(params.get(index, ())), tuple(buffers.get(index, ())), self._registered[index],
                f"{type(module).__module__}.{type(module).__qualname__}",
            )
            for index, module in enumerate(self._modules)
        ]  # fmt: skip

    @staticmethod
    def _parent_of(address: str, by_address: dict[str, int]) -> int | None:
        if not address:
            return None
        head = address.rpartition(".")[0]
        return by_address.get(head, 0)

    @staticmethod
    def _owners(table: list[tuple[torch.Tensor, list[str]]], by_address: dict[str, int]) -> dict[int, list[int]]:
        owners: dict[int, list[int]] = {}
        for index, (_, addresses) in enumerate(table):
            owners.setdefault(by_address.get(addresses[0].rpartition(".")[0], 0), []).append(index)
        return owners

    def call_records(self, op_calls: Iterable[tuple[int, int]]) -> list[ModuleCall]:
        """All module calls in order of entry. op_calls: node and call of each op."""
        ops: list[list[int]] = [[] for _ in self._call_module]
        for node, call in op_calls:
            ops[call].append(node)
        times = [0] * len(self._modules)
        records: list[ModuleCall] = []
        for call, module in enumerate(self._call_module):
            times[module] += 1
            outputs, span = self._call_outputs[call], (self._call_first[call], self._call_last[call])
            records.append(ModuleCall(
                call, module, times[module], self.call_parents[call], tuple(ops[call]), outputs or (), span,
                outputs is not None,
            ))  # fmt: skip
        return records

    def param_records(self, spec_of: Callable[[torch.Tensor], TensorSpec]) -> list[ParamRecord]:
        """All parameters in `named_parameters` order; sizes as after the forward, so that lazy ones have theirs."""
        return [
            ParamRecord(
                i, names[0], tuple(names[1:]), names[0].rpartition(".")[2], spec.shape or (), spec.dtype,
                spec.nbytes or 0, spec.requires_grad,
            )
            for i, (names, spec) in enumerate((names, spec_of(tensor)) for tensor, names in self._params)
        ]  # fmt: skip

    def buffer_records(self, spec_of: Callable[[torch.Tensor], TensorSpec]) -> list[BufferRecord]:
        """All buffers in `named_buffers` order."""
        return [
            BufferRecord(i, names[0], tuple(names[1:]), spec.shape or (), spec.dtype, spec.nbytes or 0)
            for i, (names, spec) in enumerate((names, spec_of(tensor)) for tensor, names in self._buffers)
        ]


def _join(address: str, name: str) -> str:
    return f"{address}.{name}" if address else name


def _key_in(value: object, target: object) -> str | None:
    """Where a value holds an object: "" for itself, `[1]` or `['a']` for a member of a plain list or dict."""
    if value is target:
        return ""
    if type(value) in (list, tuple):
        return next((f"[{i}]" for i, part in enumerate(value) if part is target), None)  # type: ignore[arg-type]
    if type(value) is dict:
        return next((f"[{key!r}]" for key, part in value.items() if part is target), None)  # type: ignore[attr-defined]
    return None
