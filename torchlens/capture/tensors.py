"""Which event made which tensor: identity by reference, staleness by version, writes through aliases by storage.

Nothing is written on tensors. An id alone is never trusted: the entry's weak reference has to be the very tensor.
Everything here must run under `DisableTorchFunction`: what tensors are asked must not reach anybody's handler.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchlens.capture.aliases import Aliases
from torchlens.capture.events import Known, make_known
from torchlens.capture.kinds import PLAIN_TYPES
from torchlens.records.tensors import TensorSpec

NO_VERSION = -1
# What asking for sizes raises on nested tensors, whose sizes are no ints, and on lazy parameters, which have none yet.
NO_SIZES = (RuntimeError, ValueError, TypeError, AttributeError)


class TensorTable:
    """Entries of all tensors met so far, keyed by id.

    parents_of: the nodes that a node read; loose: whether storages can be written without a version moving, as
    behind `.data`.
    """

    def __init__(self, parents_of: Callable[[int], Iterable[int]]) -> None:
        self._parents_of = parents_of
        self.known: dict[int, Known] = {}
        self.aliases = Aliases(self.known)
        self.loose = False
        self.specs: dict[tuple[object, ...], TensorSpec] = {}
        # storage -> writes in order: (event index, first byte, one past the last byte)
        self._writes: dict[int, list[tuple[int, int, int]]] = {}

    def find(self, tensor: torch.Tensor) -> Known | None:
        """The live entry of a tensor, None if it was never met."""
        entry = self.known.get(id(tensor))
        return entry if entry is not None and entry.ref() is tensor else None

    def current(self, tensor: torch.Tensor) -> Known | None:
        """The live entry of a tensor with every write so far taken into account."""
        entry = self.find(tensor)
        if entry is None:
            return None
        version = version_of(tensor)
        return self.refresh(tensor, entry) if self.may_be_stale(entry, version) else entry

    def may_be_stale(self, entry: Known, version: int) -> bool:
        """Whether somebody may have written the tensor since its entry: sure for a moved version, else possible."""
        return version != entry.version or version == NO_VERSION or self.loose

    def register(self, tensor: torch.Tensor, node: int, output: int = 0, state: int = 0) -> Known:
        """Name the event that made a tensor, as of now."""
        # Once per op, so the usual case is asked here directly.
        spec = None
        try:
            version = tensor._version
            spec = self.specs.get((tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad))
        except NO_SIZES:
            version = version_of(tensor)
        if spec is None:
            spec = self.spec_of(tensor)
        entry = make_known((weakref.ref(tensor), node, output, version, spec, state, ()))
        self.known[id(tensor)] = entry
        self.aliases.fresh.add(id(tensor))
        return entry

    def alias(self, tensor: torch.Tensor, made: Known, state: int) -> Known:
        """Name the event that made the memory of a tensor which came about unseen."""
        entry = self.register(tensor, made.node, made.output, state)
        return self.replace(tensor, entry._replace(late=made.late)) if made.late else entry

    def forget(self, tensor: torch.Tensor) -> Known | None:
        """Drop the weak reference to a tensor; returns what else was known of it."""
        entry = self.find(tensor)
        if entry is None:
            return None
        del self.known[id(tensor)]
        return entry._replace(ref=_nobody)

    def replace(self, tensor: torch.Tensor, entry: Known) -> Known:
        """Put another entry in the place of a tensor's."""
        self.known[id(tensor)] = entry
        return entry

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """Geometry of a tensor; equal tensors share one object."""
        try:
            key = (tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad)
            spec = self.specs.get(key)
        except NO_SIZES:
            return describe(tensor)
        if spec is None:
            spec = describe(tensor)
            if spec.shape is not None:
                self.specs[key] = spec
        return spec

    # -- writes through aliases
    def note_write(self, tensor: torch.Tensor, node: int) -> None:
        """Remember that an event wrote into the storage of a tensor."""
        place = extent(tensor)
        if place is not None:
            storage, first, last = place
            self._writes.setdefault(storage, []).append((node, first, last))

    def forget_writes(self, tensor: torch.Tensor) -> None:
        """Nothing was written to the storage of a tensor: it is a new one at the place of one that is gone."""
        place = extent(tensor)
        if place is not None:
            self._writes.pop(place[0], None)

    def refresh(self, tensor: torch.Tensor, entry: Known) -> Known:
        """The entry of a tensor that may be stale: later writers of overlapping bytes become late parents."""
        late = list(entry.late)
        place = extent(tensor) if self._writes else None
        if place is not None:
            storage, first, last = place
            writes = _after(self._writes.get(storage, []), late[-1] if late else entry.node)
            for node, lo, hi in writes:
                if lo < last and first < hi:
                    if late:
                        before = self._before(node)
                        late = [writer for writer in late if writer not in before]
                    late.append(node)
        return self.replace(tensor, entry._replace(version=version_of(tensor), late=tuple(late)))

    def _before(self, node: int) -> set[int]:
        """Nodes that a write surely comes after: what it read, and what the view it wrote through was made from.

        A writer among them reaches every reader through the newer one; kept, a loop of writes and reads would have
        arrows by the square of its length.
        """
        direct = set(self._parents_of(node))
        return direct.union(*(self._parents_of(parent) for parent in direct))


def _nobody() -> None:
    return None


def version_of(tensor: torch.Tensor) -> int:
    """The tensor's version counter; NO_VERSION for an inference tensor, which has none."""
    try:
        return tensor._version
    except RuntimeError:
        return NO_VERSION


def extent(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """Storage identity and the byte range that a tensor may touch; None where there is no plain storage."""
    try:
        storage = tensor.untyped_storage()._cdata
        size = tensor.element_size()
        span = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
        first = int(tensor.storage_offset() * size)
        count = int(tensor.numel())
    except (RuntimeError, NotImplementedError, AttributeError, ValueError, TypeError):
        return None
    return storage, first, first + (int(span) * size if count else 0)


def _after(writes: list[tuple[int, int, int]], node: int) -> list[tuple[int, int, int]]:
    """Writes by events later than `node`; the list is in event order, so its tail is enough."""
    start = len(writes)
    while start and writes[start - 1][0] > node:
        start -= 1
    return writes[start:]


def describe(tensor: torch.Tensor) -> TensorSpec:
    """Geometry of a tensor as it is now; no shape where it has none."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    try:
        shape = tuple(int(size) for size in tensor.shape)
        nbytes = int(tensor.numel()) * tensor.element_size()
    except NO_SIZES:
        return TensorSpec(None, dtype, str(tensor.device), None, tensor.requires_grad)
    return TensorSpec(shape, dtype, str(tensor.device), nbytes, tensor.requires_grad)


def map_tensors(value: Any, change: Callable[[Any], object], kind: type = torch.Tensor) -> Any:
    """A copy of a result structure with every tensor (or leaf of another kind) replaced; others stay as they are.

    Lists, tuples and dicts are entered. Torch's own named results and named tuples keep their type; a class of the
    user is never constructed, its members come as a plain list, tuple or dict.
    """
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(part, change, kind) for key, part in value.items()}
    if not isinstance(value, (list, tuple)) or isinstance(value, torch.Size):
        return value
    parts = [map_tensors(part, change, kind) for part in value]
    if isinstance(value, list):
        return parts
    if type(value).__module__ == "torch.return_types":
        return type(value)(parts)
    make = getattr(type(value), "_make", None)
    return make(parts) if make else tuple(parts)


def flat_tensors(value: object) -> list[torch.Tensor]:
    """Tensors of a call's arguments or result in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, (list, tuple)) and not isinstance(item, torch.Size):
            waiting.extend(reversed(item))
    return found


def scalar_value(tensor: torch.Tensor, spec: TensorSpec) -> object:
    """Python value of a plain 0-dim CPU tensor; None for any other and where it cannot be read (batched, fake)."""
    if spec.shape != () or spec.device != "cpu" or type(tensor) not in PLAIN_TYPES:
        return None
    try:
        return undispatched(tensor.item)
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def changed(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether the values of a tensor are others than they were; NaN where NaN was is none."""
    if before.shape != after.shape:
        return True
    return before.device.type != "meta" and not undispatched(
        lambda: bool(((before == after) | ((before != before) & (after != after))).all())
    )


def undispatched(ask: Callable[[], Any]) -> Any:
    """The answer to a question that runs an operator, hidden from every dispatch mode of the user."""
    if not torch._C._len_torch_dispatch_stack():
        return ask()
    with _disable_current_modes():
        return ask()
