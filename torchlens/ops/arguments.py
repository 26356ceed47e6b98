"""Which arguments of a call are worth a row in a figure, and which of them repeat what its shapes already say.

Promises plain values under the names of the function's own signature, without those at their defaults. A rule may
only reveal more: what cannot be checked stays visible. Torch is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from torchlens.base.units import argument_text
from torchlens.ops.families import ALWAYS, Same, base_name, family_of
from torchlens.records.tensors import TensorSpec

Bound = Mapping[str, object]
Outs = Sequence[TensorSpec]
Shape = tuple[int, ...]

_NO_DEFAULTS: Bound = {}

# Of a function without a row every plain argument is shown but these: they repeat the output's shape, place or
# layout, or steer a backend.
_NEVER = frozenset(
    ("size", "sizes", "shape", "out", "out_dtype", "inplace", "device", "layout", "pin_memory", "requires_grad",
     "memory_format", "generator", "non_blocking", "names", "cudnn_enabled", "cudnn_enable", "benchmark",
     "deterministic", "allow_tf32", "training", "train", "data", "_stacklevel", "sparse_grad", "validate_args")
)  # fmt: skip


# Source: torch.nn._reduction and the embedding_bag modes of torch.nn.functional.
_ENUMS = {"reduction": ("none", "mean", "sum")}


def shown(func: str, bound: Bound, outs: Outs, defaults: Bound = _NO_DEFAULTS) -> tuple[tuple[str, object], ...]:
    """Arguments worth a row, in the order of the family's row, else of the signature.

    bound: argument -> plain value or tensor spec; outs: the outputs; defaults: the function's own, used where the
    family table has no row. Arguments that repeat a dimension are included: see `redundant`.
    """
    family = family_of(func)
    if family is None or family.shown is None:
        return _changed(bound, defaults)
    if family.derive:
        bound = {**bound, **DERIVED[family.derive](base_name(func), bound, outs)}
    rows: list[tuple[str, object]] = []
    for name, default in family.shown.items():
        value = _in_words(name, bound.get(name))
        if value is not None and not _holds_tensor(value) and not _is_default(value, default, bound):
            rows.append((name, value))
    return tuple(rows)


def redundant(
    func: str, name: str, value: object, input_shapes: Sequence[Shape | None], out_shape: Shape | None
) -> bool:
    """Whether an argument provably equals the dimension it repeats.

    input_shapes: shape of the source of each data arrow into the node (of a rolled layer: of each pass), None where
    unknown; out_shape: its one output shape, None if its passes differ. Anything missing or ambiguous gives False.
    """
    family = family_of(func)
    rule = family.redundant.get(name) if family is not None else None
    if rule is None:
        return False
    side, _, axis = rule.partition(" ")
    shape = out_shape if side == "output" else _common(input_shapes)
    if not shape:
        return False
    if axis == "trailing":
        size = len(cast("Shape", value)) if isinstance(value, tuple) else 0
        return size > 0 and shape[-size:] == value
    if axis == "last":
        return shape[-1] == value
    return len(shape) in _ranks_with_channel(base_name(func)) and shape[1] == value


def argument_row(func: str, name: str, value: object) -> str:
    """One argument as it stands in the row: `stride=(2, 2)`; the index of `x[:, 0]` as `[:, 0]`, without a name."""
    if name == "index" and base_name(func) in ("getitem", "setitem"):
        return argument_text(value)
    return f"{name}={argument_text(value)}"


def _in_words(name: str, value: object) -> object:
    """Torch's own functions take the choices of its public ones as numbers."""
    words = _ENUMS.get(name, ())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
        return words[value]
    return value


def _changed(bound: Bound, defaults: Bound) -> tuple[tuple[str, object], ...]:
    return tuple(
        (name, value)
        for name, value in bound.items()
        if value is not None
        and name not in _NEVER
        and not _holds_tensor(value)
        and not (name in defaults and _equal(value, defaults[name]))
    )


def _is_default(value: object, default: object, bound: Bound) -> bool:
    if default is ALWAYS:
        return False
    if isinstance(default, Same):
        # An empty stride means the kernel size, too.
        return value == () or _equal(value, bound.get(default.argument))
    return _equal(value, default)


def _equal(value: object, default: object) -> bool:
    """Equal, where one number stands for a tuple of it: stride 1 is stride (1, 1). True is not 1."""
    if isinstance(value, tuple) and value and not isinstance(default, tuple):
        return all(_equal(item, default) for item in cast("tuple[object, ...]", value))
    if isinstance(default, tuple) and default and not isinstance(value, tuple):
        return all(_equal(value, item) for item in cast("tuple[object, ...]", default))
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _holds_tensor(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_holds_tensor(item) for item in cast("tuple[object, ...]", value))
    return isinstance(value, TensorSpec)


def _common(shapes: Sequence[Shape | None]) -> Shape | None:
    """The one shape that all sources have; None if there is none, or one of them is unknown or differs."""
    first = shapes[0] if shapes else None
    return first if all(shape == first for shape in shapes) else None


def _ranks_with_channel(name: str) -> range:
    """Ranks at which dimension 1 is the channel: conv2d only takes 4 for a batch, norms take any from 2 up."""
    dims = next((int(char) for char in name if char.isdigit()), 0)
    return range(dims + 2, dims + 3) if dims else range(2, 10)


# -- arguments that are none of the call: they come from its tensors


def _shape(bound: Bound, *names: str) -> Shape | None:
    for name in names:
        value = bound.get(name)
        if isinstance(value, TensorSpec):
            return value.shape
    return None


def _linear(name: str, bound: Bound, outs: Outs) -> Bound:
    weight = _shape(bound, "weight")
    if not weight:
        return {}
    return {"in_features": weight[-1], "out_features": weight[0] if len(weight) > 1 else 1}


def _convolution(name: str, bound: Bound, outs: Outs) -> Bound:
    weight, groups = _shape(bound, "weight"), bound.get("groups", 1)
    if not weight or not isinstance(groups, int):
        return {}
    return {"in_channels": weight[1] * groups, "out_channels": weight[0], "kernel_size": weight[2:]}


def _transposed_convolution(name: str, bound: Bound, outs: Outs) -> Bound:
    weight, groups = _shape(bound, "weight"), bound.get("groups", 1)
    if not weight or not isinstance(groups, int):
        return {}
    return {"in_channels": weight[0], "out_channels": weight[1] * groups, "kernel_size": weight[2:]}


def _features(name: str, bound: Bound, outs: Outs) -> Bound:
    """Without a weight or statistics the number of features is no argument of the norm."""
    shape = _shape(bound, "weight", "running_mean")
    return {"num_features": shape[0]} if shape else {}


def _embedding(name: str, bound: Bound, outs: Outs) -> Bound:
    weight = _shape(bound, "weight")
    return {"num_embeddings": weight[0], "embedding_dim": weight[1]} if weight else {}


def _attention(name: str, bound: Bound, outs: Outs) -> Bound:
    """A scale of 1/√d written out is the default."""
    query, scale = _shape(bound, "query"), bound.get("scale")
    if query and isinstance(scale, float) and math.isclose(scale * scale * query[-1], 1.0, rel_tol=1e-6):
        return {"scale": None}
    return {}


def _multi_head_attention(name: str, bound: Bound, outs: Outs) -> Bound:
    return {"embed_dim": bound.get("embed_dim_to_check")}


def _recurrent(name: str, bound: Bound, outs: Outs) -> Bound:
    """Dropout between layers says something in training only."""
    return {} if bound.get("train") else {"dropout": None}


def _permute(name: str, bound: Bound, outs: Outs) -> Bound:
    dims = bound.get("dims")
    return {"dims": (dims,)} if isinstance(dims, int) else {}


def _cast(name: str, bound: Bound, outs: Outs) -> Bound:
    """What the cast changed, whatever spelling asked for it."""
    source, out = bound.get("input"), outs[0] if outs else None
    if not isinstance(source, TensorSpec) or out is None:
        return {}
    return {
        "dtype": out.dtype if out.dtype != source.dtype else None,
        "device": out.device if out.device != source.device else None,
    }


def _index(name: str, bound: Bound, outs: Outs) -> Bound:
    index = bound.get("index")
    return {"index": index_text(index)} if "index" in bound else {}


DERIVED: dict[str, Callable[[str, Bound, Outs], Bound]] = {
    "linear": _linear,
    "convolution": _convolution,
    "transposed convolution": _transposed_convolution,
    "features": _features,
    "embedding": _embedding,
    "attention": _attention,
    "multi-head attention": _multi_head_attention,
    "recurrent": _recurrent,
    "permute": _permute,
    "cast": _cast,
    "index": _index,
}


def index_text(index: object) -> str:
    """What stands in the brackets of `x[...]`: index_text((slice(None), 0)) == "[:, 0]"; a tensor reads `tensor`."""
    if not isinstance(index, tuple):
        return f"[{_index_item(index)}]"
    items = cast("tuple[object, ...]", index)
    return "[" + (", ".join(_index_item(item) for item in items) or "()") + "]"


def _index_item(item: object) -> str:
    if item is Ellipsis:
        return "..."
    if isinstance(item, slice):
        parts = [cast("object", item.start), cast("object", item.stop), cast("object", item.step)]
        texts = ["" if part is None else argument_text(part) for part in parts]
        return ":".join(texts if parts[2] is not None else texts[:2])
    if isinstance(item, list):
        return "[" + ", ".join(_index_item(part) for part in cast("list[object]", item)) + "]"
    return argument_text(item)
