"""Find the tensors inside a call's arguments or a result, with their paths, without touching anything else.

Looks into mappings, named tuples, lists, tuples, dataclasses and plain objects' attributes, at most six levels deep;
an unknown object is never iterated, because iterating may run user code or never end.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
from collections.abc import Callable, Iterator, Mapping

import torch

_DEPTH = 6
_ATOMS = (
    str, bytes, int, float, bool, complex, type(None), type, torch.nn.Module, torch.dtype, torch.device, torch.Size,
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GeneratorType,
)  # fmt: skip


_CONTAINERS = (collections.abc.Mapping, list, tuple)


def leaves(value: object, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors inside a value in container order, each with its dotted path below `path`.

    A container met again on its own way down is not entered twice, so a cycle ends; an object that is no container
    is entered once, or objects that know each other would be by every way through them.
    """
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    stack: list[tuple[str, object, frozenset[int]]] = [(path, value, frozenset())]
    met: set[int] = set()
    while stack:
        at, item, above = stack.pop()
        if isinstance(item, torch.Tensor):
            yield at, item
        elif not isinstance(item, _ATOMS) and id(item) not in above and id(item) not in met and len(above) <= _DEPTH:
            if not isinstance(item, _CONTAINERS):
                met.add(id(item))
            inner = above | {id(item)}
            stack.extend((f"{at}.{key}" if at else str(key), part, inner) for key, part in reversed(_parts(item)))


def _parts(item: object) -> list[tuple[object, object]]:
    """Keys and members of one container; empty for anything that is none, or whose own code does not say."""
    try:
        if isinstance(item, collections.abc.Mapping):
            return list(item.items())
        if isinstance(item, tuple) and hasattr(item, "_fields"):
            return [(name, getattr(item, name)) for name in item._fields]  # type: ignore[attr-defined]
        if isinstance(item, (list, tuple)):
            return list(enumerate(item))
        if dataclasses.is_dataclass(item):
            return [(f.name, getattr(item, f.name)) for f in dataclasses.fields(item) if hasattr(item, f.name)]
        return list(vars(item).items())
    except Exception:  # noqa: BLE001 - lazy mappings and properties are the user's code, and may refuse
        return []


def named_forward(model: torch.nn.Module) -> Callable[..., object]:
    """The forward whose parameters name the inputs: that of the wrapped model where a wrapper passes all through."""
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while isinstance(model, wrappers):
        model = model.module
    return getattr(model, "_orig_mod", model).forward


def argument_leaves(
    forward: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> list[tuple[str, torch.Tensor]]:
    """Input tensors of one call, named by the parameters of the bound forward: `x`, `ys.0`, `args.1`, `mask`.

    Arguments that do not fit the signature keep positional paths: the call itself will raise the caller's error.
    """
    try:
        signature = inspect.signature(forward)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        named: list[tuple[str, object]] = [(f"args.{i}", value) for i, value in enumerate(args)]
        named += list(kwargs.items())
        return [leaf for path, value in named for leaf in leaves(value, path)]
    found: list[tuple[str, torch.Tensor]] = []
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found += [leaf for key, part in value.items() for leaf in leaves(part, str(key))]
        else:
            found += leaves(value, name)
    return found
