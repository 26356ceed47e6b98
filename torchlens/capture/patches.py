"""The process-wide patches that a trace needs, installed by the first trace and taken back by the last.

Every wrapper passes straight through on threads without an active trace.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

import torch
from torch import nn


class Watcher(Protocol):
    """What the patches call on the thread that traces."""

    def run_module(
        self, plain: Callable[..., object], module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Run one module call."""
        ...

    def run_script(
        self, plain: Callable[..., object], script: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Run one call of a TorchScript function or method, which no function mode sees."""
        ...


_ACTIVE: dict[int, Watcher] = {}
_lock = threading.Lock()
_installed: list[ExitStack] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Route this thread's module and script calls to a watcher."""
    thread = threading.get_ident()
    with _lock:
        if not _ACTIVE:
            _installed.append(_install())
        _ACTIVE[thread] = watcher
    try:
        yield
    finally:
        with _lock:
            del _ACTIVE[thread]
            if not _ACTIVE:
                _installed.pop().close()


def is_active() -> bool:
    """Whether this thread is being traced."""
    return threading.get_ident() in _ACTIVE


def _install() -> ExitStack:
    undo = ExitStack()
    _replace(undo, nn.Module, "__call__", _module_call)
    _replace(undo, torch._C.ScriptFunction, "__call__", _script_call)
    _replace(undo, torch._C.ScriptMethod, "__call__", _script_call)
    # A module call takes more frames while it is watched: what runs unwatched has to run watched.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * limit)
    undo.callback(sys.setrecursionlimit, limit)
    if gc.isenabled():
        # One full collection in a process with large libraries costs more than a whole trace.
        gc.disable()
        undo.callback(gc.enable)
    if "torch._dynamo" in sys.modules:
        # A compiled module would trace our handler instead of running; importing dynamo to ask costs seconds.
        undo.enter_context(torch.compiler.set_stance("force_eager"))
    return undo


def _replace(undo: ExitStack, owner: type, name: str, make: Callable[[Callable[..., object]], object]) -> None:
    plain = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, make(plain))
    undo.callback(setattr, owner, name, plain) if own else undo.callback(delattr, owner, name)


def _module_call(plain: Callable[..., object]) -> object:
    def call(self: nn.Module, *args: object, **kwargs: object) -> object:
        watcher = _ACTIVE.get(threading.get_ident())
        if watcher is None:
            return plain(self, *args, **kwargs)
        return watcher.run_module(plain, self, args, kwargs)

    return call


def _script_call(plain: Callable[..., object]) -> object:
    def call(self: object, *args: object, **kwargs: object) -> object:
        watcher = _ACTIVE.get(threading.get_ident())
        if watcher is None:
            return plain(self, *args, **kwargs)
        return watcher.run_script(plain, self, args, kwargs)

    return call
