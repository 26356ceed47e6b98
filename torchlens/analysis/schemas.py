"""Names for the arguments of a call, from the function's own schema or signature.

`bind` gives every call of a function the same names, positional or keyword, function or method: the tensor worked on
is `input`. It never raises and never looks at a tensor: arguments come with specs in their place. Worked out on
demand, after the run; what depends on the function alone is kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

import torch
from torch._jit_internal import boolean_dispatched

from torchlens.analysis.plain import ATOMS, plain
from torchlens.capture.functions import is_lasting
from torchlens.ops.families import base_name
from torchlens.records.tensors import TensorSpec

_Args = Sequence[object]
_Kwargs = Mapping[str, object]

# Spellings that torch accepts beside the names of its schemas.
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
# Keywords of torch's Python layer that its schemas do not have.
_UNDECLARED = frozenset({"requires_grad", "names", "_stacklevel"})
# One argument, two names, between a function and its method, its builtin or its packed form.
_DROPOUT = {"train": "training"}
_RECURRENT = {"data": "input"}
_RENAMED: dict[str, dict[str, str]] = {
    "embedding": {"indices": "input"},
    "split": {"tensor": "input", "split_size_or_sections": "split_size", "split_sizes": "split_size"},
    "split_with_sizes": {"split_sizes": "split_size"},
    "tensordot": {"a": "input", "b": "other"},
    "swapaxes": {"axis0": "dim0", "axis1": "dim1"},
    "dropout": _DROPOUT,
    "alpha_dropout": _DROPOUT,
    "feature_dropout": _DROPOUT,
    "feature_alpha_dropout": _DROPOUT,
    "lstm": _RECURRENT,
    "gru": _RECURRENT,
    "rnn_tanh": _RECURRENT,
    "rnn_relu": _RECURRENT,
}


def bind(func: Callable[..., object], name: str, args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    """Arguments of one call by name, as plain values; the function's defaults are not filled in.

    func: the callable that the function mode received, or the public function around it; name: its bare name; args
    and kwargs: with a `TensorSpec` in place of each tensor. Lists become tuples, dtypes, devices and layouts their
    names ("float16", "cuda:0", "channels_last"). What fits no schema is named `arg1`, `arg2` by position.
    """
    binder = _binder_of(func, name)
    try:
        found = binder.bind(args, kwargs)
    except (TypeError, ValueError, IndexError, AttributeError):
        found = _positional(args, kwargs)
    return {key: value if type(value) in ATOMS else plain(value, binder.lists) for key, value in found.items()}


def defaults(func: Callable[..., object], name: str) -> Mapping[str, object]:
    """The function's own defaults under the names that `bind` uses; of an overloaded one the first stated."""
    return _binder_of(func, name).defaults


class _Binder(NamedTuple):
    """How the arguments of one function get their names, and how their values become plain."""

    bind: Callable[[_Args, _Kwargs], dict[str, object]]
    defaults: Mapping[str, object]
    lists: type = tuple


def _binder_of(func: Callable[..., object], name: str) -> _Binder:
    return _kept_binder(func, name) if is_lasting(func) else _any_binder(func, name)


@lru_cache(maxsize=4096)
def _kept_binder(func: Callable[..., object], name: str) -> _Binder:
    return _any_binder(func, name)


def _any_binder(func: Callable[..., object], name: str) -> _Binder:
    try:
        return _make_binder(func, name)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        # Callables of other libraries may refuse to be looked at.
        return _Binder(_positional, {})


def _make_binder(func: Callable[..., object], name: str) -> _Binder:
    base = base_name(name)
    special = _SPECIAL.get(base)
    if special is not None:
        # In an index a list and a tuple do not mean the same.
        return _Binder(special, {}, list if special is _bind_index else tuple)
    renamed = _RENAMED.get(base, {})
    schemas = _own_schemas(func)
    if not schemas:
        signature = _signature_of(func)
        if signature is not None:
            return _signature_binder(signature, renamed)
        schemas = _aten_schemas(name, base)
    if not schemas:
        return _Binder(_positional, {})
    return _schema_binder([_overload(schema, renamed) for schema in schemas])


# -- Python functions


def _signature_of(func: Callable[..., object]) -> inspect.Signature | None:
    """The signature of a Python function; None for builtins, and for wrappers around one (`Tensor.__pow__`)."""
    if not inspect.isfunction(func):
        return None
    # `max_pool2d` and its like choose between two bodies; the wrapper itself takes anything.
    bodies = boolean_dispatched.get(func)
    inner = inspect.unwrap(bodies["if_false"] if bodies else func)
    return inspect.signature(inner) if inspect.isfunction(inner) else None


def _signature_binder(signature: inspect.Signature, renamed: Mapping[str, str]) -> _Binder:
    parameters = list(signature.parameters.values())
    positional = [
        _canonical(p.name, renamed)
        for p in parameters
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")

    def bind_call(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
        found = dict(zip(positional, args, strict=False))
        if len(args) > len(positional):
            extra = args[len(positional) :]
            # f([a, b]) and f(a, b) are one call.
            found[rest] = extra[0] if len(extra) == 1 and isinstance(extra[0], (list, tuple)) else tuple(extra)
        found.update((_canonical(key, renamed), value) for key, value in kwargs.items())
        return found

    stated = {
        _canonical(p.name, renamed): plain(p.default) for p in parameters if p.default is not inspect.Parameter.empty
    }
    return _Binder(bind_call, stated)


def _canonical(name: str, renamed: Mapping[str, str]) -> str:
    return renamed.get(name, "input" if name == "self" else name)


# -- builtins, by schema


class _Parameter(NamedTuple):
    """One argument of a schema. kind: its type without `Optional`; fixed: a list of one length, which takes an int."""

    name: str
    kind: str
    nullable: bool
    fixed: bool
    required: bool
    default: object


class _Overload(NamedTuple):
    """One schema. positional: parameters that may be given by position; by_name: all, under torch's name and ours."""

    positional: tuple[_Parameter, ...]
    by_name: dict[str, _Parameter]
    required: frozenset[str]


def _own_schemas(func: Callable[..., object]) -> list[Any]:
    """Schemas that the callable itself carries: operators of `torch.ops`, scripted functions."""
    schema = getattr(func, "_schema", None)
    if schema is not None:
        return [schema]
    if isinstance(func, torch._ops.OpOverloadPacket):
        return [getattr(func, overload)._schema for overload in func.overloads()]
    schema = getattr(func, "schema", None) if isinstance(func, torch.jit.ScriptFunction) else None
    return [schema] if schema is not None else []


def _aten_schemas(name: str, base: str) -> list[Any]:
    for candidate in dict.fromkeys((name, base)):
        found = [s for s in torch._C._jit_get_schemas_for_operator(f"aten::{candidate}") if _is_tensor_schema(s)]
        if found:
            return found
    return []


def _is_tensor_schema(schema: Any) -> bool:
    """Whether a schema speaks of tensors: `aten` also holds the scripting language's own operators on numbers."""
    return any("Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns))


def _overload(schema: Any, renamed: Mapping[str, str]) -> _Overload:
    positional: list[_Parameter] = []
    by_name: dict[str, _Parameter] = {}
    for argument in schema.arguments:
        kind = str(argument.real_type)
        nullable = kind.startswith("Optional[")
        parameter = _Parameter(
            _canonical(argument.name, renamed),
            kind[len("Optional[") : -1] if nullable else kind,
            nullable,
            argument.N is not None,
            not argument.has_default_value(),
            argument.default_value,
        )
        by_name[argument.name] = by_name[parameter.name] = parameter
        if not argument.kwarg_only:
            positional.append(parameter)
    return _Overload(tuple(positional), by_name, frozenset(p.name for p in by_name.values() if p.required))


def _schema_binder(overloads: Sequence[_Overload]) -> _Binder:
    def bind_call(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
        named = {key: value for key, value in kwargs.items() if key != "out" or value is not None}
        for strict in (True, False):
            for overload in overloads:
                found = _match(overload, args, named, strict=strict)
                if found is not None:
                    return found
        return _positional(args, kwargs)

    stated: dict[str, object] = {}
    for overload in overloads:
        for parameter in overload.by_name.values():
            # A dtype's default is a number of torch's own.
            if not parameter.required and parameter.kind not in ("ScalarType", "Layout", "MemoryFormat"):
                stated.setdefault(parameter.name, plain(parameter.default))
    return _Binder(bind_call, stated)


def _match(overload: _Overload, args: _Args, kwargs: _Kwargs, *, strict: bool) -> dict[str, object] | None:
    """The arguments under the names of one schema, None if it does not fit. strict: types have to fit, too."""
    found: dict[str, object] = {}
    position = 0
    for parameter in overload.positional:
        if position == len(args):
            break
        value = args[position]
        position += 1
        if type(value) is int and parameter.kind == "List[int]" and (not parameter.fixed or position < len(args)):
            # x.view(2, 3): whole numbers in a row are one list, if nothing else could take them.
            rest = args[position - 1 :]
            if not parameter.fixed or (parameter is overload.positional[-1] and len(rest) > 1):
                if not all(type(item) is int for item in rest):
                    return None
                value, position = tuple(rest), len(args)
        if strict and not _fits(parameter, value):
            return None
        found[parameter.name] = value
    if position < len(args):
        return None
    for key, value in kwargs.items():
        parameter = overload.by_name.get(key) or overload.by_name.get(_NUMPY_NAMES.get(key, key))
        name = key if parameter is None else parameter.name
        if name in found or (parameter is None and key not in _UNDECLARED):
            return None
        if parameter is not None and strict and not _fits(parameter, value):
            return None
        found[name] = value
    return found if overload.required <= found.keys() else None


def _fits(parameter: _Parameter, value: object) -> bool:
    if value is None:
        return parameter.nullable
    check = _KINDS.get(parameter.kind)
    if check is not None:
        return check(value)
    if parameter.kind.startswith("List["):
        if isinstance(value, (list, tuple)):
            check = _KINDS.get(parameter.kind.removeprefix("List[").removeprefix("Optional[").rstrip("]"))
            return check is None or all(item is None or check(item) for item in value[:1])
        return parameter.fixed and not isinstance(value, (TensorSpec, str))
    return not isinstance(value, TensorSpec)


def _is_int(value: object) -> bool:
    return type(value) is int or (not isinstance(value, bool) and hasattr(value, "__index__"))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex)) or hasattr(value, "__float__")


_KINDS: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda value: type(value) is TensorSpec,
    "int": _is_int,
    "SymInt": _is_int,
    "float": lambda value: not isinstance(value, (bool, complex)) and _is_number(value),
    "number": _is_number,
    "Scalar": _is_number,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "ScalarType": lambda value: isinstance(value, torch.dtype),
    "Layout": lambda value: isinstance(value, torch.layout),
    "MemoryFormat": lambda value: isinstance(value, torch.memory_format),
    "Device": lambda value: isinstance(value, (torch.device, str)) or type(value) is int,
}


# -- calls that no schema describes


def _positional(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    """The first argument as `input` if it is a tensor, the others by position, keywords as they are."""
    found: dict[str, object] = {f"arg{i}": value for i, value in enumerate(args)}
    if args and isinstance(args[0], TensorSpec):
        found = {"input": found.pop("arg0"), **found}
    return {**found, **kwargs}


def _bind_index(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    return dict(zip(("input", "index", "value"), args, strict=False))


def _bind_einsum(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    """Both forms: einsum("ij,jk", a, b) and einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    first, rest = args[0] if args else kwargs.get("equation"), list(args[1:])
    if isinstance(first, str):
        operands = rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
        return {"equation": first, "operands": tuple(operands)}
    output = args[-1] if len(args) % 2 else None
    terms = [_letters(sublist) for sublist in args[1::2]]
    equation = ",".join(terms) + ("" if output is None else "->" + _letters(output))
    return {"equation": equation, "operands": tuple(args[: 2 * len(terms) : 2])}


_LETTERS = ascii_uppercase + ascii_lowercase


def _letters(sublist: object) -> str:
    """The equation's spelling of one sublist: number n is the n-th letter, as torch itself translates it."""
    items: Iterable[object] = sublist if isinstance(sublist, (list, tuple)) else ()
    return "".join(_LETTERS[i] if isinstance(i, int) else "..." for i in items)


def _bind_cast(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    """x.to(dtype), x.to(device), x.to(device, dtype), x.to(other) and x.type(dtype), told apart by what is given."""
    found: dict[str, object] = {"input": args[0]}
    flags = ["non_blocking", "copy"]
    for value in args[1:]:
        if isinstance(value, TensorSpec):
            found["other"] = value
        elif isinstance(value, bool) and flags:
            found[flags.pop(0)] = value
        elif value is not None:
            found["dtype" if isinstance(value, (torch.dtype, type)) else "device"] = value
    return {**found, **kwargs}


def _bind_data(args: _Args, kwargs: _Kwargs) -> dict[str, object]:
    """Tensors made from Python data: how, but not from what, which may be large."""
    tensors: dict[str, object] = {"input": args[0]} if args and isinstance(args[0], TensorSpec) else {}
    return {**tensors, **{key: value for key, value in kwargs.items() if key != "data"}}


_SPECIAL: dict[str, Callable[[_Args, _Kwargs], dict[str, object]]] = {
    "getitem": _bind_index,
    "setitem": _bind_index,
    "einsum": _bind_einsum,
    "to": _bind_cast,
    "type": _bind_cast,
    **dict.fromkeys(("tensor", "as_tensor", "asarray", "new_tensor"), _bind_data),
}
