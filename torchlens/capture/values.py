"""The tensors kept beside a trace: references, copied only just before something would overwrite them."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torchlens.base.errors import fail
from torchlens.capture.tensors import NO_VERSION, PLAIN_TYPES, extent, map_tensors, undispatched, version_of


class Payloads:
    """Outputs per node, detached and sharing storage, as they were at that call.

    A tensor is copied at once where no later writer can be seen coming: without a version, or when its memory has
    been handed to numpy or another library. Tensors of a user's own class are kept as they are.
    """

    def __init__(self) -> None:
        self._kept: dict[int, object] = {}
        # node -> [(kept tensor, its version when kept)]; what an unknown writer changed shows as a moved version
        self._versions: dict[int, list[tuple[torch.Tensor, int]]] = {}
        self._by_storage: dict[int, list[tuple[int, int, int]]] = {}
        self._unindexed: list[int] = []
        self._exposed: set[int] = set()

    def keep(self, node: int, out: object, written: Iterable[torch.Tensor] = ()) -> None:
        """Keep the outputs of a node: what its call returned, or what it wrote if it returned no tensor."""
        if out is None:
            tensors = list({id(t): t for t in written}.values())
            out = tensors[0] if len(tensors) == 1 else tensors
        versions: list[tuple[torch.Tensor, int]] = []
        if isinstance(out, torch.Tensor):  # most calls return one tensor
            self._kept[node] = self._hold(out, versions)
        else:
            self._kept[node] = map_tensors(out, lambda tensor: self._hold(tensor, versions))
        self._versions[node] = versions
        self._unindexed.append(node)

    def _hold(self, tensor: torch.Tensor, versions: list[tuple[torch.Tensor, int]]) -> torch.Tensor:
        kept, version = tensor, version_of(tensor)
        if type(tensor) in PLAIN_TYPES:
            kept = undispatched(tensor.detach)
            if version == NO_VERSION or (self._exposed and self._is_exposed(kept)):
                kept = undispatched(kept.clone)
                version = version_of(kept)
        versions.append((kept, version))
        return kept

    def save_from_write(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy the kept outputs that share bytes with tensors an op is about to write."""
        self._index()
        for tensor in tensors:
            place = extent(tensor)
            if place is None:
                continue
            storage, first, last = place
            hit: dict[int, None] = {}
            spared: list[tuple[int, int, int]] = []
            for row in self._by_storage.get(storage, ()):
                if row[1] < last and first < row[2]:
                    hit[row[0]] = None
                else:
                    spared.append(row)
            if hit:
                self._by_storage[storage] = spared
            for node in hit:
                self._copy(node)

    def expose(self, tensor: torch.Tensor) -> None:
        """Memory leaves torch's sight: copy what is kept of it, and whatever will be kept of it later."""
        self.save_from_write([tensor])
        place = extent(tensor)
        if place is not None:
            self._exposed.add(place[0])

    def _is_exposed(self, tensor: torch.Tensor) -> bool:
        place = extent(tensor)
        return place is not None and place[0] in self._exposed

    def _copy(self, node: int) -> None:
        versions: list[tuple[torch.Tensor, int]] = []
        intact = {id(kept): version == version_of(kept) for kept, version in self._versions[node]}

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            clone = undispatched(tensor.clone) if type(tensor) in PLAIN_TYPES else tensor
            versions.append((clone, version_of(clone) if intact.get(id(tensor), True) else NO_VERSION - 1))
            return clone

        self._kept[node] = map_tensors(self._kept[node], copy)
        self._versions[node] = versions

    def _index(self) -> None:
        for node in self._unindexed:
            for kept, _ in self._versions[node]:
                place = extent(kept)
                if place is not None:
                    self._by_storage.setdefault(place[0], []).append((node, place[1], place[2]))
        self._unindexed.clear()

    def value(self, node: int, label: str) -> object:
        """The kept output of a node: the tensor, or the call's structure when it has several outputs.

        Raises UnavailableError[payload_unavailable] if it was not kept, [payload_overwritten] if a writer that no
        name announced changed it, or its memory was given up.
        """
        if node not in self._kept:
            fail("payload_unavailable", f"the value of {label} was not kept", label=label)
        if any(version_of(kept) != version or _is_released(kept) for kept, version in self._versions[node]):
            fail("payload_overwritten", f"the value of {label} was overwritten after its call", label=label)
        return self._kept[node]


def _is_released(tensor: torch.Tensor) -> bool:
    """Whether the storage has become smaller than what the tensor needs; reading it would read foreign memory."""
    place = extent(tensor)
    return place is not None and place[2] > tensor.untyped_storage().nbytes()
