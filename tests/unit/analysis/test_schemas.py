"""Argument names: one spelling for function and method, positional and keyword, builtin and Python."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from torchlens.analysis.schemas import bind, defaults
from torchlens.records.tensors import TensorSpec

X = TensorSpec((2, 3, 8, 8), "float32", "cpu", 1536)
W = TensorSpec((4, 3, 3, 3), "float32", "cpu", 432)


def named(func, *args: object, name: str = "", **kwargs: object) -> dict[str, object]:
    return bind(func, name or func.__name__, args, kwargs)


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        (
            [
                named(torch.sum, X, 1),
                named(Tensor.sum, X, 1),
                named(torch.sum, X, dim=1),
                named(torch.sum, input=X, axis=1),
            ],
            {"input": X, "dim": 1},
        ),
        (
            [
                named(torch.add, X, 2),
                named(Tensor.add, X, 2),
                named(Tensor.__add__, X, 2),
                named(Tensor.__iadd__, X, 2),
            ],
            {"input": X, "other": 2},
        ),
        (
            [named(Tensor.pow, X, 2), named(Tensor.__pow__, X, 2), named(Tensor.__ipow__, X, 2)],
            {"input": X, "exponent": 2},
        ),
        (
            [named(Tensor.view, X, 2, -1), named(Tensor.view, X, (2, -1)), named(Tensor.view, X, torch.Size((2, -1)))],
            {"input": X, "size": (2, -1)},
        ),
        (
            [
                named(Tensor.permute, X, 0, 2, 3, 1),
                named(Tensor.permute, X, (0, 2, 3, 1)),
                named(torch.permute, X, [0, 2, 3, 1]),
            ],
            {"input": X, "dims": (0, 2, 3, 1)},
        ),
        (
            [
                named(torch.split, X, 2, 1),
                named(Tensor.split, X, 2, dim=1),
                named(torch.split, tensor=X, split_size_or_sections=2, dim=1),
            ],
            {"input": X, "split_size": 2, "dim": 1},
        ),
        (
            [named(torch.swapaxes, X, 0, 1), named(Tensor.swapaxes, X, axis0=0, axis1=1)],
            {"input": X, "dim0": 0, "dim1": 1},
        ),
        (
            [named(torch.einsum, "ij,jk->ik", X, W), named(torch.einsum, "ij,jk->ik", [X, W])],
            {"equation": "ij,jk->ik", "operands": (X, W)},
        ),
        (
            [named(torch.meshgrid, X, W, indexing="ij"), named(torch.meshgrid, [X, W], indexing="ij")],
            {"tensors": (X, W), "indexing": "ij"},
        ),
        (
            [
                named(Tensor.to, X, torch.float16),
                named(Tensor.to, X, dtype=torch.float16),
                named(Tensor.type, X, torch.float16),
            ],
            {"input": X, "dtype": "float16"},
        ),
        (
            [named(Tensor.flip, X, 1, 2), named(torch.flip, X, (1, 2)), named(Tensor.flip, X, dims=[1, 2])],
            {"input": X, "dims": (1, 2)},
        ),
    ],
)
def test_spellings_of_one_call_bind_alike(spellings: list[dict[str, object]], expected: dict[str, object]) -> None:
    for found in spellings:
        assert found == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # overloads are told apart by what is given
        (
            named(torch.conv2d, X, W, None, (1, 1), "same"),
            {"input": X, "weight": W, "bias": None, "stride": (1, 1), "padding": "same"},
        ),
        (named(torch.max, X, 1), {"input": X, "dim": 1}),
        (named(torch.max, X, W), {"input": X, "other": W}),
        (named(Tensor.max, X), {"input": X}),
        (named(torch.arange, 3), {"end": 3}),
        (named(torch.arange, 1, 7, 2), {"start": 1, "end": 7, "step": 2}),
        (named(torch.randint, 5, (2,)), {"high": 5, "size": (2,)}),
        (named(torch.randint, 1, 5, (2,)), {"low": 1, "high": 5, "size": (2,)}),
        (named(torch.where, X, X, 0.0), {"condition": X, "input": X, "other": 0.0}),
        (named(torch.pow, 2, X), {"input": 2, "exponent": X}),
        (named(Tensor.var, X, dim=1, unbiased=False), {"input": X, "dim": 1, "unbiased": False}),
        (named(Tensor.std, X, False), {"input": X, "unbiased": False}),
        (named(Tensor.view, X, torch.int32), {"input": X, "dtype": "int32"}),
        (named(torch.zeros, 2, 3, requires_grad=True), {"size": (2, 3), "requires_grad": True}),
        (
            named(Tensor.to, X, "cuda", torch.int8, True),
            {"input": X, "device": "cuda", "dtype": "int8", "non_blocking": True},
        ),
        (named(Tensor.to, X, W), {"input": X, "other": W}),
        (named(torch.add, X, W, out=None), {"input": X, "other": W}),
        # Python functions, and those that choose between two bodies
        (named(F.interpolate, X, scale_factor=2), {"input": X, "scale_factor": 2}),
        (named(F.max_pool2d, X, 2, None, 1), {"input": X, "kernel_size": 2, "stride": None, "padding": 1}),
        (named(F.batch_norm, X, None, None, W), {"input": X, "running_mean": None, "running_var": None, "weight": W}),
        (named(Tensor.__rsub__, X, 1), {"input": X, "other": 1}),
        (named(Tensor.__rpow__, X, 2), {"input": X, "other": 2}),
        (named(Tensor.norm, X, 2, 1), {"input": X, "p": 2, "dim": 1}),
        # builtins whose order differs from the Python function's
        (named(torch.embedding, W, X, 0), {"weight": W, "input": X, "padding_idx": 0}),
        (named(torch.dropout, X, 0.1, False), {"input": X, "p": 0.1, "training": False}),
        (named(torch.tensordot, X, W, 2), {"input": X, "other": W, "dims": 2}),
        (
            named(torch._VF.lstm, X, (W, W), [W], True, 1, 0.0, False, False, True),
            {
                "input": X,
                "hx": (W, W),
                "params": (W,),
                "has_biases": True,
                "num_layers": 1,
                "dropout": 0.0,
                "train": False,
                "bidirectional": False,
                "batch_first": True,
            },
        ),
        (
            named(torch._VF.lstm, X, W, (W, W), [W], True, 1, 0.0, False, True),
            {
                "input": X,
                "batch_sizes": W,
                "hx": (W, W),
                "params": (W,),
                "has_biases": True,
                "num_layers": 1,
                "dropout": 0.0,
                "train": False,
                "bidirectional": True,
            },
        ),
        # operators of torch.ops
        (named(torch.ops.aten.mm, X, W), {"input": X, "mat2": W}),
        (named(torch.ops.aten.sum.dim_IntList, X, [1]), {"input": X, "dim": (1,)}),
        (named(torch.linalg.vector_norm, X, ord=1), {"input": X, "ord": 1}),
        (named(torch.fft.rfft, X, n=4), {"input": X, "n": 4}),
        (named(torch._C._nn.gelu, X, approximate="tanh"), {"input": X, "approximate": "tanh"}),
        # what Python's syntax passes
        (named(Tensor.__getitem__, X, (slice(None), [0, 1], None)), {"input": X, "index": (slice(None), [0, 1], None)}),
        (named(Tensor.__setitem__, X, 0, 1.5), {"input": X, "index": 0, "value": 1.5}),
        (named(Tensor.T.__get__, X, name="T"), {"input": X}),
        (named(torch.einsum, X, [0, 1], W, [1, 26], [0, 26]), {"equation": "AB,Ba->Aa", "operands": (X, W)}),
        (named(torch.einsum, X, [..., 0], [0]), {"equation": "...A->A", "operands": (X,)}),
        (named(torch.tensor, [[1.0] * 1000], dtype=torch.float64), {"dtype": "float64"}),
    ],
)
def test_bound_names(found: dict[str, object], expected: dict[str, object]) -> None:
    assert found == expected


def test_arguments_come_in_the_order_of_the_signature() -> None:
    assert list(named(torch.conv2d, X, W, stride=2, padding=1)) == ["input", "weight", "stride", "padding"]


def test_values_are_plain() -> None:
    found = named(
        torch.zeros, [1, 2], dtype=torch.bfloat16, device=torch.device("cuda", 1), layout=torch.strided, out=None
    )
    assert found == {"size": (1, 2), "dtype": "bfloat16", "device": "cuda:1", "layout": "strided"}
    assert named(Tensor.contiguous, X, memory_format=torch.channels_last)["memory_format"] == "channels_last"

    def odd(first, table, callback, thing, items):
        return first

    found = named(odd, X, {1: [X, 2]}, max, object(), range(3))
    assert found == {"first": X, "table": {"1": (X, 2)}, "callback": "max", "thing": "object", "items": "range"}


def test_long_lists_are_cut() -> None:
    found = named(torch.cat, [X] * 1000)["tensors"]
    assert isinstance(found, tuple)
    assert len(found) == 257
    assert found[-1] == "…"


def test_what_fits_nothing_is_named_by_position() -> None:
    class Callable:
        def __call__(self, *args):
            return args

    assert bind(Callable(), "thing", (X, 2), {"flag": True}) == {"input": X, "arg1": 2, "flag": True}
    assert bind(Callable(), "thing", (1, X), {}) == {"arg0": 1, "arg1": X}
    assert bind(functools.partial(max, 1), "thing", (2,), {}) == {"arg0": 2}
    assert bind(torch.conv2d, "conv2d", (1, 2, 3, 4, 5, 6, 7, 8, 9), {}) == {f"arg{i}": i + 1 for i in range(9)}
    assert bind(Tensor.to, "to", (), {}) == {}


def test_extra_positional_arguments_of_a_python_function_are_kept() -> None:
    def variadic(first, *rest, **options):
        return first

    assert named(variadic, X, 1, 2, flag=3) == {"first": X, "rest": (1, 2), "flag": 3}


def test_types_decide_only_where_they_can() -> None:
    # A 0-d tensor is taken where torch wants a number: no overload says so, so the names alone decide.
    scalar = TensorSpec((), "int64", "cpu", 8)
    assert named(Tensor.select, X, 0, scalar) == {"input": X, "dim": 0, "index": scalar}


def test_defaults() -> None:
    assert defaults(torch.conv2d, "conv2d")["groups"] == 1
    assert defaults(torch.conv2d, "conv2d")["stride"] == (1, 1)
    assert defaults(F.interpolate, "interpolate")["mode"] == "nearest"
    assert defaults(F.max_pool2d, "max_pool2d")["padding"] == 0
    assert defaults(Tensor.topk, "topk") == {"dim": -1, "largest": True, "sorted": True}
    assert defaults(Tensor.__getitem__, "__getitem__") == {}
    assert defaults(functools.partial(max, 1), "thing") == {}


@pytest.mark.filterwarnings("ignore:.torch.jit.script")
def test_scripted_functions_carry_their_schema() -> None:
    @torch.jit.script
    def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    assert bind(scaled, "scaled", (X, 3.0), {}) == {"x": X, "factor": 3.0}
    assert defaults(scaled, "scaled") == {"factor": 2.0}
