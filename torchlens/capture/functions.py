"""What the recorder does with each torch function: skip it, read its result as a Python value, open it, or record it.

The answer is worked out once per function object and kept for the life of the process.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

SKIP, READ, OPEN, RECORD = range(4)

_CHECKS = frozenset({"has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"})
# Properties that return a tensor; every other property read is metadata.
_TENSOR_PROPERTIES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
_SETTABLE = frozenset({"data", "real", "imag"})
_READS = frozenset(
    {
        "__bool__",
        "__int__",
        "__float__",
        "__complex__",
        "__index__",
        "item",
        "tolist",
        "numpy",
        "__array__",
        "__dlpack__",
        "untyped_storage",
        "storage",
        "is_nonzero",
        "backward",
    }
)
# Reads that may decide a branch.
TESTS = frozenset({"__bool__", "is_nonzero"})
SHARES_MEMORY = frozenset({"numpy", "__array__", "__dlpack__", "untyped_storage", "storage"})
# Queries asked so often that looking at their arguments would cost more than they do; and functions whose inside is
# Python's own protocol work, which no reader of a figure wants to see.
_SKIPPED = frozenset({
    "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size", "data_ptr",
    "is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_inference", "is_cuda", "is_nested",
    "is_sparse", "is_quantized", "is_tensor", "is_storage", "get_device", "has_names",
    "requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "_is_view",
    "_is_zerotensor", "is_neg", "is_conj", "is_same_size", "is_set_to", "_version", "share_memory_", "is_shared",
    "is_pinned", "__repr__", "__format__", "__reduce_ex__", "__setstate__", "__hash__", "__len__",
    "__dir__", "__dlpack_device__", "_set_grad_enabled", "set_grad_enabled",
    "is_grad_enabled", "result_type", "can_cast", "promote_types", "broadcast_shapes", "dim_order", "names",
    "refine_names", "rename_", "_has_compatible_shallow_copy_type",
})  # fmt: skip
_BUILTIN_TYPES = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
_INPLACE_DUNDERS = frozenset({
    "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__imatmul__",
    "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__",
})  # fmt: skip


# Fused functions that update running statistics without moving a version counter: position and name of the argument
# that switches this on (none: always), and of the statistics.
_STATISTICS = ((3, "running_mean"), (4, "running_var"))
_RANGES = ((3, "running_min"), (4, "running_max"), (5, "scale"), (6, "zero_point"))
SILENT_WRITES: dict[str, tuple[tuple[int, str] | None, tuple[tuple[int, str], ...]]] = {
    "batch_norm": ((5, "training"), _STATISTICS),
    "instance_norm": ((5, "use_input_stats"), _STATISTICS),
    "native_batch_norm": ((5, "training"), _STATISTICS),
    "_native_batch_norm_legit": ((5, "training"), _STATISTICS),
    "cudnn_batch_norm": ((5, "training"), _STATISTICS),
    "fused_moving_avg_obs_fake_quant": (None, _RANGES),
    "_fused_moving_avg_obs_fq_helper": (None, _RANGES),
}


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One torch function as the recorder sees it.

    name: bare public name; mutates: its name or schema says that it writes to an argument; pure: one of torch's own
    functions, which write only where the name says so, and does not; silent: its key in `SILENT_WRITES`, "" for most.
    """

    func: Callable[..., Any]
    name: str
    action: int
    mutates: bool
    pure: bool = False
    silent: str = ""


_KNOWN: dict[object, FunctionInfo] = {}


def info_of(func: Callable[..., Any]) -> FunctionInfo:
    """The entry of a function, made on first sight."""
    try:
        info = _KNOWN.get(func)
    except TypeError:  # a user's callable that cannot be hashed
        return _classify(func)
    if info is None:
        info = _classify(func)
        if is_lasting(func):
            _KNOWN[func] = info
    return info


def is_lasting(func: Callable[..., Any]) -> bool:
    """Whether a callable stays for the life of the process; one of the user may hold a model, and is to be let go."""
    if isinstance(func, types.FunctionType):
        return _is_torch(func)
    return isinstance(func, (*_BUILTIN_TYPES, torch._ops.OpOverload, torch._ops.OpOverloadPacket))


def _classify(func: Callable[..., object]) -> FunctionInfo:
    name = str(getattr(func, "__name__", type(func).__name__))
    if isinstance(func, torch._ops.OpOverload):
        name = name.partition(".")[0]
    if name in ("__get__", "__set__", "__delete__"):
        return _classify_property(func, name)
    mutates = _mutates(func, name)
    if name in _SKIPPED:
        return FunctionInfo(func, name, SKIP, False)
    if name in _READS:
        return FunctionInfo(func, name, READ, False)
    if isinstance(func, types.FunctionType) and _is_torch(func) and mentions_check(func):
        return FunctionInfo(func, name, OPEN, mutates)
    own = isinstance(func, (*_BUILTIN_TYPES, torch._ops.OpOverload))
    silent = name.partition(".")[0]
    silent = silent if silent in SILENT_WRITES else ""
    return FunctionInfo(func, name, RECORD, mutates, own and not mutates and not silent, silent)


def _classify_property(func: Callable[..., object], name: str) -> FunctionInfo:
    prop = str(getattr(getattr(func, "__self__", None), "__name__", ""))
    if name == "__set__" and prop in _SETTABLE:
        return FunctionInfo(func, f"set_{prop}", RECORD, True)
    if name == "__get__" and prop in _TENSOR_PROPERTIES:
        return FunctionInfo(func, prop, RECORD, False)
    return FunctionInfo(func, prop or name, SKIP, False)


def _mutates(func: Callable[..., object], name: str) -> bool:
    schema = getattr(func, "_schema", None)
    if schema is not None and hasattr(schema, "is_mutable"):
        return bool(schema.is_mutable)
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name in _INPLACE_DUNDERS or name == "__setitem__"


def _is_torch(func: types.FunctionType) -> bool:
    module = func.__module__ or ""
    # autograd's own entry points run the engine; their inside is no forward computation.
    return module.split(".")[0] == "torch" and not module.startswith("torch.autograd")


def mentions_check(func: types.FunctionType, depth: int = 2) -> bool:
    """Whether the function, or a function in its closure, asks `has_torch_function*`: then its body can be opened."""
    if not _CHECKS.isdisjoint(func.__code__.co_names):
        return True
    return depth > 0 and any(mentions_check(inner, depth - 1) for inner in closure_functions(func) if inner is not func)


def closure_functions(func: types.FunctionType) -> list[types.FunctionType]:
    """Python functions held by the closure of a function."""
    found: list[types.FunctionType] = []
    for cell in func.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        if isinstance(content, types.FunctionType):
            found.append(content)
    return found


class Bodies:
    """Copies of torch's Python functions that do not ask for overrides, so that their inner calls reach the recorder.

    A copy shares the code; only the three check functions among its globals are replaced. Copied globals go stale
    when somebody patches torch, so one `Bodies` serves one trace.
    """

    def __init__(self) -> None:
        self._globals: dict[int, dict[str, object]] = {}
        self._copies: dict[types.FunctionType, types.FunctionType] = {}

    def of(self, func: types.FunctionType) -> types.FunctionType:
        """The copy of a function, made on first use."""
        copy = self._copies.get(func)
        if copy is None:
            copy = self._copies[func] = self._copy(func)
        return copy

    def _copy(self, func: types.FunctionType) -> types.FunctionType:
        cells = tuple(self._cell(func, cell) for cell in func.__closure__ or ())
        copy = types.FunctionType(
            func.__code__, self._globals_of(func), func.__name__, func.__defaults__, cells or None
        )
        copy.__kwdefaults__ = func.__kwdefaults__
        return copy

    def _cell(self, func: types.FunctionType, cell: types.CellType) -> types.CellType:
        try:
            content = cell.cell_contents
        except ValueError:
            return cell
        # A decorator that closes over its own product would be copied for ever.
        if not isinstance(content, types.FunctionType) or content is func or not mentions_check(content):
            return cell
        return types.CellType(self.of(content))

    def _globals_of(self, func: types.FunctionType) -> dict[str, object]:
        table = self._globals.get(id(func.__globals__))
        if table is None:
            table = dict(func.__globals__)
            table.update(dict.fromkeys(_CHECKS & table.keys(), _no))
            self._globals[id(func.__globals__)] = table
        return table


def _no(*_: object) -> bool:
    return False
