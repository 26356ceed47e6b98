"""The record classes of this package by name, and what of a class decides how its records are written and read.

Nothing is ever imported or called by a name from outside, except the classes found here.
"""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from keyword import iskeyword
from typing import Any, cast

NO_DEFAULT = object()


@lru_cache(maxsize=1)
def record_types() -> Mapping[str, type]:
    """The dataclasses and named tuples of this package, by name: a class may move between its modules."""
    package = __name__.rpartition(".")[0]
    found: dict[str, type] = {}
    for info in pkgutil.iter_modules(import_module(package).__path__, package + "."):
        for item in vars(import_module(info.name)).values():
            if isinstance(item, type) and item.__module__ == info.name and fields_of(item):
                found[item.__name__] = item
    return found


def is_record(kind: type) -> bool:
    """Whether a class is one of them."""
    return record_types().get(kind.__name__) is kind


@lru_cache(maxsize=256)
def fields_of(kind: type[object]) -> tuple[str, ...]:
    """Names of the fields that make a record, in order; those that begin with `_` are caches."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind) if field.init and not field.name.startswith("_"))
    names: tuple[str, ...] = cast("Any", kind).__dict__.get("_fields", ())
    return names


def default_of(kind: type[object], name: str) -> Any:
    """The default of a field; NO_DEFAULT if it has none that is one fixed value."""
    if not dataclasses.is_dataclass(kind):
        return cast("Any", kind)._field_defaults.get(name, NO_DEFAULT)
    default = next(field.default for field in dataclasses.fields(kind) if field.name == name)
    return NO_DEFAULT if default is dataclasses.MISSING else default


def is_frozen(kind: type[object]) -> bool:
    """Whether records of a class can be shared, because nothing can change them."""
    return dataclasses.is_dataclass(kind) and bool(cast("Any", kind).__dataclass_params__.frozen)


def maker_of(name: str, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """What makes a record of the values of these fields, which may be fewer: the last ones then have their default.

    Fields that the class does not know are ignored. Raises KeyError if no class bears the name.
    """
    kind: Any = record_types()[name]
    own = fields_of(kind)
    if tuple(names) == own[: len(names)]:
        return lambda values: kind(*values)
    return lambda values: kind(**{key: value for key, value in zip(names, values, strict=False) if key in own})


def names_of_items(kind: type[object], count: int) -> list[str]:
    """Field names of any named tuple's class; empty for any other class of tuple."""
    names: Any = cast("Any", kind).__dict__.get("_fields")
    if not isinstance(names, tuple) or not kind.__name__.isidentifier() or iskeyword(kind.__name__):
        return []
    found = [name for name in cast("tuple[object, ...]", names) if isinstance(name, str)]
    return found if len(found) == len(set(found)) == count else []
