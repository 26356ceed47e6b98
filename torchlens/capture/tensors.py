"""Which event made which tensor: identity by reference, staleness by version, writes through aliases by storage.

Nothing is written on tensors. An id alone is never trusted: the entry's weak reference has to be the very tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchlens.capture.events import Known, make_known
from torchlens.records.tensors import TensorSpec

# Any other type may answer questions with its own `__torch_function__`, which is part of the user's program.
PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})


class TensorTable:
    """Entries of all tensors met so far, keyed by id."""

    def __init__(self) -> None:
        self.known: dict[int, Known] = {}
        self._specs: dict[tuple[object, ...], TensorSpec] = {}
        # storage -> writes in order: (event index, first byte, one past the last byte)
        self._writes: dict[int, list[tuple[int, int, int]]] = {}

    def find(self, tensor: torch.Tensor) -> Known | None:
        """The live entry of a tensor, None if it was never met."""
        entry = self.known.get(id(tensor))
        return entry if entry is not None and entry.ref() is tensor else None

    def register(self, tensor: torch.Tensor, node: int, output: int = 0, state: int = 0) -> Known:
        """Name the event that made a tensor, as of now."""
        # Once per op: what most tensors are is asked here directly, the rest goes the long way.
        spec = None
        try:
            if type(tensor) in PLAIN_TYPES:
                version = tensor._version
                spec = self._specs.get((tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad))
            else:
                version = version_of(tensor)
        except (RuntimeError, ValueError, TypeError, AttributeError):
            version = version_of(tensor)
        if spec is None:
            spec = self.spec_of(tensor)
        entry = make_known((weakref.ref(tensor), node, output, version, spec, state, ()))
        self.known[id(tensor)] = entry
        return entry

    def replace(self, tensor: torch.Tensor, entry: Known) -> Known:
        """Put another entry in the place of a tensor's."""
        self.known[id(tensor)] = entry
        return entry

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """Geometry of a tensor; equal tensors share one object."""
        if type(tensor) in PLAIN_TYPES:
            return self._spec_of(tensor)
        with torch._C.DisableTorchFunctionSubclass():
            return self._spec_of(tensor)

    def _spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        try:
            key = (tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad)
            spec = self._specs.get(key)
            if spec is None:
                spec = self._specs[key] = _make_spec(tensor)
        except (RuntimeError, ValueError, TypeError, AttributeError):
            # Nested tensors, whose sizes are no ints, and lazy parameters, which have none yet.
            return TensorSpec(None, _dtype_name(tensor.dtype), str(tensor.device), None, tensor.requires_grad)
        return spec

    # -- writes through aliases
    def note_write(self, tensor: torch.Tensor, node: int) -> None:
        """Remember that an event wrote into the storage of a tensor."""
        place = extent(tensor)
        if place is not None:
            storage, first, last = place
            self._writes.setdefault(storage, []).append((node, first, last))

    def refresh(self, tensor: torch.Tensor, entry: Known) -> Known:
        """The entry of a tensor whose version moved: later writers of overlapping bytes become late parents."""
        late = list(entry.late)
        place = extent(tensor)
        if place is not None:
            storage, first, last = place
            writes = _after(self._writes.get(storage, []), late[-1] if late else entry.node)
            late += [node for node, lo, hi in writes if lo < last and first < hi]
        return self.replace(tensor, entry._replace(version=version_of(tensor), late=tuple(late)))


def version_of(tensor: torch.Tensor) -> int:
    """The tensor's version counter; -1 for an inference tensor, which has none."""
    try:
        if type(tensor) in PLAIN_TYPES:
            return tensor._version
        with torch._C.DisableTorchFunctionSubclass():
            return tensor._version
    except RuntimeError:
        return -1


def extent(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """Storage identity and the byte range that a tensor may touch; None where there is no plain storage."""
    try:
        with torch._C.DisableTorchFunctionSubclass():
            storage = tensor.untyped_storage()._cdata
            size = tensor.element_size()
            span = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
            first = tensor.storage_offset() * size
            count = tensor.numel()
    except (RuntimeError, NotImplementedError, AttributeError):
        return None
    return storage, int(first), int(first + (span * size if count else 0))


def _after(writes: list[tuple[int, int, int]], node: int) -> list[tuple[int, int, int]]:
    """Writes by events later than `node`; the list is in event order, so its tail is enough."""
    start = len(writes)
    while start and writes[start - 1][0] > node:
        start -= 1
    return writes[start:]


def _make_spec(tensor: torch.Tensor) -> TensorSpec:
    shape = tuple(int(size) for size in tensor.shape)
    nbytes = tensor.numel() * tensor.element_size()
    return TensorSpec(shape, _dtype_name(tensor.dtype), str(tensor.device), nbytes, tensor.requires_grad)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def map_tensors(value: Any, change: Callable[[torch.Tensor], object]) -> Any:
    """A copy of an argument or result structure with every tensor replaced; other leaves are kept as they are.

    Only lists, tuples (named ones too) and dicts are entered: these are what torch functions take and return.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [map_tensors(part, change) for part in value]
        make = getattr(type(value), "_make", None) or type(value)
        return make(parts)
    if isinstance(value, dict):
        return {key: map_tensors(part, change) for key, part in value.items()}
    return value


def flat_tensors(value: object) -> list[torch.Tensor]:
    """Tensors of a call's arguments or result in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    map_tensors(value, found.append)
    return found


def scalar_value(tensor: torch.Tensor, spec: TensorSpec) -> object:
    """Python value of a 0-dim CPU tensor; None for any other and where it cannot be read (batched, fake)."""
    if spec.shape != () or spec.device != "cpu":
        return None
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return tensor.item()
    except (RuntimeError, TypeError, NotImplementedError):
        return None
