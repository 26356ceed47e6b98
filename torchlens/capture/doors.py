"""Functions by which tensors come, go and change unseen by any function mode, replaced for the length of a trace.

The boundaries of `torch.func`, where a tensor enters a transform as another object and leaves it as a third; a storage
that is taken over; a part of a complex tensor that is assigned; the making of parameters; the swap of two tensors,
which torch refuses while anybody refers to them weakly, as a recorder does; and the start of a thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from time import perf_counter_ns
from typing import Any, NamedTuple

import torch

from torchlens.capture.dispatch import Recorder
from torchlens.capture.functions import RECORD, FunctionInfo
from torchlens.capture.kinds import runs_code
from torchlens.capture.tensors import flat_tensors

OP, APPLY, ALIAS, SWAP, ASSIGN, THREAD = "op", "apply", "alias", "swap", "assign", "thread"
FUNCTION, CLASS, STATIC, SETTER = "function", "class", "static", "setter"
_TRANSFORMS = {
    "torch._functorch.vmap": ("_add_batch_dim", "_remove_batch_dim"),
    "torch._functorch.eager_transforms": (
        "_wrap_for_grad", "_unwrap_for_grad", "_wrap_functional_tensor", "_unwrap_functional_tensor",
    ),
}  # fmt: skip
# Ops whose name says that they write to their first argument.
_WRITES = frozenset({"set_", "set_real", "set_imag"})


class Door(NamedTuple):
    """owner.name, how it is replaced there, and what passing it means."""

    owner: Any
    name: str
    form: str
    kind: str


def doors() -> Iterator[Door]:
    """What is to be replaced; of modules only those that are imported already."""
    for module, names in _TRANSFORMS.items():
        if (owner := sys.modules.get(module)) is not None:
            yield from (Door(owner, name, FUNCTION, OP) for name in names if hasattr(owner, name))
    nested: Any = torch._C._nested  # pyright: ignore[reportAttributeAccessIssue]
    yield Door(nested, "nested_tensor", FUNCTION, OP)
    yield Door(torch.Tensor, "set_", FUNCTION, OP)
    yield Door(torch.Tensor, "real", SETTER, OP)
    yield Door(torch.Tensor, "imag", SETTER, OP)
    yield Door(torch.Tensor, "as_subclass", FUNCTION, OP)
    yield Door(torch.Tensor, "_make_subclass", STATIC, ALIAS)
    yield Door(torch.autograd.Variable, "__new__", STATIC, ALIAS)
    yield Door(torch.autograd.Function, "apply", CLASS, APPLY)
    yield Door(torch.nn.Module, "__setattr__", FUNCTION, ASSIGN)
    yield Door(torch.utils, "swap_tensors", FUNCTION, SWAP)
    yield Door(threading.Thread, "start", FUNCTION, THREAD)


class Part:
    """The real or imaginary part of a tensor as torch has it, but for a setter that no function mode sees.

    One object per part and process: torch hands its `__get__` to function modes, which keep what they know of it.
    """

    def __init__(self, name: str) -> None:
        self.__name__, self._plain = name, getattr(torch.Tensor, name)
        self._set: Callable[[torch.Tensor, object], object] = self._plain.__set__

    def __get__(self, tensor: torch.Tensor | None, owner: type | None = None) -> Any:
        return self if tensor is None else self._plain.__get__(tensor, owner)

    def __set__(self, tensor: torch.Tensor, value: object) -> None:
        self._set(tensor, value)

    def watched(self, wrap: Callable[[Callable[..., object]], Callable[..., object]]) -> Part:
        """The same part, set through a wrapper."""
        self._set = wrap(self._plain.__set__)
        return self


@cache
def part(name: str) -> Part:
    """`Tensor.real` or `Tensor.imag` to put in the place of torch's own."""
    return Part(name)


class Doorkeeper:
    """Tells a recorder of what passes."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._tensors = recorder, recorder.log.tensors
        self.threads = 0

    def passes(
        self, kind: str, name: str, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run one call of a door."""
        if kind == APPLY:
            return self._apply(plain, args, kwargs)
        if kind == ASSIGN:
            return self._assign(plain, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            return self._passes(kind, name, plain, args, kwargs)

    def _passes(
        self, kind: str, name: str, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if kind == OP:
            if any(runs_code(type(tensor)) for tensor in flat_tensors(args)):
                return plain(*args, **kwargs)  # it may be half built yet
            info = FunctionInfo(plain, name, RECORD, name in _WRITES)
            return self._recorder.record(info, plain, args, dict(kwargs))
        if kind == SWAP:
            return self._swap(plain, *args, **kwargs)
        out = plain(*args, **kwargs)
        if kind == THREAD:
            self.threads += 1
        elif (source := kwargs.get("data", args[1] if len(args) > 1 else None)) is not None:
            self._alias(out, source)
        return out

    def _alias(self, out: torch.Tensor, source: torch.Tensor) -> None:
        """The new object holds what the op made that made the old one."""
        if runs_code(type(out)):
            return
        made = self._tensors.current(source)
        if made is not None and made.node >= 0 and made.state == 0:
            self._tensors.alias(out, made, 0)

    def _apply(self, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """An autograd function: its inner calls are the ops, unless a result came about unseen; then it is one op."""
        log = self._recorder.log
        start = perf_counter_ns()
        out = plain(*args, **kwargs)
        nanoseconds = perf_counter_ns() - start
        if any(log.tensors.find(tensor) is None for tensor in flat_tensors(out)):
            info = FunctionInfo(plain, args[0].__name__, RECORD, False)
            site = self._recorder.sites.walk(sys._getframe(4))
            with torch._C.DisableTorchFunction():
                log.append_op(info, log.read(args[1:], dict(kwargs)), out, nanoseconds, site)
        return out

    def _assign(self, plain: Callable[..., Any], module: torch.nn.Module, name: str, value: object) -> None:
        """An attribute of a module; a tensor put in the place of a buffer is its next version."""
        buffers = vars(module).get("_buffers")
        before = buffers.get(name) if type(buffers) is dict else None  # a scripted module holds none itself
        plain(module, name, value)  # may run the setter of a property, whose calls are the forward's
        with torch._C.DisableTorchFunction():
            if before is not None and isinstance(value, torch.Tensor) and value is not before:
                self._recorder.log.reassign(before, value)
            elif isinstance(value, torch.nn.Parameter) and type(buffers) is dict:
                self._recorder.log.modules.add_param(module, name, value)
                self._recorder.log.claim_state()

    def _swap(self, plain: Callable[..., Any], t1: torch.Tensor, t2: torch.Tensor) -> Any:
        """What is known of two tensors changes places with their contents."""
        state = self._recorder.log.modules.state
        made = [self._tensors.forget(t1), self._tensors.forget(t2)]
        try:
            out = plain(t1, t2)
            made.reverse()
            return out
        finally:
            for tensor, entry in zip((t1, t2), made, strict=True):
                if entry is not None and (entry.node >= 0 or id(tensor) in state):
                    self._tensors.alias(tensor, entry, state.get(id(tensor), 0))
