"""Type guards for values that come from files and callers, of which nothing is known yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether this is a mapping; its keys are still to be checked."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a list or tuple, and not a text."""
    return isinstance(value, (list, tuple))
