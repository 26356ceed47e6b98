"""The `forward` of the model's classes, watched so that a call past `nn.Module.__call__` opens a module frame, too."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

# class -> (traces that watch it, the forward it holds itself, the one put in its place)
_watched: dict[type, tuple[int, types.FunctionType, Any]] = {}


def forward_classes(modules: Iterable[nn.Module]) -> list[type]:
    """Classes that hold a forward which some of these modules may run."""
    found: dict[type, None] = {}
    for kind in dict.fromkeys(map(type, modules)):
        if issubclass(kind, torch.jit.ScriptModule):  # compiled by reading its forward
            continue
        for base in kind.__mro__:
            if base is nn.Module:
                break
            if isinstance(vars(base).get("forward"), types.FunctionType):
                found[base] = None
    return list(found)


def watch(kinds: Iterable[type], active: Mapping[int, Any], watched: list[type]) -> None:
    """Let every forward of these classes ask for the watcher of its thread. Not thread-safe.

    watched: gets each class as soon as it is to be released, so that an interrupt leaves nothing behind.
    """
    for kind in kinds:
        count, plain, watching = _watched.get(kind, (0, None, None))
        if plain is None:
            plain = vars(kind)["forward"]
            watching = _watching(plain, active)
            try:
                kind.forward = watching  # type: ignore[attr-defined]
            except Exception:  # noqa: BLE001 - a class that lets nobody change it, in whatever words
                continue
        _watched[kind] = (count + 1, plain, watching)
        watched.append(kind)


def release(kinds: Iterable[type]) -> None:
    """Undo `watch`."""
    for kind in kinds:
        if kind in _watched:
            count, plain, watching = _watched[kind]
            if count > 1:
                _watched[kind] = (count - 1, plain, watching)
            else:
                del _watched[kind]
                if vars(kind).get("forward") is watching:  # else the forward gave its class another one
                    kind.forward = plain  # type: ignore[attr-defined]


def _watching(plain: Callable[..., object], active: Mapping[int, Any]) -> Callable[..., object]:
    ident = threading.get_ident

    @functools.wraps(plain)
    def forward(self: nn.Module, *args: object, **kwargs: object) -> object:
        watcher = active.get(ident())
        if watcher is None or watcher.modules.running is self:  # through its __call__, or by the class above
            return plain(self, *args, **kwargs)
        return watcher.run_module(plain, self, args, kwargs)

    return forward


# Where the frames of one module end and those of its caller begin.
FORWARD: types.CodeType = getattr(_watching(forward_classes, {}), "__code__")  # noqa: B009
