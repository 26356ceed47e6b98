"""The tensors kept beside a trace: references, copied only just before something would overwrite them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable

import torch

from torchlens.base.errors import fail
from torchlens.capture.kinds import PLAIN_TYPES, in_transform
from torchlens.capture.tensors import NO_VERSION, extent, map_tensors, undispatched, version_of

# No tensor has it, so a value that bears it is never given out.
_LOST = NO_VERSION - 1


class _Moves:
    """How far announced writes moved the version counter that all views of a storage share, whatever bytes they hit."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _Storage:
    """What is kept of one storage, by the bytes it sees."""

    __slots__ = ("_by_size", "moves")

    def __init__(self) -> None:
        self.moves = _Moves()
        # Power of two above the length -> rows (first byte, one past the last byte, serial number, slot) in order.
        self._by_size: dict[int, list[tuple[int, int, int, _Slot]]] = {}

    def add(self, first: int, last: int, serial: int, slot: _Slot) -> None:
        """Note a slot that sees these bytes."""
        insort(self._by_size.setdefault((last - first).bit_length(), []), (first, last, serial, slot))

    def take(self, first: int, last: int) -> list[_Slot]:
        """Remove and give the slots that see any of these bytes."""
        found: list[_Slot] = []
        for size, rows in self._by_size.items():
            start = bisect_left(rows, (first - (1 << size),))
            end = bisect_left(rows, (last,), start)
            near = rows[start:end]
            spared = [row for row in near if row[1] <= first]
            if len(spared) < len(near):
                rows[start:end] = spared
                found.extend(row[3] for row in near if row[1] > first)
        return found


class _Slot:
    """One kept tensor with its version when kept; what an unknown writer changed shows as a moved version.

    version: less the moves of its storage's counter, once these are known. A slot does not hold the storage's index,
    which holds the slot: values go the moment their trace goes.
    """

    __slots__ = ("moves", "tensor", "version")

    def __init__(self, tensor: torch.Tensor | None, version: int) -> None:
        self.tensor, self.version = tensor, version
        self.moves: _Moves | None = None

    def is_current(self) -> bool:
        """Whether nobody wrote, but for announced writes to other bytes."""
        if self.tensor is None:
            return False
        return version_of(self.tensor) - (self.moves.count if self.moves is not None else 0) == self.version

    def is_intact(self) -> bool:
        """Whether the tensor can be given out as what its call returned."""
        return self.is_current() and self.tensor is not None and not _is_released(self.tensor)


class Payloads:
    """Outputs per node, detached and sharing storage, as they were at that call.

    wants: whether the output of a node is to be kept at all, asked after its event was appended; None keeps every one.
    A tensor is copied at once where no later writer can be seen coming: without a version, or when its memory has
    been handed to numpy or another library. Tensors of a user's own class are kept as they are.
    """

    def __init__(self, wants: Callable[[int], bool] | None = None) -> None:
        self._wants = wants
        # node -> slot, or the call's structure with a slot in the place of each tensor
        self._kept: dict[int, object] = {}
        self._storages: dict[int, _Storage] = {}
        self._unindexed: list[_Slot] = []
        self._serial = 0
        # Writes that were announced and are being made: storage, a tensor written to, its version before.
        self._writing: list[tuple[_Storage, torch.Tensor, int]] = []
        self._exposed: set[int] = set()

    def keep(self, node: int, out: object, written: Iterable[torch.Tensor] = ()) -> None:
        """Keep the outputs of a node: what its call returned, or what it wrote if it returned no tensor."""
        if self._writing:
            self._finish_writes()
        if self._wants is not None and not self._wants(node):
            return
        if out is None:
            tensors = list({id(t): t for t in written}.values())
            out = tensors[0] if len(tensors) == 1 else tensors
        # Most calls return one tensor.
        self._kept[node] = self._hold(out) if isinstance(out, torch.Tensor) else map_tensors(out, self._hold)

    def _hold(self, tensor: torch.Tensor) -> _Slot:
        kept, version = tensor, version_of(tensor)
        if type(tensor) in PLAIN_TYPES:
            kept = undispatched(tensor.detach)
            if version == NO_VERSION or (self._exposed and self._is_exposed(kept)):
                kept = undispatched(kept.clone)
                version = version_of(kept)
        slot = _Slot(kept, version)
        self._unindexed.append(slot)
        return slot

    def retain(self, nodes: Collection[int]) -> None:
        """Let go of every value but those of these nodes. To be called when the last op has been kept."""
        self._finish_writes()
        self._kept = {node: kept for node, kept in self._kept.items() if node in nodes}
        # Nothing is written any more, and the index would hold what was let go.
        self._storages.clear()
        self._unindexed.clear()

    def holds(self, node: int) -> bool:
        """Whether a value was kept for a node."""
        return node in self._kept

    # -- writers
    def save_from_write(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy what is kept of the bytes that an op is about to write, each view of them once."""
        self._finish_writes()
        self._index()
        copies: dict[tuple[object, ...], torch.Tensor] = {}
        seen: set[int] = set()
        for tensor in tensors:
            place = extent(tensor)
            storage = self._storages.get(place[0]) if place is not None else None
            if place is None or storage is None:
                continue
            for slot in storage.take(place[1], place[2]):
                _copy(slot, copies)
            if place[0] not in seen:  # all tensors of a storage have one counter
                seen.add(place[0])
                self._writing.append((storage, tensor, version_of(tensor)))

    def _finish_writes(self) -> None:
        """What the announced writes did to the version counters."""
        for storage, tensor, before in self._writing:
            storage.moves.count += version_of(tensor) - before
        self._writing.clear()

    def expose(self, tensor: torch.Tensor) -> None:
        """Memory leaves torch's sight: copy what is kept of it, and whatever will be kept of it later."""
        self.save_from_write([tensor])
        place = extent(tensor)
        if place is not None:
            self._exposed.add(place[0])

    def _is_exposed(self, tensor: torch.Tensor) -> bool:
        place = extent(tensor)
        return place is not None and place[0] in self._exposed

    def _index(self) -> None:
        for slot in self._unindexed:
            place = extent(slot.tensor) if slot.tensor is not None else None
            if place is not None:
                storage = self._storages.get(place[0])
                if storage is None:
                    storage = self._storages[place[0]] = _Storage()
                self._serial += 1
                storage.add(place[1], place[2], self._serial, slot)
                slot.moves = storage.moves
                slot.version -= storage.moves.count
        self._unindexed.clear()

    # -- reading
    def value(self, node: int, label: str) -> object:
        """The kept output of a node: the tensor, or the call's structure when it has several outputs.

        Raises UnavailableError[payload_unavailable] if it was not kept, [payload_overwritten] if a writer that no
        name announced changed it, or its memory was given up.
        """
        if node not in self._kept:
            fail("payload_unavailable", f"the value of {label} was not kept", label=label)
        value = self.intact(node)
        if value is None:
            fail("payload_overwritten", f"the value of {label} was overwritten after its call", label=label)
        if any(slot.tensor is not None and in_transform(slot.tensor) for slot in _slots(self._kept[node])):
            what = f"the value of {label} was void when its transform of torch.func ended"
            fail("payload_unavailable", what, label=label)
        return value

    def intact(self, node: int) -> object:
        """The kept output of a node as its call left it; None if it was not kept or was overwritten since."""
        self._finish_writes()
        kept = self._kept.get(node)
        if kept is None or not all(slot.is_intact() for slot in _slots(kept)):
            return None
        return map_tensors(kept, lambda slot: slot.tensor, _Slot)


def _slots(kept: object) -> list[_Slot]:
    found: list[_Slot] = []
    map_tensors(kept, found.append, _Slot)
    return found


def _copy(slot: _Slot, copies: dict[tuple[object, ...], torch.Tensor]) -> None:
    """Give a slot its own copy; slots that see the same bytes in the same way share one."""
    tensor = slot.tensor
    if tensor is None or not slot.is_current():
        slot.tensor, slot.version = None, _LOST
    elif type(tensor) in PLAIN_TYPES:
        key = _view_of(tensor)
        if key not in copies:
            copies[key] = undispatched(tensor.clone)
        slot.tensor, slot.moves = copies[key], None
        slot.version = version_of(copies[key])


def _view_of(tensor: torch.Tensor) -> tuple[object, ...]:
    return (
        tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype,
        tensor.is_conj(), tensor.is_neg(),
    )  # fmt: skip


def _is_released(tensor: torch.Tensor) -> bool:
    """Whether the storage has become smaller than what the tensor needs; reading it would read foreign memory."""
    place = extent(tensor)
    return place is not None and place[2] > tensor.untyped_storage().nbytes()
