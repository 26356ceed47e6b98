"""The function mode that sees every torch call of one thread: skips it, runs it and logs it, or opens it.

While its handler runs, torch has popped the mode, so nothing done in it is seen again. Whatever can be derived later
(labels, argument names, FLOPs, lines) is left to `finish`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchlens.capture import callsite
from torchlens.capture.event_log import EventLog
from torchlens.capture.functions import OPEN, READ, SILENT_WRITES, SKIP, Bodies, FunctionInfo, info_of
from torchlens.capture.tensors import flat_tensors


class Recorder(TorchFunctionMode):
    """Records the torch calls of one forward pass into a log.

    tests: (node, value, site) of every tensor that Python turned into a bool; composites: (first event, one past the
    last, name) of opened functions that made several ops, inner ones first.
    """

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log = log
        self.tests: list[tuple[int, bool, tuple[object, ...]]] = []
        self.composites: list[tuple[int, int, str]] = []
        self._bodies = Bodies()
        self._opening: list[tuple[object, int]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Route one call by what `functions` knows of it."""
        info = info_of(func)
        if info.action == SKIP:
            return func(*args, **kwargs) if kwargs else func(*args)
        if info.action == OPEN:
            return self._open(info, args, kwargs or {})
        if info.action == READ:
            return self._read(info, args, kwargs or {})
        return self.record(info, func, args, kwargs)

    def record(
        self,
        info: FunctionInfo,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        params: tuple[int, ...] = (),
    ) -> Any:
        """Run one call and log it. params: parameters it is known to use beside those among its arguments."""
        log = self.log
        call = log.read(args, kwargs)
        if params:
            call.params = params
        if log.payloads is not None and (info.mutates or (kwargs and "out" in kwargs)):
            log.payloads.save_from_write(_targets(info, args, kwargs))
        silent = _silently_written(info.name, args) if info.name in SILENT_WRITES else ()
        site = callsite.walk(sys._getframe(2))
        start = perf_counter_ns()
        out = func(*args, **kwargs) if kwargs else func(*args)
        nanoseconds = perf_counter_ns() - start
        log.append_op(info, call, out, nanoseconds, site, silent)
        return out

    def _read(self, info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor leaves the graph as a Python value; a bool is a possible branch test."""
        out = info.func(*args, **kwargs)
        if info.name == "__bool__" and args and isinstance(args[0], torch.Tensor):
            entry = self.log.tensors.find(args[0])
            if entry is not None and entry.node >= 0:
                self.tests.append((entry.node, bool(out), callsite.walk(sys._getframe(2))))
        return out

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
            log.rename_last_op(info, args, kwargs)
        elif made > 1:
            self.composites.append((first, len(log.events), info.name))
        elif any(log.tensors.find(tensor) is None for tensor in flat_tensors(out)):
            # Its body made tensors by means that no mode sees: the whole call is the op.
            log.append_op(info, log.read(args, kwargs), out, nanoseconds, callsite.walk(sys._getframe(2)))
        return out


def _targets(info: FunctionInfo, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[torch.Tensor]:
    """Tensors that a mutating call is about to write, by its name.

    These are `out=`, every tensor of an overload whose schema says so, else the first argument (a list for foreach).
    """
    if kwargs and "out" in kwargs:
        return flat_tensors(kwargs["out"])
    if isinstance(info.func, torch._ops.OpOverload):
        return flat_tensors(args)
    return flat_tensors(args[0]) if args else []


def _silently_written(name: str, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Statistics that a fused norm in training mode writes without telling; none in eval mode."""
    flag, positions = SILENT_WRITES[name]
    if len(args) <= flag or not args[flag]:
        return []
    return [args[i] for i in positions if isinstance(args[i], torch.Tensor)]
