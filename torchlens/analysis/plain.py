"""Argument values as plain data: what can be read, drawn and stored without torch and without the code that ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchlens.base.units import ELLIPSIS
from torchlens.records.tensors import TensorSpec

ATOMS = frozenset({int, float, bool, str, complex, type(None), TensorSpec, type(Ellipsis)})
_LIST_LIMIT = 256
# The base's own method: a subclass may print itself in words of its own, and may not be there when a trace is read.
_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (str, str.__str__),
)


def plain(value: object, lists: type = tuple) -> object:
    """A value that needs no torch to be read: numbers, texts, tuples, slices, tensor specs. lists: what they become."""
    if type(value) in ATOMS:
        return value
    if isinstance(value, (tuple, list)):
        items = [item if type(item) in ATOMS else plain(item, lists) for item in value[:_LIST_LIMIT]]
        if len(value) > _LIST_LIMIT:
            items.append(ELLIPSIS)
        return lists(items) if isinstance(value, list) else tuple(items)
    if isinstance(value, slice):
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    for kind, reduced in _BASES:  # a numpy scalar, a member of an enumeration: what it is to whom it is passed
        if isinstance(value, kind):
            return reduced(value)
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in list(value.items())[:_LIST_LIMIT]}
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
