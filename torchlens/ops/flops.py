"""FLOPs and multiply-adds of one call, from its name, bound arguments and outputs.

Promises the exact count of the formula that the family's row names, and None where the table or a shape is unknown:
never a silent 0. Bound arguments are plain values and tensor specs; torch is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from torchlens.ops import formulas
from torchlens.ops.families import Family, base_name, family_of
from torchlens.records.tensors import TensorSpec

Bound = Mapping[str, object]
Outs = Sequence[TensorSpec]
Shape = tuple[int, ...]

# Formulas whose FLOPs are pairs of a multiply and an add.
_PRODUCTS = frozenset(
    ("linear", "bilinear", "matmul", "reflected matmul", "added matmul", "tensordot", "einsum", "convolution",
     "transposed convolution", "attention")
)  # fmt: skip


class _UnknownError(LookupError):
    """An argument that the formula needs is missing or has no regular shape."""


def forward_flops(func: str, bound: Bound, outs: Outs) -> int | None:
    """FLOPs of the forward call, a multiply-add counted as 2; None = unknown."""
    family = family_of(func)
    if family is None or family.formula is None:
        return None
    try:
        return FORMULAS[family.formula](_Call(base_name(func), family, bound, outs))
    except (LookupError, ValueError):
        # An argument is missing, or shapes do not have the dimensions that the formula speaks of.
        return None


def forward_macs(func: str, bound: Bound, outs: Outs) -> int | None:
    """Multiply-adds of a matrix product, convolution or attention; None for everything else."""
    family = family_of(func)
    if family is None or family.formula not in _PRODUCTS:
        return None
    flops = forward_flops(func, bound, outs)
    return None if flops is None else flops // 2


def backward_factor(func: str) -> float | None:
    """FLOPs of the backward over those of the forward; None for a function that the table does not know."""
    family = family_of(func)
    return None if family is None else family.backward


class _Call:
    """One call as the formulas see it. name: base name; shapes are read with `shape`, which refuses what is missing."""

    __slots__ = ("bound", "family", "name", "outs")

    def __init__(self, name: str, family: Family, bound: Bound, outs: Outs) -> None:
        self.name, self.family, self.bound, self.outs = name, family, bound, outs

    def shape(self, *names: str) -> Shape:
        """Shape of the first of these arguments that is a tensor."""
        for name in names:
            value = self.bound.get(name)
            if isinstance(value, TensorSpec):
                return _known(value)
        raise _UnknownError(names)

    def shapes(self, name: str) -> list[Shape]:
        """Shapes of the tensors in a list argument."""
        value = self.bound.get(name)
        if not isinstance(value, tuple) or not value:
            raise _UnknownError(name)
        return [_known(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def first(self) -> Shape:
        """Shape of the first argument that is a tensor."""
        return self.shape("input", *self.bound)

    def out(self) -> Shape:
        """Shape of the first output."""
        if not self.outs:
            raise _UnknownError("out")
        return _known(self.outs[0])


def _known(value: object) -> Shape:
    if not isinstance(value, TensorSpec) or value.shape is None:
        raise _UnknownError
    return value.shape


def _einsum(call: _Call) -> int | None:
    equation = call.bound.get("equation")
    if not isinstance(equation, str):
        raise _UnknownError("equation")
    return formulas.einsum_flops(equation, call.shapes("operands"))


def _attention(call: _Call) -> int:
    return formulas.attention_flops(call.shape("query"), call.shape("key"), call.shape("value"))


def _cell(call: _Call) -> int:
    return formulas.recurrent_flops(call.shape("input"), [call.shape("w_ih"), call.shape("w_hh")])


def _reduction(call: _Call) -> int:
    """One per input element; `max(x, y)` of two tensors compares element by element instead."""
    if isinstance(call.bound.get("other"), TensorSpec):
        return math.prod(call.out())
    return math.prod(call.first())


def _embedding_bag(call: _Call) -> int:
    """One addition or comparison per gathered element, and a product where the samples are weighted."""
    gathered = math.prod(call.shape("indices", "input")) * call.shape("weight")[-1]
    return gathered * (2 if isinstance(call.bound.get("per_sample_weights"), TensorSpec) else 1)


def _dropout(call: _Call) -> int:
    """A draw and a product per element; nothing at all outside training, where the input comes back."""
    return 0 if call.bound.get("training") is False else call.family.per * math.prod(call.out())


def _pool(call: _Call) -> int:
    kernel = call.bound.get("kernel_size")
    if not isinstance(kernel, (int, tuple)):
        raise _UnknownError("kernel_size")
    dims = next((int(char) for char in call.name if char.isdigit()), 1)
    return formulas.pool_flops(call.out(), kernel, dims)  # pyright: ignore[reportUnknownArgumentType]


def _sort(call: _Call) -> int:
    dim = call.bound.get("dim")
    # msort always runs along the first dimension.
    default = 0 if call.name == "msort" else -1
    return formulas.sort_flops(call.first(), dim if isinstance(dim, int) else default)


FORMULAS: dict[str, Callable[[_Call], int | None]] = {
    "free": lambda call: 0,
    "per output": lambda call: call.family.per * math.prod(call.out()),
    "per input": lambda call: call.family.per * math.prod(call.first()),
    "reduction": _reduction,
    "dropout": _dropout,
    "embedding bag": _embedding_bag,
    "pool": _pool,
    "sort": _sort,
    "linear": lambda call: formulas.linear_flops(call.shape("input"), call.out()),
    "bilinear": lambda call: formulas.bilinear_flops(call.shape("weight"), call.out()),
    "matmul": lambda call: formulas.matmul_flops(call.shape("input"), call.out()),
    "reflected matmul": lambda call: formulas.matmul_flops(call.shape("other"), call.out()),
    "added matmul": lambda call: formulas.added_matmul_flops(
        call.shape("mat1", "batch1", "mat"), call.shape("mat2", "batch2", "vec")
    ),
    "tensordot": lambda call: formulas.tensordot_flops(call.shape("input"), call.shape("other"), call.out()),
    "einsum": _einsum,
    "convolution": lambda call: formulas.conv_flops(call.shape("input"), call.shape("weight"), call.out()),
    "transposed convolution": lambda call: formulas.conv_flops(
        call.shape("input"), call.shape("weight"), call.out(), transposed=True
    ),
    "attention": _attention,
    "recurrent": lambda call: formulas.recurrent_flops(call.shape("input"), call.shapes("params")),
    "recurrent cell": _cell,
}
