"""The tensors kept beside a trace: references, copied only just before an in-place call would overwrite them."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torchlens.base.errors import fail
from torchlens.capture.tensors import extent, map_tensors, version_of


class Payloads:
    """Outputs per node, detached and sharing storage, as they were at that call."""

    def __init__(self) -> None:
        self._kept: dict[int, object] = {}
        # node -> [(kept tensor, its version when kept)]; what an unknown writer changed shows as a moved version
        self._versions: dict[int, list[tuple[torch.Tensor, int]]] = {}
        self._by_storage: dict[int, list[tuple[int, int, int]]] = {}
        self._unindexed: list[int] = []

    def keep(self, node: int, out: object, written: Iterable[torch.Tensor] = ()) -> None:
        """Keep the outputs of a node: what its call returned, or what it wrote if it returned no tensor."""
        if out is None:
            tensors = list({id(t): t for t in written}.values())
            out = tensors[0] if len(tensors) == 1 else tensors
        versions: list[tuple[torch.Tensor, int]] = []

        def hold(tensor: torch.Tensor) -> torch.Tensor:
            kept = tensor.detach()
            versions.append((kept, version_of(kept)))
            return kept

        self._kept[node] = map_tensors(out, hold)
        self._versions[node] = versions
        self._unindexed.append(node)

    def save_from_write(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy the kept outputs that share bytes with tensors an op is about to write."""
        self._index()
        for tensor in tensors:
            place = extent(tensor)
            if place is None:
                continue
            storage, first, last = place
            hit = [node for node, lo, hi in self._by_storage.get(storage, ()) if lo < last and first < hi]
            if hit:
                remaining = [row for row in self._by_storage[storage] if row[0] not in set(hit)]
                self._by_storage[storage] = remaining
            for node in dict.fromkeys(hit):
                self._copy(node)

    def _copy(self, node: int) -> None:
        versions: list[tuple[torch.Tensor, int]] = []
        intact = {id(kept): version == version_of(kept) for kept, version in self._versions[node]}

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            clone = tensor.clone()
            versions.append((clone, version_of(clone) if intact.get(id(tensor), True) else -2))
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
        name announced changed it.
        """
        if node not in self._kept:
            fail("payload_unavailable", f"the value of {label} was not kept", label=label)
        if any(version_of(kept) != version for kept, version in self._versions[node]):
            fail("payload_overwritten", f"the value of {label} was overwritten after its call", label=label)
        return self._kept[node]
