"""The process-wide patches that a trace needs, installed by the first trace and taken back by the last.

Every wrapper passes straight through on threads without an active trace.
"""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch
from torch import nn

from torchlens.base.errors import fail
from torchlens.capture import doors, forwards
from torchlens.capture.doors import CLASS, SETTER, STATIC


class Watcher(Protocol):
    """What the patches call on the thread that traces. forward_classes: whose forward is watched."""

    forward_classes: list[type]

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

    def pass_door(
        self, kind: str, name: str, plain: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Run one call of a function that `doors` names."""
        ...

    def ran_elsewhere(self, module: nn.Module) -> None:
        """Another thread, which nobody traces, is about to call a module."""
        ...


# Frames that a call of a module takes while it is watched, for each that it takes unwatched.
_FRAMES = 4
_ACTIVE: dict[int, Watcher] = {}
_lock = threading.Lock()
_installed: list[ExitStack] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Route this thread's module and script calls to a watcher. Raises CaptureError[trace_nested]."""
    thread = threading.get_ident()
    if thread in _ACTIVE:
        fail("trace_nested", "a trace of this thread is already running")
    watched: list[type] = []
    try:
        with _lock:
            # First of all, so that whatever interrupts the rest finds it to be undone.
            _ACTIVE[thread] = watcher
            if not _installed:
                _installed.append(_install())
            forwards.watch(watcher.forward_classes, _ACTIVE, watched)
        yield
    finally:
        with _lock:
            del _ACTIVE[thread]
            forwards.release(watched)
            if not _ACTIVE and _installed:
                _installed.pop().close()


def _install() -> ExitStack:
    """Everything that a process needs while it traces; undone at once if a part of it fails."""
    with ExitStack() as undo:
        _install_into(undo)
        return undo.pop_all()


def _install_into(undo: ExitStack) -> None:
    if "torch._dynamo" in sys.modules:
        # A compiled module would trace our handler instead of running; importing dynamo to ask costs seconds.
        undo.enter_context(torch.compiler.set_stance("force_eager"))
    _replace(undo, nn.Module, "__call__", _module_call)
    _replace(undo, torch._C.ScriptFunction, "__call__", _script_call)
    _replace(undo, torch._C.ScriptMethod, "__call__", _script_call)
    for door in doors.doors():
        _open_door(undo, door)
    # A module call takes more frames while it is watched: what runs unwatched has to run watched.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_FRAMES * limit)
    undo.callback(_lower_limit, limit)
    if gc.isenabled():
        # One full collection in a process with large libraries costs more than a whole trace.
        gc.disable()
        undo.callback(gc.enable)


def _lower_limit(limit: int) -> None:
    """Put the recursion limit back, unless the forward set one of its own."""
    if sys.getrecursionlimit() == _FRAMES * limit:
        sys.setrecursionlimit(limit)


def _replace(undo: ExitStack, owner: Any, name: str, make: Callable[[Callable[..., object]], object]) -> None:
    held = vars(owner).get(name)
    setattr(owner, name, make(getattr(owner, name)))
    undo.callback(delattr, owner, name) if held is None else undo.callback(setattr, owner, name, held)


def _module_call(plain: Callable[..., object]) -> object:
    def call(self: nn.Module, *args: object, **kwargs: object) -> object:
        watcher = _ACTIVE.get(threading.get_ident())
        if watcher is None:
            for other in list(_ACTIVE.values()):
                other.ran_elsewhere(self)
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


def _open_door(undo: ExitStack, door: doors.Door) -> None:
    """Replace one function, method or property where it is held."""
    if door.form == SETTER:
        part = doors.part(door.name).watched(lambda plain: _door_call(door, plain, f"set_{door.name}"))
        setattr(door.owner, door.name, part)
        undo.callback(delattr, door.owner, door.name)
    elif door.form == CLASS:
        held = inspect.getattr_static(door.owner, door.name)
        _replace(undo, door.owner, door.name, lambda _: classmethod(_door_call(door, _bound(held), door.name)))
    elif door.form == STATIC:
        _replace(undo, door.owner, door.name, lambda plain: staticmethod(_door_call(door, plain, door.name)))
    else:
        _replace(undo, door.owner, door.name, lambda plain: _door_call(door, plain, door.name))


def _bound(held: Any) -> Callable[..., object]:
    """A class method as a function of its class."""
    return lambda cls, *args, **kwargs: held.__get__(None, cls)(*args, **kwargs)


def _door_call(door: doors.Door, plain: Callable[..., object], name: str) -> Callable[..., object]:
    @functools.wraps(plain)
    def call(*args: object, **kwargs: object) -> object:
        watcher = _ACTIVE.get(threading.get_ident())
        if watcher is None:
            return plain(*args, **kwargs)
        return watcher.pass_door(door.kind, name, plain, args, kwargs)

    return call
