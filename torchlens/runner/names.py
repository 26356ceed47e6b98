"""What a dotted name of a configuration leads to, and where that is really defined. Imports what it is asked for."""

from __future__ import annotations

import importlib
from types import BuiltinFunctionType, ModuleType
from typing import Any


def locate(target: str) -> Any:
    """What a dotted name leads to: attributes before modules, in the order in which Hydra looks."""
    first, *parts = target.split(".")
    found: Any = importlib.import_module(first)
    path = first
    for part in parts:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            if not isinstance(found, ModuleType):
                raise
            found = importlib.import_module(path)
    return found


def origin(target: str) -> str:
    """Where a target is defined, whatever name it is reached by.

    A function compiled into a package counts as defined in the module of that package that offers it: functions such
    as torch.nn.functional.conv2d have no other home.
    """
    found = locate(target)
    name = getattr(found, "__qualname__", None) or type(found).__qualname__
    home = _module(found)
    if isinstance(found, BuiltinFunctionType):
        offering = locate(target.rpartition(".")[0])
        if isinstance(offering, ModuleType) and _top(offering.__name__) == _top(home):
            return f"{offering.__name__}.{found.__name__}"
    return f"{home}.{name}"


def _module(value: Any) -> str:
    """Name of the module that defines a value; of a bound builtin or a slot of a class, of the one of that class."""
    if home := getattr(value, "__module__", None):
        return str(home)
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    return str(getattr(owner, "__module__", None) or "builtins")


def _top(module: str) -> str:
    return module.partition(".")[0]
