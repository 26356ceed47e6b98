"""The facts of a case, checked against plain PyTorch and against a trace.

A trace comes in as a `Recorded`, made by an adapter, so that the facts speak of no package. Names in edges and the
like: `linear#2` the second op of that kind, `input:x` and `output:0.a` by path, `output#1` by order.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# What EXPECT may hold.
FACTS = {
    "raises": "name of the exception that forward raises; the recorder must raise the same",
    "ops": "exact number of ops per kind",
    "min_ops": "at least so many ops per kind",
    "n_inputs": "tensors among the arguments",
    "n_outputs": "tensors in the result",
    "inputs": "argument paths of the input tensors",
    "outputs": "paths of the output tensors in the result",
    "calls": "module calls per address",
    "edges": "direct edges that must exist",
    "no_edges": "direct edges that must not exist",
    "op_params": "last part of the names of the parameters that an op used",
    "params_total": "number of distinct parameter elements of the model",
    "params_met": "the same with those of modules that only the run reached, if it is another number",
    "branches": "truth values of tensor conditions, in order",
    "passes": "passes of every layer of a kind, in any order",
    "fan_in": "number of direct parents of an op",
    "fan_out": "number of distinct nodes fed directly by a node",
    "after": "the case's after() must return True afterwards",
    "max_seconds": "a hint for readers, not checked: tests do not look at the clock",
    "plain_ops_skip": "kinds that plain PyTorch calls by another name, or not where a function mode sees it",
    "plain_calls_skip": "module hooks do not see these calls, or may not be set",
}
# One name for the spellings of one operation.
_ALIAS = {
    "iadd": "add", "radd": "add", "isub": "sub", "rsub": "sub", "imul": "mul", "rmul": "mul", "truediv": "div",
    "rtruediv": "div", "itruediv": "div", "rpow": "pow", "rmatmul": "matmul", "mm": "matmul", "multiply": "mul",
    "concat": "cat", "batchnorm": "batch_norm", "layernorm": "layer_norm", "boolean_dispatch": "max_pool2d",
    "max_pool2d_with_indices": "max_pool2d",
}  # fmt: skip
Op = dict[str, Any]


@dataclass
class Recorded:
    """One recording in neutral terms.

    ops: in order, with id, kind, role (input, output, buffer, constant, op), path, parents (ids), params, layer,
    passes of the layer, bool, out (the value of an output); calls: how often each address was called; dot: Graphviz
    text of the default drawing; result: what forward returned.
    """

    ops: list[Op]
    calls: Mapping[str, int]
    params_total: int
    branches: list[bool]
    dot: str
    result: object
    ids: dict[str, Op] = field(init=False)
    names: dict[str, str] = field(init=False)
    edges: set[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = {op["id"]: op for op in self.ops}
        self.edges = {(parent, op["id"]) for op in self.ops for parent in op["parents"]}
        self.names = {}
        seen: collections.Counter[str] = collections.Counter()
        for op in self.ops:
            kind = op["kind"] if op["role"] == "op" else op["role"]
            seen[kind] += 1
            self.names[f"{kind}#{seen[kind]}"] = op["id"]
            if op["role"] in ("input", "output"):
                self.names[f"{op['role']}:{op['path']}"] = op["id"]


Adapter = Callable[[torch.nn.Module, tuple, dict], Recorded]


def kind_of(name: str) -> str:
    """Bare kind of a function name."""
    name = name.rpartition(".")[2].strip("_").lower()
    return _ALIAS.get(name, name)


def tensors(value: object, path: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors inside a result with their paths: containers, named tuples, objects with attributes; six levels."""
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    if id(value) in seen or len(seen) > 6:
        return
    for key, part in _parts(value):
        yield from tensors(part, f"{path}.{key}" if path else str(key), seen | {id(value)})


def _parts(value: Any) -> list[tuple[object, object]]:
    if value is None or isinstance(value, (str, bytes, int, float, complex, torch.nn.Module, torch.dtype)):
        return []
    if isinstance(value, Mapping):
        return [(key, value[key]) for key in value]
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        return [(key, getattr(value, key)) for key in names]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    return list(vars(value).items()) if hasattr(value, "__dict__") else []


# -- plain PyTorch
class _Counter(TorchFunctionMode):
    """Counts function calls, and notes tensors read as bools."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: collections.Counter[str] = collections.Counter()
        self.bools: list[bool] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        out = func(*args, **(kwargs or {}))
        if name == "__bool__":
            self.bools.append(bool(out))
        self.calls[kind_of(name)] += 1
        return out


def plain_problems(case: Any) -> Iterator[str]:
    """Facts that plain PyTorch contradicts."""
    expect = case.EXPECT
    model, args, kwargs = case.case()
    calls: collections.Counter[str] = collections.Counter()
    if not expect.get("plain_calls_skip"):
        for address, module in model.named_modules():
            module.register_forward_pre_hook(lambda _module, _args, address=address: calls.update([address]))
    mode, out = _Counter(), None
    torch.manual_seed(1)
    try:
        with mode:
            out = model(*args, **kwargs)
    except Exception as error:
        if type(error).__name__ != expect.get("raises"):
            yield f"raises {error!r}"
        return
    if "raises" in expect:
        yield "does not raise"
    if not expect.get("plain_calls_skip"):
        yield from _differences("calls", expect.get("calls", {}), calls)
    skip = expect.get("plain_ops_skip", ())
    yield from _differences("ops", {k: n for k, n in expect.get("ops", {}).items() if k not in skip}, mode.calls)
    paths = sorted(path for path, _ in tensors(out))
    total = sum(p.numel() for p in model.parameters())
    for name, got in (
        ("branches", mode.bools),
        ("n_outputs", len(paths)),
        ("outputs", paths),
        ("params_total", total),
    ):
        if name in expect and got != _ordered(name, expect[name]):
            yield f"{name} {got}"


def _differences(name: str, wanted: Mapping[str, int], got: Mapping[str, int]) -> Iterator[str]:
    for key, count in wanted.items():
        if got.get(key, 0) != count:
            yield f"{name}[{key}] is {got.get(key, 0)}, not {count}"


def _ordered(name: str, value: Any) -> Any:
    return sorted(value) if name in ("inputs", "outputs") else value


# -- a recorder
def problems(case: Any, record: Adapter) -> Iterator[str]:
    """Facts that a recording contradicts, and ways in which it changed the run."""
    expect = case.EXPECT
    wanted, state_wanted, stream_wanted, error_wanted = _run(case, lambda model, args, kw: model(*args, **kw))
    got, state_got, stream_got, error_got = _run(case, record)
    if "after" in expect and not case.after():
        yield "after() is False"
    for key, value in state_wanted.items():
        if not same(value, state_got[key]):
            yield f"{key} is not as after a plain run"
    if not torch.equal(stream_wanted, stream_got):
        yield "the random stream is not where a plain run leaves it"
    if error_wanted is not None or error_got is not None:
        if not (type(error_wanted).__name__ == type(error_got).__name__ == expect.get("raises")):
            yield f"plain {error_wanted!r}, recorded {error_got!r}"
        return
    if "raises" in expect:
        yield "did not raise"
    if not same(list(tensors(wanted)), list(tensors(got.result))):
        yield "the result is not that of a plain run"
    yield from _counted(expect, got)
    yield from _linked(expect, got)
    position = {op["id"]: i for i, op in enumerate(got.ops)}
    if any(position[a] >= position[b] for a, b in got.edges):
        yield "an arrow leads backwards"
    again = _run(case, record)[0]
    if [(op["id"], op["parents"]) for op in again.ops] != [(op["id"], op["parents"]) for op in got.ops]:
        yield "a second recording differs"
    if again.dot != got.dot:
        yield "a second drawing differs"


def _run(case: Any, work: Callable[..., Any]) -> tuple[Any, dict[str, object], torch.Tensor, BaseException | None]:
    model, args, kwargs = case.case()
    torch.manual_seed(1)
    out, error = None, None
    try:
        out = work(model, args, kwargs)
    except Exception as caught:
        error = caught
    return out, _state(model), torch.get_rng_state(), error


def _counted(expect: Mapping[str, Any], got: Recorded) -> Iterator[str]:
    counts = collections.Counter(op["kind"] for op in got.ops if op["role"] == "op" and not _counts_batches(op, got))
    yield from _differences("ops", expect.get("ops", {}), counts)
    for kind, least in expect.get("min_ops", {}).items():
        if counts[kind] < least:
            yield f"ops[{kind}] is {counts[kind]}, less than {least}"
    yield from _differences("calls", expect.get("calls", {}), got.calls)
    paths = {role: sorted(op["path"] for op in got.ops if op["role"] == role) for role in ("input", "output")}
    for name, value in (
        ("n_inputs", len(paths["input"])),
        ("n_outputs", len(paths["output"])),
        ("inputs", paths["input"]),
        ("outputs", paths["output"]),
        ("branches", got.branches),
    ):
        if name in expect and value != _ordered(name, expect[name]):
            yield f"{name} {value}"
    if got.params_total != expect.get("params_met", expect.get("params_total", got.params_total)):
        yield f"params_total {got.params_total}"
    for kind, passes in expect.get("passes", {}).items():
        layers = {op["layer"]: op["passes"] for op in got.ops if op["role"] == "op" and op["kind"] == kind}
        if sorted(layers.values()) != sorted(passes):
            yield f"passes[{kind}] {sorted(layers.values())}"


def _linked(expect: Mapping[str, Any], got: Recorded) -> Iterator[str]:
    needed = {name for pair in expect.get("edges", ()) for name in pair}
    needed.update(*(expect.get(fact, {}) for fact in ("fan_in", "fan_out", "op_params")))
    missing = sorted(needed - got.names.keys())
    if missing:
        yield f"no node {', '.join(missing)}"
        return
    for fact, wanted in (("edges", True), ("no_edges", False)):
        for a, b in expect.get(fact, ()):
            if ((got.names.get(a), got.names.get(b)) in got.edges) != wanted:
                yield f"{fact}: {a} -> {b}"
    for name, count in expect.get("fan_in", {}).items():
        if len(got.ids[got.names[name]]["parents"]) != count:
            yield f"fan_in[{name}] {got.ids[got.names[name]]['parents']}"
    for name, count in expect.get("fan_out", {}).items():
        fed = sorted(b for a, b in got.edges if a == got.names[name])
        if len(fed) != count:
            yield f"fan_out[{name}] {fed}"
    for name, params in expect.get("op_params", {}).items():
        used = got.ids[got.names[name]]["params"]
        if sorted(address.rpartition(".")[2] for address in used) != sorted(params):
            yield f"op_params[{name}] {used}"


def _counts_batches(op: Op, got: Recorded) -> bool:
    """Whether an op is the counter of a batch norm: it reads nothing but buffers."""
    return op["kind"] == "add" and bool(op["parents"]) and all(got.ids[p]["role"] == "buffer" for p in op["parents"])


def _state(model: torch.nn.Module) -> dict[str, object]:
    """What a recording must leave as a plain run leaves it."""
    modules = list(model.named_modules())
    return {
        "state": {name: value.clone() for name, value in model.state_dict().items()},
        "training": {name: module.training for name, module in modules},
        "requires_grad": {name: p.requires_grad for name, p in model.named_parameters()},
        "hooks": {name: (len(m._forward_hooks), len(m._forward_pre_hooks)) for name, m in modules},
        "attributes": {name: sorted(vars(module)) for name, module in modules},
    }


def same(a: Any, b: Any) -> bool:
    """Equal structure and equal values, tensors to rounding."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.is_nested or b.is_nested:
            return a.is_nested and b.is_nested and same(a.values(), b.values())
        return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, equal_nan=True)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b
