"""Which event made which tensor: identity by reference, staleness by version, writes through aliases by storage.

Nothing is written on tensors. An id alone is never trusted: the entry's weak reference has to be the very tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch

from torchlens.capture.events import Known
from torchlens.records.tensors import TensorSpec

PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
NODE, OUTPUT, VERSION, SPEC, STATE, LATE = 1, 2, 3, 4, 5, 6


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
        return entry if entry is not None and entry[0]() is tensor else None  # type: ignore[operator]

    def register(
        self, tensor: torch.Tensor, node: int, output: int, spec: TensorSpec | None, state: int = 0
    ) -> TensorSpec:
        """Name the event that made a tensor, as of now."""
        if spec is None:
            spec = self.spec_of(tensor)
        self.known[id(tensor)] = (weakref.ref(tensor), node, output, version_of(tensor), spec, state, ())  # type: ignore[assignment]
        return spec

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """Geometry of a tensor; equal tensors share one object."""
        if type(tensor) not in PLAIN_TYPES:
            with torch._C.DisableTorchFunctionSubclass():
                return self._spec_of(tensor)
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
        place = extent(tensor)
        late = list(entry[LATE])
        if place is not None:
            storage, first, last = place
            since = max(entry[NODE], *late) if late else entry[NODE]
            for node, lo, hi in _after(self._writes.get(storage, []), since):
                if lo < last and first < hi:
                    late.append(node)
        fresh = (entry[0], entry[NODE], entry[OUTPUT], version_of(tensor), entry[SPEC], entry[STATE], tuple(late))
        self.known[id(tensor)] = fresh  # type: ignore[assignment]
        return fresh  # type: ignore[return-value]


def version_of(tensor: torch.Tensor) -> int:
    """The tensor's version counter; -1 for an inference tensor, which has none.

    A subclass must not see the question: its own `__torch_function__` is part of the user's program.
    """
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
    return storage, first, first + (span * size if count else 0)


def _after(writes: list[tuple[int, int, int]], node: int) -> list[tuple[int, int, int]]:
    """Writes by events later than `node`; the list is in event order, so its tail is enough."""
    start = len(writes)
    while start and writes[start - 1][0] > node:
        start -= 1
    return writes[start:]


def _make_spec(tensor: torch.Tensor) -> TensorSpec:
    shape = tuple(int(size) for size in tensor.shape)
    count = 1
    for size in shape:
        count *= size
    return TensorSpec(
        shape, _dtype_name(tensor.dtype), str(tensor.device), count * tensor.element_size(), tensor.requires_grad
    )


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def map_tensors(value: object, change: Callable[[torch.Tensor], object]) -> object:
    """A copy of an argument or result structure with every tensor replaced; other leaves are kept as they are.

    Only lists, tuples (named ones too) and dicts are entered: these are what torch functions take and return.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [map_tensors(part, change) for part in value]
        if isinstance(value, list):
            return parts
        make = getattr(type(value), "_make", None) or type(value)
        return make(parts)
    if isinstance(value, dict):
        return {key: map_tensors(part, change) for key, part in value.items()}
    return value
