"""Which known tensor an unknown one shares memory with.

Tensors come into being by ways that no function mode sees: a numpy view of a tensor, dlpack, `nn.Parameter(t)`,
`torch.Tensor(t)`, a shallow copy. What they hold was made by an op all the same. Memory is looked at only when an
unknown tensor turns up, and then only that of tensors met since the last time and of those in the same block.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right, insort
from collections.abc import Iterator

import torch

from torchlens.capture.events import Known
from torchlens.capture.kinds import runs_code

# What asking for memory raises on tensors without any: sparse, nested, batched, fake.
_NO_MEMORY = (RuntimeError, NotImplementedError, AttributeError, ValueError, TypeError)


class Aliases:
    """Live tensors by the memory they lie in.

    fresh: ids of tensors registered since the last look; whoever registers a tensor adds its id.
    """

    def __init__(self, known: dict[int, Known]) -> None:
        self._known = known
        self.fresh: set[int] = set()
        self._held: dict[int, tuple[object, torch.Tensor]] = {}
        # first byte of each block of memory seen, ascending; the tensors that lie in it
        self._bases: list[int] = []
        self._tenants: dict[int, dict[int, None]] = {}

    def hold(self, tensor: torch.Tensor, owner: object) -> None:
        """Remember a tensor as long as an array lives that was given its memory; to the end where that is unknown."""
        key, held = id(owner), self._held
        try:
            held[key] = (weakref.ref(owner, lambda _: held.pop(key, None)), tensor)
        except TypeError:
            held[key] = (owner, tensor)

    def find(self, tensor: torch.Tensor) -> Known | None:
        """The entry of a live tensor made by a node, in whose memory this one lies; None if there is none.

        Of several the one of exactly the same extent, else the one made last.
        """
        place = span(tensor)
        return None if place is None else self.at(*place)

    def at(self, first: int, last: int) -> Known | None:
        """The same for the bytes of memory from first up to, not including, last."""
        place = (first, last)
        self._look()
        best: tuple[bool, int] = (False, -1)
        found: Known | None = None
        for entry, other in self._at(place[0]):
            if place[0] < other[1] and other[0] < place[1] and (rank := (other == place, entry.node)) > best:
                best, found = rank, entry
        return found

    def _look(self) -> None:
        for key in self.fresh:
            entry = self._known.get(key)
            tensor = entry.ref() if entry is not None else None
            block = None if tensor is None else _block(tensor)
            if block is None:
                continue
            if block not in self._tenants:
                insort(self._bases, block)
                self._tenants[block] = {}
            self._tenants[block][key] = None
        self.fresh.clear()

    def _at(self, byte: int) -> Iterator[tuple[Known, tuple[int, int]]]:
        """Live tensors made by a node, in the block of memory that begins last before a byte, with their spans."""
        position = bisect_right(self._bases, byte)
        if not position:
            return
        block = self._bases[position - 1]
        for key in list(self._tenants[block]):
            entry = self._known.get(key)
            tensor = entry.ref() if entry is not None else None
            if entry is None or tensor is None or _block(tensor) != block:
                del self._tenants[block][key]
            elif entry.node >= 0 and (place := span(tensor)) is not None:
                yield entry, place


def span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """First byte of memory that a tensor may touch and one past the last; None where it lies in none."""
    if runs_code(type(tensor)):
        return None
    try:
        first, size = tensor.data_ptr(), tensor.element_size()
        reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
        return (first, first + reach * size) if first and tensor.numel() else None
    except _NO_MEMORY:
        return None


def _block(tensor: torch.Tensor) -> int | None:
    if runs_code(type(tensor)):
        return None
    try:
        return tensor.untyped_storage().data_ptr() or None
    except _NO_MEMORY:
        return None
