"""Contents of memory as they were: copies of storages that keep which tensors share bytes, and a model's whole state.

Knows nothing of events. Copies are made per storage, so that a view and its base stay a view and its base.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy

from torchlens.capture.kinds import PLAIN_TYPES
from torchlens.capture.tensors import undispatched

# Hooks are held in an ordered dictionary.
_CONTAINERS = (list, dict, set, OrderedDict, defaultdict, deque)


class Source(NamedTuple):
    """One tensor that no recorded op made, as first met.

    storage: key of its storage among the copies, or None if it has none of the plain kind and `kept` is a copy of the
    tensor itself; kept is None too where no copy can be made.
    """

    storage: int | None
    dtype: torch.dtype
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    is_leaf: bool
    inference: bool
    kept: torch.Tensor | None


class Copies:
    """Bytes of storages as of the first meeting. Holds the storages, so that a key cannot come to mean another."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def meet(self, tensor: torch.Tensor) -> Source:
        """Copy what a tensor stands on, unless its storage was met before."""
        facts = (tensor.requires_grad, tensor.is_leaf, tensor.is_inference())
        if not _is_strided(tensor):
            return Source(None, tensor.dtype, 0, (), (), *facts, _clone(tensor))
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages:
            # Storage by storage: a recorder watches what tensors are made to stand on.
            self._storages[storage._cdata] = (storage, undispatched(storage.clone))
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        return Source(storage._cdata, tensor.dtype, int(tensor.storage_offset()), size, stride, *facts, None)

    def changed(self) -> Iterator[int]:
        """Keys of the storages whose bytes are not those of the copy."""
        for key, (storage, copy) in self._storages.items():
            if storage.nbytes() != copy.nbytes() or not torch.equal(_bytes_of(storage), _bytes_of(copy)):
                yield key

    def restore(self, keys: Iterable[int]) -> None:
        """Put the bytes back into these storages."""
        for key in keys:
            storage, copy = self._storages[key]
            if storage.nbytes() != copy.nbytes():
                storage.resize_(copy.nbytes())
            storage.copy_(copy)

    def copy(self, key: int) -> torch.UntypedStorage:
        """The copy of a storage. Not to be written."""
        return self._storages[key][1]

    def storage(self, key: int) -> torch.UntypedStorage:
        """The storage itself."""
        return self._storages[key][0]


class Workspace:
    """Tensors to compute with instead of the originals: same geometry, same sharing, contents as copied."""

    def __init__(self, copies: Copies, written: frozenset[int]) -> None:
        self._copies, self._written = copies, written
        self._bases: dict[int, torch.UntypedStorage] = {}

    def tensor(self, source: Source) -> torch.Tensor | None:
        """A new tensor for a source; None where no copy could be made."""
        with torch.inference_mode(source.inference):
            if source.storage is None:
                found = None if source.kept is None else source.kept.clone()
            else:
                base = self._base(source.storage)
                found = torch.empty(0, dtype=source.dtype, device=base.device)
                found.set_(base, source.offset, source.size, source.stride)
        if found is None or not source.requires_grad:
            return found
        found.requires_grad_()
        with torch.enable_grad():
            return found if source.is_leaf else found.clone()

    def _base(self, key: int) -> torch.UntypedStorage:
        """The storage to stand on; of one that the recorded run never wrote, the copy itself."""
        if key not in self._bases:
            kept = self._copies.copy(key)
            self._bases[key] = kept.clone() if key in self._written else kept
        return self._bases[key]


class ModelState:
    """A model's tensors, attributes, flags and generators, the caller's tensors and the random streams, to be put back.

    names: of the tensors, in the order of `contents`.

    Attributes are put back one level deep: what the forward rebinds, and what it adds to a list, dict or set held by a
    module. Tensors of parameters, buffers, attributes and arguments get their bytes back.
    """

    def __init__(self, model: nn.Module, tensors: Iterable[torch.Tensor]) -> None:
        self.copies = Copies()
        self._modules = [(module, name, _attributes(module)) for name, module in registered_modules(model)]
        self._bound: list[tuple[torch.Tensor, Source]] = []
        self.names: list[str] = []
        named = [pair for module, name, held in self._modules for pair in _held_tensors(module, name, held)]
        named += [(f"argument {i}", tensor) for i, tensor in enumerate(tensors)]
        for name, tensor in {id(t): (n, t) for n, t in reversed(named)}.values():
            source = None if is_lazy(tensor) else self.copies.meet(tensor)
            if source is not None and source.storage is not None:
                self._bound.append((tensor, source))
                self.names.append(name)
        values = [value for _, _, (own, _) in self._modules for value in own.values()]
        self._generators = [(v, v.get_state()) for v in values if isinstance(v, torch.Generator)]
        self._streams = _streams()

    def restore(self) -> None:
        """Put everything back."""
        self.copies.restore(list(self.copies.changed()))
        for tensor, source in self._bound:
            self._rebind(tensor, source)
        for module, _, (own, containers) in self._modules:
            _reset(module, own)
            for container, content in containers:
                _refill(container, content)
        for generator, stream in self._generators:
            generator.set_state(stream)
        _set_streams(self._streams)

    def change(self, values: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
        """Give every tensor other values, where the function has some for it."""
        with torch.no_grad():
            for tensor, _ in self._bound:
                new = values(tensor)
                if new is not None:
                    tensor.detach().copy_(new)

    def _rebind(self, tensor: torch.Tensor, source: Source) -> None:
        """Undo `tensor.data = other`, `tensor.resize_()` and what autograd made of writes."""
        assert source.storage is not None
        storage = self.copies.storage(source.storage)
        same = tensor.untyped_storage()._cdata == source.storage and tuple(tensor.shape) == source.size
        if not same:
            with torch.inference_mode(source.inference):
                plain = torch.empty(0, dtype=source.dtype, device=storage.device)
                tensor.data = plain.set_(storage, source.offset, source.size, source.stride)
        if tensor.requires_grad and not source.requires_grad and not tensor._is_view():
            tensor.detach_()  # a write put it into the graph of what was written

    def contents(self) -> list[torch.Tensor]:
        """Copies of what the tensors hold now, those met at the beginning in their order."""
        return [tensor.detach().clone() for tensor, _ in self._bound]


def _is_strided(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in PLAIN_TYPES
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())
        and not is_functorch_wrapped_tensor(tensor)
    )


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """All bytes of a storage as a tensor that shares them."""
    with torch.inference_mode(False):
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _clone(tensor: torch.Tensor) -> torch.Tensor | None:
    if is_functorch_wrapped_tensor(tensor) or is_lazy(tensor):
        return None
    try:
        return undispatched(lambda: tensor.detach().clone())
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def registered_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules below a model, each once; walks the registries, whose listing methods may be overridden."""
    found: dict[int, tuple[str, nn.Module]] = {}
    waiting = [("", model)]
    while waiting:
        name, module = waiting.pop()
        if id(module) not in found:
            found[id(module)] = (name, module)
            children = [(f"{name}.{key}" if name else key, child) for key, child in module._modules.items()]
            waiting.extend((key, child) for key, child in reversed(children) if child is not None)
    return list(found.values())


Held = tuple[dict[str, object], list[tuple[object, object]]]


def _attributes(module: nn.Module) -> Held:
    """Attributes, and copies of the plain containers among them; a lazy module's own machinery is left alone."""
    own = dict(vars(module))
    if isinstance(module, LazyModuleMixin):
        return own, []
    return own, [(value, value.copy()) for value in own.values() if type(value) in _CONTAINERS]  # type: ignore[attr-defined]


def _held_tensors(module: nn.Module, name: str, held: Held) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors among the attributes and one level below, parameters and buffers included."""
    own, containers = held
    values: list[object] = list(own.values())
    for _, content in containers:
        values.extend(content.values() if isinstance(content, dict) else content)  # type: ignore[arg-type]
    if isinstance(module, torch.jit.ScriptModule):
        values += [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    keys = {id(tensor): key for table in (module._parameters, module._buffers, own) for key, tensor in table.items()}
    for value in values:
        if isinstance(value, torch.Tensor):
            key = keys.get(id(value), type(module).__name__)
            yield (f"{name}.{key}" if name else key), value


def _reset(module: nn.Module, own: dict[str, object]) -> None:
    """Give a module the attributes it had."""
    if isinstance(module, LazyModuleMixin):
        return
    table = vars(module)
    for key in [key for key in table if key not in own]:
        del table[key]
    table.update({key: value for key, value in own.items() if table.get(key) is not value})


def _refill(container: object, content: object) -> None:
    if isinstance(container, list):
        container[:] = content  # type: ignore[call-overload]
    elif isinstance(container, deque):
        container.clear()
        container.extend(content)  # type: ignore[arg-type]
    elif isinstance(container, (dict, set)):
        container.clear()
        container.update(content)  # type: ignore[arg-type]


def _streams() -> tuple[object, ...]:
    numpy = sys.modules.get("numpy")
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), cuda, random.getstate(), numpy.random.get_state() if numpy else None


def _set_streams(streams: tuple[object, ...]) -> None:
    cpu, cuda, python, numbers = streams
    torch.set_rng_state(cpu)  # type: ignore[arg-type]
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)  # type: ignore[arg-type]
    random.setstate(python)  # type: ignore[arg-type]
    if numbers is not None:
        sys.modules["numpy"].random.set_state(numbers)


@contextmanager
def streams_kept() -> Iterator[None]:
    """Put all random streams back at the end."""
    before = _streams()
    try:
        yield
    finally:
        _set_streams(before)
