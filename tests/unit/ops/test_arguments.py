"""Which arguments get a row, and which of them repeat a dimension. On plain values: no torch here."""

from __future__ import annotations

import math

import pytest

from torchlens.ops.arguments import argument_row, index_text, redundant, shown
from torchlens.records.tensors import TensorSpec


def spec(*shape: int, dtype: str = "float32", device: str = "cpu") -> TensorSpec:
    return TensorSpec(shape, dtype, device, 4 * math.prod(shape))


X = spec(2, 3, 8, 8)


def rows(func: str, bound: dict[str, object], out: TensorSpec = X, **defaults: object) -> str:
    """The arguments as they stand in a figure."""
    return ", ".join(argument_row(func, name, value) for name, value in shown(func, bound, (out,), defaults))


CONV = {"input": X, "weight": spec(16, 3, 3, 3), "bias": spec(16)}
NORM = {"input": X, "running_mean": spec(3), "running_var": spec(3), "training": False, "cudnn_enabled": True}


@pytest.mark.parametrize(
    ("func", "bound", "text"),
    [
        # convolution: the kernel comes from the weight
        ("conv2d", CONV, "in_channels=3, out_channels=16, kernel_size=(3, 3)"),
        (
            "conv2d",
            {**CONV, "stride": (1, 1), "padding": (0, 0), "dilation": 1, "groups": 1},
            "in_channels=3, out_channels=16, kernel_size=(3, 3)",
        ),
        (
            "conv2d",
            {**CONV, "stride": (2, 2), "padding": (1, 1)},
            "in_channels=3, out_channels=16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1)",
        ),
        ("conv2d", {**CONV, "padding": "same"}, "in_channels=3, out_channels=16, kernel_size=(3, 3), padding=same"),
        (
            "conv2d",
            {**CONV, "weight": spec(6, 1, 3, 3), "groups": 6},
            "in_channels=6, out_channels=6, kernel_size=(3, 3), groups=6",
        ),
        (
            "conv_transpose2d",
            {**CONV, "weight": spec(3, 4, 2, 2), "groups": 2, "output_padding": (1, 1)},
            "in_channels=3, out_channels=8, kernel_size=(2, 2), output_padding=(1, 1), groups=2",
        ),
        ("conv1d", {"input": X, "weight": spec(4, 3, 5)}, "in_channels=3, out_channels=4, kernel_size=(5,)"),
        ("linear", {"input": X, "weight": spec(10, 8), "bias": None}, "in_features=8, out_features=10"),
        ("linear", {"input": X}, ""),
        # norms: defaults hidden
        ("batch_norm", {**NORM, "eps": 1e-05, "momentum": 0.1}, "num_features=3"),
        ("batch_norm", {**NORM, "eps": 0.001, "momentum": 0.01}, "num_features=3, eps=0.001, momentum=0.01"),
        ("instance_norm", {"input": X, "use_input_stats": True, "eps": 1e-05}, ""),
        (
            "layer_norm",
            {"input": X, "normalized_shape": (8,), "eps": 1e-06, "cudnn_enable": True},
            "normalized_shape=(8,), eps=1e-06",
        ),
        ("group_norm", {"input": X, "num_groups": 3, "eps": 1e-05}, "num_groups=3"),
        # tables
        ("embedding", {"input": X, "weight": spec(100, 16), "padding_idx": -1}, "num_embeddings=100, embedding_dim=16"),
        (
            "embedding",
            {"input": X, "weight": spec(100, 16), "padding_idx": 0},
            "num_embeddings=100, embedding_dim=16, padding_idx=0",
        ),
        # windows: a stride equal to the kernel is the default
        ("max_pool2d", {"input": X, "kernel_size": 2, "stride": None}, "kernel_size=2"),
        ("max_pool2d", {"input": X, "kernel_size": 2, "stride": ()}, "kernel_size=2"),
        ("max_pool2d", {"input": X, "kernel_size": (2, 2), "stride": 2}, "kernel_size=(2, 2)"),
        (
            "max_pool2d",
            {"input": X, "kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": False},
            "kernel_size=3, stride=2, padding=1",
        ),
        ("avg_pool2d", {"input": X, "kernel_size": 2, "stride": 2, "ceil_mode": True}, "kernel_size=2, ceil_mode=True"),
        ("adaptive_avg_pool2d", {"input": X, "output_size": (1, 1)}, "output_size=(1, 1)"),
        ("interpolate", {"input": X, "scale_factor": 2.0, "mode": "nearest"}, "scale_factor=2.0"),
        (
            "interpolate",
            {"input": X, "size": (16, 16), "mode": "bilinear", "align_corners": False},
            "size=(16, 16), mode=bilinear, align_corners=False",
        ),
        ("pad", {"input": X, "pad": (1, 1), "mode": "constant", "value": 0.0}, "pad=(1, 1)"),
        ("pad", {"input": X, "pad": (1, 1), "mode": "reflect"}, "pad=(1, 1), mode=reflect"),
        # dropout says when it does nothing
        ("dropout", {"input": X, "p": 0.5, "training": True}, "p=0.5"),
        ("dropout", {"input": X, "p": 0.1, "training": False, "inplace": True}, "p=0.1, training=False"),
        # dimensions
        ("softmax", {"input": X, "dim": -1, "_stacklevel": 3, "dtype": None}, "dim=-1"),
        ("cat", {"tensors": (X, X), "dim": 0}, ""),
        ("cat", {"tensors": (X, X), "dim": 1}, "dim=1"),
        ("chunk", {"input": X, "chunks": 3, "dim": -1}, "chunks=3, dim=-1"),
        ("mean", {"input": X, "dim": (2, 3), "keepdim": False}, "dim=(2, 3)"),
        ("sum", {"input": X}, ""),
        ("sum", {"input": X, "dim": 0, "keepdim": True}, "dim=0, keepdim=True"),
        ("var", {"input": X, "dim": 1, "unbiased": False}, "dim=1, unbiased=False"),
        ("permute", {"input": X, "dims": (0, 2, 3, 1)}, "dims=(0, 2, 3, 1)"),
        ("transpose", {"input": X, "dim0": 1, "dim1": 2}, "dim0=1, dim1=2"),
        ("unsqueeze", {"input": X, "dim": 1}, "dim=1"),
        # shapes are never shown
        ("view", {"input": X, "size": (2, -1)}, ""),
        ("reshape", {"input": X, "shape": (2, -1)}, ""),
        ("repeat", {"input": X, "repeats": (2, 1)}, ""),
        ("zeros", {"size": (2, 3), "dtype": "float32", "device": "cpu"}, ""),
        ("full", {"size": (2, 3), "fill_value": 0.5}, "fill_value=0.5"),
        ("flatten", {"input": X, "start_dim": 1, "end_dim": -1}, "start_dim=1"),
        ("flatten", {"input": X, "start_dim": 0}, ""),
        # activations
        ("leaky_relu", {"input": X, "negative_slope": 0.01, "inplace": False}, ""),
        ("leaky_relu_", {"input": X, "negative_slope": 0.2}, "negative_slope=0.2"),
        ("hardtanh", {"input": X, "min_val": 0.0, "max_val": 6.0}, "min_val=0.0, max_val=6.0"),
        ("gelu", {"input": X, "approximate": "none"}, ""),
        ("gelu", {"input": X, "approximate": "tanh"}, "approximate=tanh"),
        ("clamp", {"input": X, "min": 0, "max": None}, "min=0"),
        # attention: a scale of 1/√d is the default, written out
        ("scaled_dot_product_attention", {"query": spec(1, 2, 5, 16), "scale": 0.25, "dropout_p": 0.0}, ""),
        (
            "scaled_dot_product_attention",
            {"query": spec(1, 2, 5, 16), "scale": 1.0, "is_causal": True},
            "is_causal=True, scale=1.0",
        ),
        (
            "multi_head_attention_forward",
            {"query": X, "embed_dim_to_check": 16, "num_heads": 4, "dropout_p": 0.0},
            "embed_dim=16, num_heads=4",
        ),
        # recurrent networks: dropout between layers only says something in training
        (
            "lstm",
            {"input": X, "num_layers": 2, "dropout": 0.2, "train": False, "bidirectional": True, "has_biases": True},
            "num_layers=2, bidirectional=True",
        ),
        (
            "lstm",
            {"input": X, "num_layers": 1, "dropout": 0.2, "train": True, "batch_first": True},
            "batch_first=True, dropout=0.2",
        ),
        # arithmetic with a Python number
        ("__add__", {"input": X, "other": 2}, "other=2"),
        ("add", {"input": X, "other": X, "alpha": 1}, ""),
        ("add", {"input": X, "other": X, "alpha": 0.5}, "alpha=0.5"),
        ("__rsub__", {"input": X, "other": 1}, "other=1"),
        ("pow", {"input": X, "exponent": 2}, "exponent=2"),
        ("pow", {"input": 2, "exponent": X}, "input=2"),
        ("gt", {"input": X, "other": 0.5}, "other=0.5"),
        ("where", {"condition": X, "input": X, "other": 0.0}, "other=0.0"),
        ("masked_fill", {"input": X, "mask": X, "value": -math.inf}, "value=-inf"),
        # indexing, without a name
        ("__getitem__", {"input": X, "index": (slice(None), 0)}, "[:, 0]"),
        ("__setitem__", {"input": X, "index": (slice(0, -8),), "value": 0}, "[0:-8], value=0"),
        ("einsum", {"equation": "ij,jk->ik", "operands": (X, X)}, "equation=ij,jk->ik"),
        ("contiguous", {"input": X, "memory_format": "channels_last"}, "memory_format=channels_last"),
    ],
)
def test_rows(func: str, bound: dict[str, object], text: str) -> None:
    assert rows(func, bound) == text


def test_a_cast_shows_what_changed_whatever_spelling_asked_for_it() -> None:
    half = spec(2, 3, 8, 8, dtype="float16")
    moved = spec(2, 3, 8, 8, device="cuda:0")
    assert rows("to", {"input": X, "dtype": "float16"}, half) == "dtype=float16"
    assert rows("to", {"input": X, "other": half}, half) == "dtype=float16"
    assert rows("to", {"input": X, "dtype": "float32", "device": "cpu"}) == ""
    assert rows("to", {"input": X, "device": "cuda"}, moved) == "device=cuda:0"
    assert rows("type", {"input": X, "dtype": "float16"}, half) == "dtype=float16"
    assert rows("half", {"input": X}, half) == ""


def test_a_function_without_a_row_shows_what_differs_from_its_own_defaults() -> None:
    bound = {"input": X, "n": 16, "dim": -1, "norm": None, "mask": X, "lists": (X,), "out": None, "layout": "strided"}
    assert rows("fft_rfft", bound, dim=-1) == "n=16"
    assert rows("fft_rfft", bound) == "n=16, dim=-1"
    assert rows("my_kernel", {"input": X, "flag": True, "stride": (1, 1)}, flag=1, stride=1) == "flag=True"


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "[0]"),
        ((slice(None), 0), "[:, 0]"),
        ((Ellipsis, None), "[..., None]"),
        (slice(1, None), "[1:]"),
        ((slice(None, None, 2), slice(1, -1)), "[::2, 1:-1]"),
        ([0, 2], "[[0, 2]]"),
        ((slice(None), [0, 1]), "[:, [0, 1]]"),
        (X, "[tensor]"),
        ((X, slice(None, X)), "[tensor, :tensor]"),
        ((), "[()]"),
        (True, "[True]"),
    ],
)
def test_index_text(index: object, text: str) -> None:
    assert index_text(index) == text


IN, OUT = (2, 3, 8, 8), (2, 16, 8, 8)


@pytest.mark.parametrize(
    ("func", "name", "value", "sources", "out"),
    [
        ("linear", "in_features", 8, [IN], OUT),
        ("linear", "out_features", 8, [IN], OUT),
        ("conv2d", "in_channels", 3, [IN], OUT),
        ("conv2d", "out_channels", 16, [IN], OUT),
        ("conv_transpose2d", "out_channels", 16, [IN], OUT),
        ("batch_norm", "num_features", 16, [OUT], OUT),
        ("batch_norm", "num_features", 16, [], (4, 16)),
        ("instance_norm", "num_features", 16, [], OUT),
        ("layer_norm", "normalized_shape", (8, 8), [OUT], OUT),
        ("layer_norm", "normalized_shape", (8,), [OUT], OUT),
        ("embedding", "embedding_dim", 8, [(2, 16)], OUT),
        ("multi_head_attention_forward", "embed_dim", 8, [], OUT),
        # the passes of a rolled layer, all of one shape
        ("linear", "in_features", 8, [IN, IN, IN], OUT),
    ],
)
def test_an_argument_that_equals_its_dimension_is_redundant(func, name, value, sources, out) -> None:
    assert redundant(func, name, value, sources, out)


@pytest.mark.parametrize(
    ("func", "name", "value", "sources", "out"),
    [
        # the value differs from the dimension
        ("linear", "in_features", 9, [IN], OUT),
        ("conv2d", "out_channels", 3, [IN], OUT),
        ("layer_norm", "normalized_shape", (16, 8), [IN], OUT),
        ("layer_norm", "normalized_shape", (), [IN], OUT),
        ("layer_norm", "normalized_shape", (1, 2, 16, 8, 8), [IN], OUT),
        # the shape is missing or ambiguous
        ("linear", "in_features", 8, [], OUT),
        ("linear", "in_features", 8, [None], OUT),
        ("linear", "in_features", 8, [IN, None], OUT),
        ("linear", "in_features", 8, [IN, (4, 8)], OUT),
        ("linear", "out_features", 8, [IN], None),
        ("linear", "out_features", 8, [IN], ()),
        # without a batch dimension 1 is no channel
        ("conv2d", "in_channels", 8, [(3, 8, 8)], (16, 8, 8)),
        ("batch_norm", "num_features", 16, [], (16,)),
        # never candidates
        ("conv2d", "kernel_size", (8, 8), [IN], OUT),
        ("conv2d", "groups", 16, [IN], OUT),
        ("embedding", "num_embeddings", 8, [IN], OUT),
        ("group_norm", "num_groups", 16, [IN], OUT),
        ("rms_norm", "normalized_shape", (8,), [OUT], OUT),
        ("embedding_bag", "embedding_dim", 8, [IN], OUT),
        ("multi_head_attention_forward", "num_heads", 8, [IN], OUT),
        ("dropout", "p", 8, [IN], OUT),
        ("my_linear", "in_features", 8, [IN], OUT),
    ],
)
def test_everything_else_stays_visible(func, name, value, sources, out) -> None:
    assert not redundant(func, name, value, sources, out)
