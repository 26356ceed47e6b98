"""What autograd keeps for the backward pass, op by op: the tensors held by the grad_fns that a call added.

Nothing is unpacked where hooks packed it, so no hook of the user runs and nothing is recomputed. To be used while no
function mode is on, or under `DisableTorchFunction`.
"""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

import torch
from torch._C import _autograd  # pyright: ignore[reportAttributeAccessIssue]
from torch.multiprocessing.reductions import StorageWeakRef

from torchlens.capture.tensors import flat_tensors

# Sequence number of the nodes that accumulate into `.grad`; they hold the parameter itself and no result of an op.
_ACCUMULATES = 2**64 - 1
_UNREADABLE = (RuntimeError, NotImplementedError, AttributeError, TypeError)

# What a Python number becomes as a tensor -> a smaller dtype of its kind.
_SMALLER = {torch.float64: torch.float32, torch.int64: torch.int32, torch.complex128: torch.complex64}

# Tensors held and the bytes of their storages; None: they cannot be told.
Held = tuple[int, int] | None


class SavedForBackward:
    """Observer: per node, how many tensors its grad_fns hold after the call, and how many bytes.

    rows: by node; a tensor counts once per storage within a node, parameters included; bytes are those of the storage
    that is kept alive. total: bytes over the whole trace, each storage once.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Held] = {}
        self.total = 0
        # Sequence numbers grow with every node of a graph; what came before belongs to a graph from outside.
        self._first = _sequence_number()
        self._seen: set[int] = set()
        # Weak references keep the identity of a storage from being used again, not its memory.
        self._storages: dict[object, object] = {}
        # Results whose grad_fn is attached only after their last op, as that of a custom autograd.Function is.
        self._pending: list[tuple[int, weakref.ref[torch.Tensor]]] = []

    def saw(self, node: int, out: object) -> None:
        """Walk from the outputs of a node to what earlier calls made."""
        enabled = torch.is_grad_enabled()
        if self._pending and enabled:
            self.settle()
        self.rows[node] = (0, 0)
        tensors = flat_tensors(out)
        self._attribute(node, tensors)
        if not enabled:
            self._pending.extend((node, weakref.ref(tensor)) for tensor in tensors)

    def settle(self) -> None:
        """Look again at results that were made without gradients: a grad_fn may have been attached since."""
        pending, self._pending = self._pending, []
        waiting: dict[int, list[torch.Tensor]] = {}
        for node, ref in pending:
            tensor = ref()
            if tensor is not None:
                waiting.setdefault(node, []).append(tensor)
        for node, tensors in waiting.items():
            self._attribute(node, tensors)

    def _attribute(self, node: int, tensors: list[torch.Tensor]) -> None:
        """Add to a node what the grad_fns of these tensors hold and no earlier node was given."""
        try:
            found = [grad_fn for tensor in tensors if (grad_fn := tensor.grad_fn) is not None]
            held = [_held_by(grad_fn) for grad_fn in self._new_nodes(found)] if found else []
        except _UNREADABLE:  # a view whose base was written to has no grad_fn to show
            self.rows[node] = None
            return
        own: dict[object, int] = {}
        for tensor in [tensor for part in held for tensor in part or ()]:
            key, nbytes, ref = _storage_of(tensor)
            own[key] = nbytes
            if key not in self._storages:
                self._storages[key] = ref
                self.total += nbytes
        before = self.rows[node]
        known = before is not None and None not in held
        self.rows[node] = (before[0] + len(own), before[1] + sum(own.values())) if before and known else None

    def _new_nodes(self, found: list[Any]) -> list[Any]:
        """The nodes of the graph behind these that no earlier call added, each once."""
        new: list[Any] = []
        while found:
            grad_fn = found.pop()
            number = grad_fn._sequence_nr()
            if number < self._first or number == _ACCUMULATES or number in self._seen:
                continue
            self._seen.add(number)
            new.append(grad_fn)
            found.extend(child for child, _ in grad_fn.next_functions if child is not None)
        return new


def _sequence_number() -> int:
    """The number that the next node of this thread's graph gets."""
    peek = getattr(_autograd, "_get_sequence_nr", None)
    if peek is not None:
        return int(peek())
    with torch.enable_grad():
        made = torch.ones((), requires_grad=True).view(())
    assert made.grad_fn is not None
    return int(made.grad_fn._sequence_nr()) + 1


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """Names of what nodes of this type saved, as it is packed."""
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def _held_by(grad_fn: Any) -> list[torch.Tensor] | None:
    """Tensors that a node of the graph holds; None if hooks packed them into something else, or they are gone."""
    found: list[torch.Tensor] = []
    try:
        for name in _fields(type(grad_fn)):
            packed = getattr(grad_fn, name)
            for one in packed if isinstance(packed, (list, tuple)) else (packed,):
                inner = _packed(grad_fn, name, one)
                if inner is None:
                    return None
                found += inner
        # A custom Function may put tensors on its context beside those it saves.
        found += flat_tensors(list(getattr(grad_fn, "__dict__", {}).values()))
    except _UNREADABLE:
        return None
    return found


def _packed(grad_fn: Any, name: str, packed: Any) -> list[torch.Tensor] | None:
    """Tensors in one saved value; None if a hook turned it into something without tensors."""
    if hasattr(packed, "unpack_hook"):
        tensors = [tensor for tensor in flat_tensors(packed.data) if not _is_number(tensor)]
        return None if packed.unpack_hook is not None and not tensors else tensors
    # Releases of torch that do not show what is packed: unpacking would run the hooks in force.
    if _autograd._top_saved_tensors_default_hooks(False) is not None:
        return None
    saved = flat_tensors(getattr(grad_fn, name.replace("_raw", "", 1)))
    return [tensor for tensor in saved if not _is_number(tensor)]


def _is_number(tensor: torch.Tensor) -> bool:
    """Whether this is a Python number that was passed to the op, as `x * 2` saves it; hooks do not see these either.

    Only a number gives way to a smaller dtype of its own kind.
    """
    smaller = _SMALLER.get(tensor.dtype)
    if smaller is None or tensor.dim() != 0 or tensor.device.type != "cpu":
        return False
    return torch.result_type(tensor, torch.empty((), dtype=smaller, device="cpu")) is smaller


def _storage_of(tensor: torch.Tensor) -> tuple[object, int, object]:
    """Identity of a tensor's storage, its bytes, and what keeps that identity from being used again."""
    try:
        storage = tensor.untyped_storage()
        ref = StorageWeakRef(storage)
        return ref.cdata, storage.nbytes(), ref
    except _UNREADABLE:
        return id(tensor), tensor.numel() * tensor.element_size(), tensor
