"""Whether each tensor argument of a call matters: change its values and see whether the result changes.

Works on copies. An argument that no change shows is reported, never passed as shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from torchlens.capture.memory import Copies, Workspace
from torchlens.capture.tensors import flat_tensors
from torchlens.proof.compare import no_values, same_bits
from torchlens.proof.notes import Leaf, Note

Result = tuple[list[torch.Tensor], dict[Leaf, torch.Tensor]]

# Arguments that give a shape, a dtype or a place only: name -> position, None for all of them.
_SHAPE_ONLY: dict[str, int | None] = {
    "zeros_like": 0, "ones_like": 0, "full_like": 0, "empty_like": 0, "rand_like": 0, "randn_like": 0,
    "randint_like": 0, "new_zeros": 0, "new_ones": 0, "new_empty": 0, "new_full": 0, "new_tensor": 0,
    "new_empty_strided": 0, "expand_as": 1, "view_as": 1, "reshape_as": 1, "type_as": 1, "to": 1, "resize_as_": 1,
}  # fmt: skip
# Arguments that are overwritten as a whole, so that what they held is gone.
_OVERWRITTEN = frozenset({
    "copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_",
    "geometric_", "set_data", "set_", "__setitem__",
})  # fmt: skip


def known_unused(name: str, position: tuple[int | str, ...]) -> bool:
    """Whether a function is known not to use the values of an argument."""
    if position[0] == "out" or (name in _OVERWRITTEN and position == (0,)):
        return True
    return name in _SHAPE_ONLY and _SHAPE_ONLY[name] == position[0]


class Perturbation:
    """Changes of the arguments of one call, as it is about to be made.

    tensors: what it gets; they are read, never written.
    """

    def __init__(self, note: Note, tensors: Mapping[Leaf, torch.Tensor]) -> None:
        self._note, self._tensors = note, tensors
        self._random = torch.Generator().manual_seed(0)
        self._base = self._outcome({})

    def shows(self, leaf: Leaf) -> bool:
        """Whether some change of one argument changes the result, the others as they are or changed too."""
        if self._base is None or no_values(self._tensors[leaf]) or self._is_index_of_sparse(self._base, leaf):
            return False
        if any(self._differs(self._base, {leaf: new}, leaf) for new in changes(self._tensors[leaf], self._random)):
            return True
        # A mask, a factor of zero or a decided comparison may hide it: with others it would show.
        others = {
            other: new
            for other, tensor in self._tensors.items()
            if other is not leaf
            and not no_values(tensor)
            and (new := next(changes(tensor, self._random), None)) is not None
        }
        if not others:
            return False
        base = self._outcome(others)
        return base is not None and any(
            self._differs(base, {**others, leaf: new}, leaf) for new in changes(self._tensors[leaf], self._random)
        )

    def _is_index_of_sparse(self, base: Result, leaf: Leaf) -> bool:
        """Whether an argument may say where the values of a sparse result lie: other places may lie outside of it."""
        tensor = self._tensors[leaf]
        whole = not (tensor.is_floating_point() or tensor.is_complex())
        return whole and any(out.layout is not torch.strided for out in base[0])

    def shows_write(self, leaf: Leaf, written: list[torch.Tensor]) -> bool:
        """Whether other bytes where another op wrote through an alias change the result."""
        tensor = self._tensors[leaf]
        if self._base is None or no_values(tensor):
            return False
        for target in written:
            if no_values(target) or target.untyped_storage()._cdata != tensor.untyped_storage()._cdata:
                continue
            for new in changes(target, self._random):
                changed = _with_bytes(tensor, target, new)
                if self._differs(self._base, {leaf: changed}, leaf):
                    return True
        return False

    def _outcome(self, changed: Mapping[Leaf, torch.Tensor]) -> Result | None:
        """Results, and the arguments that the call wrote; None where it raises."""
        tensors = {leaf: changed.get(leaf, tensor) for leaf, tensor in self._tensors.items()}
        copies = Copies()
        sources = {leaf: copies.meet(tensor.detach()) for leaf, tensor in tensors.items()}
        given: dict[Leaf, torch.Tensor] = {}
        for leaf, source in sources.items():
            # One space each: a write must not reach another argument, whose change would then not be its own.
            own = Workspace(copies, frozenset([source.storage] if source.storage is not None else [])).tensor(source)
            if own is None:
                return None
            given[leaf] = own
        try:
            out = flat_tensors(self._note.call(given))
        except Exception:  # noqa: BLE001 - a value that the call refuses
            return None
        written = {leaf: own for leaf, own in given.items() if not _equal(own, tensors[leaf])}
        return [tensor.detach() for tensor in out], written

    def _differs(self, base: Result, changed: dict[Leaf, torch.Tensor], leaf: Leaf) -> bool:
        other = self._outcome(changed)
        if other is None:  # the value was looked at, or the call would not have refused it
            return True
        if len(other[0]) != len(base[0]) or any(not _equal(a, b) for a, b in zip(base[0], other[0], strict=True)):
            return True
        if leaf in other[1] and leaf not in base[1]:
            return True
        return any(leaf_ not in other[1] or not _equal(was, other[1][leaf_]) for leaf_, was in base[1].items())


def changes(tensor: torch.Tensor, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Other values for a tensor, of the kind that it holds; none where there are no plain values."""
    plain = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.numel():
        return
    if tensor.is_floating_point() or tensor.is_complex():
        wide = plain.to(torch.complex128 if tensor.is_complex() else torch.float64)
        for factor in (1.0, 1.0, -3.0):
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.device)
            yield (wide * factor + (1 + wide.abs().nan_to_num(posinf=0.0)) * noise).to(tensor.dtype)
        yield torch.full_like(plain, float("nan"))
    elif tensor.dtype is torch.bool:
        yield ~plain
        yield plain ^ (torch.rand(tensor.shape, generator=generator) < 0.5).to(tensor.device)
    else:
        yield from _whole_numbers(plain, generator)


def _whole_numbers(plain: torch.Tensor, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Other whole numbers within the range that the tensor spans, or beside it if all are one number."""
    low, high = int(plain.min()), int(plain.max())
    if low < high:
        yield plain.max() - plain + plain.min()  # by tensors: the sum of both ends may be no number of the dtype
        order = torch.randperm(plain.numel(), generator=generator).to(plain.device)
        yield plain.reshape(-1)[order].reshape(plain.shape)
    for step in (-1, 1):
        if low + step >= 0 or low < 0:
            yield plain + step


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if no_values(one) or no_values(other):
        return True
    return same_bits(one, other)


def _with_bytes(tensor: torch.Tensor, target: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor, as it would be if another tensor of the same storage held new values."""
    copies = Copies()
    sources = [copies.meet(tensor.detach()), copies.meet(target.detach())]
    space = Workspace(copies, frozenset(source.storage for source in sources if source.storage is not None))
    found, alias = (space.tensor(source) for source in sources)
    assert found is not None
    assert alias is not None
    alias.copy_(new)
    return found
