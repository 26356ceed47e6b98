"""The function mode that sees every torch call of one thread: skips it, runs it and logs it, or opens it.

While its handler runs, torch has popped the mode, so nothing done in it is seen again. Whatever can be derived later
(labels, argument names, FLOPs, lines) is left to `finish`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from torchlens.capture.callsite import Sites
from torchlens.capture.event_log import NO_WRITES, Call, EventLog, Writes
from torchlens.capture.events import BoolRead
from torchlens.capture.functions import (
    OPEN,
    READ,
    SHARES_MEMORY,
    SILENT_WRITES,
    SKIP,
    TESTS,
    Bodies,
    FunctionInfo,
    info_of,
)
from torchlens.capture.kinds import PLAIN_TYPES
from torchlens.capture.renaming import rename_last_op
from torchlens.capture.shortcut import Shortcut
from torchlens.capture.tensors import flat_tensors


class Recorder(TorchFunctionMode):
    """Records the torch calls of one forward pass into a log.

    tests: every tensor that Python turned into a bool; reads: nodes that left as another Python value, by the name of
    the call that read them; classes: types met that are not torch's own, or may not be; composites: (first event, one
    past the last, name) of opened functions that made several ops, inner ones first.
    """

    fast = True

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log, self.sites = log, Sites()
        self._shortcut = Shortcut(log)
        self.tests: list[BoolRead] = []
        self.reads: dict[str, list[int]] = {}
        self.classes: dict[type, None] = {}
        self.composites: list[tuple[int, int, str]] = []
        self._bodies = Bodies()
        self._opening: list[tuple[object, int]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Route one call by what `functions` knows of it."""
        info = info_of(func)
        if info.action == SKIP:
            return func(*args, **kwargs) if kwargs else func(*args)
        if info.pure and self.fast and not types and not torch._C._len_torch_function_stack():
            glance = self._shortcut.read(args, kwargs)
            if glance is not None:
                site = self.sites.walk(sys._getframe(1))
                start = perf_counter_ns()
                out = func(*args, **kwargs) if kwargs else func(*args)
                nanoseconds = perf_counter_ns() - start
                if type(out) is torch.Tensor:
                    self._shortcut.append(info, glance, kwargs, out, nanoseconds, site)
                else:
                    self._append(info, Call(*glance, kwargs), out, nanoseconds, site)
                return out
        # Torch names its own Parameter here too; only a class of the user has a say.
        overridden = bool(types) and not PLAIN_TYPES.issuperset(types)
        if overridden:
            self.classes.update(dict.fromkeys(types))
        if info.action == OPEN and not overridden and not _foreign_modes():
            return self._open(info, args, kwargs or {})
        if info.action == READ:
            return self._read(info, args, kwargs or {})
        return self.record(info, func, args, kwargs, overridden=overridden)

    def record(
        self,
        info: FunctionInfo,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        *,
        state: Mapping[str, torch.Tensor] | None = None,
        written: list[torch.Tensor] | None = None,
        overridden: bool = False,
    ) -> Any:
        """Run one call and log it.

        state: parameters and buffers by address that it is known to read beside its arguments; written: filled by the
        call itself with tensors that it wrote without their version telling; overridden: an argument's class handles
        torch functions itself.
        """
        site = self.sites.walk(sys._getframe(2))
        # Only then can a question to a tensor reach somebody's handler; the guard has a cost of its own.
        guarded = overridden or torch._C._len_torch_function_stack() > 0
        if guarded:
            with torch._C.DisableTorchFunction():
                call, writes = self._before(info, args, kwargs)
        else:
            call, writes = self._before(info, args, kwargs)
        if state:
            self.log.read_state(call, state)
            if written is not None and self.log.payloads is not None:
                self.log.payloads.save_from_write(state.values())
        if written is not None:
            writes = Writes(writes.named, written)
        start = perf_counter_ns()
        out = func(*args, **kwargs) if kwargs else func(*args)
        nanoseconds = perf_counter_ns() - start
        self._append(info, call, out, nanoseconds, site, writes, guarded=guarded)
        return out

    def is_on(self) -> bool:
        """Whether calls made now reach the recorder."""
        return any(torch._C._get_function_stack_at(i) is self for i in range(torch._C._len_torch_function_stack()))

    def _append(
        self, info: FunctionInfo, call: Call, out: Any, nanoseconds: int, site: tuple[object, ...],
        writes: Writes = NO_WRITES, *, guarded: bool = False,
    ) -> None:  # fmt: skip
        if guarded or (isinstance(out, torch.Tensor) and type(out) not in PLAIN_TYPES):
            self.classes.update((type(tensor), None) for tensor in flat_tensors(out))
            with torch._C.DisableTorchFunction():
                self.log.append_op(info, call, out, nanoseconds, site, writes)
        else:
            self.log.append_op(info, call, out, nanoseconds, site, writes)

    def _before(self, info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> tuple[Call, Writes]:
        """Look at the arguments, and copy kept values that the call is about to overwrite."""
        call, writes = self.log.read(args, kwargs), NO_WRITES
        if info.mutates or info.silent or (kwargs and "out" in kwargs):
            writes = _writes_of(info, args, kwargs or {})
            if self.log.payloads is not None:
                self.log.payloads.save_from_write([*writes.named, *writes.silent])
        return call, writes

    def _read(self, info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor leaves the graph as a Python value; a bool is a possible branch test."""
        log, tensor = self.log, args[0] if args and isinstance(args[0], torch.Tensor) else None
        shares = tensor is not None and info.name in SHARES_MEMORY
        if shares and log.payloads is not None:
            with torch._C.DisableTorchFunction():
                log.payloads.expose(args[0])
        out = info.func(*args, **kwargs)
        if shares and not isinstance(out, (torch.UntypedStorage, torch.TypedStorage)):
            log.tensors.aliases.hold(args[0], out)
        node = -1 if tensor is None else log.node_of(tensor)
        if node < 0:
            return out
        if info.name in TESTS:
            site = self.sites.walk(sys._getframe(2))
            self.tests.append(BoolRead(node, bool(out), site, log.modules.current, len(log.events)))
        else:
            self.reads.setdefault(info.name.strip("_"), []).append(node)
        return out

    def opened(self) -> list[str]:
        """Names of the opened functions that are running, outermost first."""
        return [str(getattr(func, "__name__", "")) for func, _ in self._opening]

    def _open(self, info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a Python-level torch function so that its inner calls are seen; one inner op takes its public name."""
        log, func = self.log, info.func
        assert isinstance(func, types.FunctionType)
        if self._opening and self._opening[-1] == (func, log.op_count):  # its body dispatches back to itself
            return self.record(info, func, args, kwargs)
        before, first = log.op_count, len(log.events)
        self._opening.append((func, before))
        torch._C._push_on_torch_function_stack(self)
        start = perf_counter_ns()
        try:
            out = self._bodies.of(func)(*args, **kwargs)
        finally:
            torch._C._pop_torch_function_stack()
            self._opening.pop()
        nanoseconds = perf_counter_ns() - start
        made = log.op_count - before
        if made == 1:
            rename_last_op(log, info, args, kwargs)
        elif made > 1:
            self.composites.append((first, len(log.events), info.name))
        elif any(log.tensors.find(tensor) is None for tensor in flat_tensors(out)):
            # Its body made tensors by means that no mode sees: the whole call is the op.
            log.append_op(info, log.read(args, kwargs), out, nanoseconds, self.sites.walk(sys._getframe(2)))
        return out


def _foreign_modes() -> bool:
    """Whether another function mode of the user is below ours; a default device alone changes factories only."""
    return any(
        type(torch._C._get_function_stack_at(i)) is not DeviceContext
        for i in range(torch._C._len_torch_function_stack())
    )


def _writes_of(info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Writes:
    """What a call is about to write, by its name.

    Named are `out=`, every tensor of an overload whose schema says so, else the first argument (a list for foreach);
    silent are the statistics of fused norms in training mode, and the target of `x.data = ...`.
    """
    if info.silent:
        switch, statistics = SILENT_WRITES[info.silent]
        found = [_argument(args, kwargs, *place) for place in statistics]
        on = switch is None or bool(_argument(args, kwargs, *switch))
        return Writes([], [value for value in found if on and isinstance(value, torch.Tensor)])
    if info.name == "set_data":
        return Writes([], flat_tensors(args[:1]))
    if "out" in kwargs:
        return Writes(flat_tensors(kwargs["out"]), [])
    if isinstance(info.func, torch._ops.OpOverload):
        places = enumerate(info.func._schema.arguments)
        found = [_argument(args, kwargs, i, a.name) for i, a in places if a.alias_info and a.alias_info.is_write]
        return Writes(flat_tensors(found), [])
    return Writes(flat_tensors(args[0]) if args else flat_tensors(kwargs)[:1], [])


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str) -> Any:
    return args[position] if position < len(args) else kwargs.get(name)
