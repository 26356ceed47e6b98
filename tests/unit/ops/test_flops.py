"""FLOPs of whole calls: products against torch's own counter, everything else against counts by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from torchlens.analysis.schemas import bind
from torchlens.ops.flops import backward_factor, forward_flops, forward_macs
from torchlens.records.tensors import TensorSpec


def spec(value: object) -> object:
    """A value with a spec in place of each tensor."""
    if isinstance(value, Tensor):
        shape = None if value.is_nested else tuple(value.shape)
        return TensorSpec(
            shape, str(value.dtype).removeprefix("torch."), str(value.device), value.nbytes if shape else None
        )
    if isinstance(value, (tuple, list)):
        return type(value)([spec(item) for item in value])
    return value


def call(func: Callable, *args: object, name: str = "", **kwargs: object):
    """Name, bound arguments and output specs of a call that is really made."""
    out = func(*args, **kwargs)
    outs = tuple(spec(t) for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor))
    name = name or func.__name__
    return name, bind(func, name, spec(args), {key: spec(value) for key, value in kwargs.items()}), outs


def flops(func: Callable, *args: object, name: str = "", **kwargs: object) -> int | None:
    return forward_flops(*call(func, *args, name=name, **kwargs))


def counted(func: Callable, *args: object, **kwargs: object) -> int:
    """What torch's own counter says. It counts attention only under the plain backend, on the CPU."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        func(*args, **kwargs)
    return counter.get_total_flops()


class LastCall(TorchFunctionMode):
    """Keeps the last recorded call of one name, as a recorder would get it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.found = name, None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == self.name:
            outs = tuple(spec(t) for t in (out if isinstance(out, tuple) else (out,)))
            bound = bind(func, self.name, spec(args), {key: spec(value) for key, value in (kwargs or {}).items()})
            self.found = (self.name, bound, outs)
        return out


def rand(*shape: int) -> Tensor:
    return torch.randn(*shape)


PRODUCTS = {
    "linear": (F.linear, (rand(3, 5), rand(7, 5), rand(7)), {}),
    "linear, four dimensions": (F.linear, (rand(2, 3, 4, 5), rand(7, 5)), {}),
    "linear, no batch": (F.linear, (rand(5), rand(7, 5)), {}),
    "mm": (torch.mm, (rand(3, 5), rand(5, 7)), {}),
    "mm as a method": (Tensor.mm, (rand(3, 5), rand(5, 7)), {}),
    "bmm": (torch.bmm, (rand(2, 3, 5), rand(2, 5, 7)), {}),
    "matmul": (torch.matmul, (rand(3, 5), rand(5, 7)), {}),
    "matmul, broadcast left": (torch.matmul, (rand(2, 1, 3, 5), rand(4, 5, 7)), {}),
    "matmul, broadcast right": (torch.matmul, (rand(2, 6, 3, 5), rand(5, 7)), {}),
    "matmul operator": (Tensor.__matmul__, (rand(2, 3, 5), rand(2, 5, 7)), {}),
    "matmul by keyword": (torch.matmul, (), {"input": rand(3, 5), "other": rand(5, 7)}),
    "addmm": (torch.addmm, (rand(7), rand(3, 5), rand(5, 7)), {"beta": 0.5}),
    "addmm as a method": (Tensor.addmm, (rand(3, 7), rand(3, 5), rand(5, 7)), {}),
    "baddbmm": (torch.baddbmm, (rand(2, 3, 7), rand(2, 3, 5), rand(2, 5, 7)), {"alpha": 2}),
    "conv1d": (F.conv1d, (rand(2, 3, 11), rand(5, 3, 4)), {"stride": 2, "padding": 1}),
    "conv2d": (F.conv2d, (rand(2, 3, 11, 9), rand(5, 3, 4, 2)), {"stride": (2, 1), "padding": 1, "dilation": 2}),
    "conv2d, same": (F.conv2d, (rand(1, 3, 7, 9), rand(5, 3, 3, 3)), {"padding": "same"}),
    "conv2d, groups": (F.conv2d, (rand(2, 6, 11, 9), rand(9, 2, 3, 3)), {"groups": 3}),
    "conv2d, depthwise": (F.conv2d, (rand(2, 6, 7, 7), rand(6, 1, 3, 3)), {"groups": 6}),
    "conv2d, no batch": (F.conv2d, (rand(3, 7, 9), rand(5, 3, 3, 3)), {}),
    "conv3d": (F.conv3d, (rand(1, 2, 5, 6, 7), rand(3, 2, 2, 3, 3)), {"padding": 1}),
    "transposed conv1d": (F.conv_transpose1d, (rand(2, 4, 6), rand(4, 3, 3)), {"stride": 2}),
    "transposed conv2d": (F.conv_transpose2d, (rand(2, 4, 6, 5), rand(4, 3, 3, 2)), {"stride": 2, "output_padding": 1}),
    "transposed conv2d, groups": (F.conv_transpose2d, (rand(2, 4, 6, 5), rand(4, 3, 3, 2)), {"groups": 2}),
    "transposed conv3d": (F.conv_transpose3d, (rand(1, 2, 3, 4, 5), rand(2, 3, 2, 2, 2)), {"stride": 2}),
    "attention": (F.scaled_dot_product_attention, (rand(2, 3, 5, 8), rand(2, 3, 7, 8), rand(2, 3, 7, 6)), {}),
    "attention, causal": (F.scaled_dot_product_attention, (rand(2, 3, 5, 8),) * 3, {"is_causal": True}),
    "attention, three dimensions": (F.scaled_dot_product_attention, (rand(3, 5, 8),) * 3, {}),
    "attention, shared heads": (
        F.scaled_dot_product_attention,
        (rand(2, 6, 5, 8), rand(2, 3, 7, 8), rand(2, 3, 7, 8)),
        {"enable_gqa": True},
    ),
    "einsum": (torch.einsum, ("bhid,bhjd->bhij", rand(2, 3, 4, 5), rand(2, 3, 6, 5)), {}),
    "einsum, ellipsis": (torch.einsum, ("...ij,...jk", rand(2, 3, 4), rand(2, 4, 5)), {}),
    "einsum, list": (torch.einsum, ("ij,kj->ik", [rand(2, 3), rand(4, 3)]), {}),
    "einsum, sublists": (torch.einsum, (rand(2, 3), [0, 1], rand(3, 4), [1, 2], [0, 2]), {}),
    "tensordot": (torch.tensordot, (rand(2, 3, 4), rand(3, 4, 5)), {"dims": 2}),
    "tensordot, dimensions": (torch.tensordot, (rand(2, 3, 4), rand(4, 5, 2)), {"dims": ([0, 2], [2, 0])}),
    "inner": (torch.inner, (rand(3, 5), rand(4, 5)), {}),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_agree_with_torchs_counter(case: str) -> None:
    func, args, kwargs = PRODUCTS[case]
    expected = counted(func, *args, **kwargs)
    assert expected > 0
    assert flops(func, *args, **kwargs) == expected
    assert forward_macs(*call(func, *args, **kwargs)) == expected // 2


@pytest.mark.parametrize(
    ("func", "args", "expected"),
    [
        # torch's counter does not see products with vectors.
        (torch.matmul, (rand(5), rand(5)), 10),
        (torch.matmul, (rand(5), rand(2, 5, 7)), 2 * 2 * 7 * 5),
        (torch.matmul, (rand(2, 3, 5), rand(5)), 2 * 6 * 5),
        (torch.dot, (rand(5), rand(5)), 10),
        (torch.mv, (rand(3, 5), rand(5)), 30),
        (torch.addmv, (rand(3), rand(3, 5), rand(5)), 30),
        (torch.addbmm, (rand(3, 4), rand(2, 3, 5), rand(2, 5, 4)), 2 * 2 * 3 * 5 * 4),
        (torch.outer, (rand(3), rand(4)), 12),
        (F.bilinear, (rand(2, 3), rand(2, 4), rand(7, 3, 4)), 2 * 14 * 3 * 5),
        (Tensor.__rmatmul__, (rand(5, 7), rand(3, 5)), 2 * 3 * 7 * 5),
        (torch.einsum, ("i,j->ij", rand(3), rand(4)), 12),
    ],
)
def test_other_products_by_hand(func: Callable, args: tuple[object, ...], expected: int) -> None:
    assert flops(func, *args) == expected


@pytest.mark.parametrize(
    ("module", "name", "shape", "expected"),
    [
        (nn.LSTM(5, 6), "lstm", (7, 2, 5), 2 * 14 * 4 * (5 + 6) * 6),
        (nn.LSTM(5, 6, batch_first=True), "lstm", (2, 7, 5), 2 * 14 * 4 * (5 + 6) * 6),
        (nn.LSTM(5, 6), "lstm", (7, 5), 2 * 7 * 4 * (5 + 6) * 6),
        (nn.LSTM(5, 6, 2), "lstm", (7, 2, 5), 2 * 14 * 4 * ((5 + 6) * 6 + (6 + 6) * 6)),
        (
            nn.LSTM(5, 6, 2, bidirectional=True),
            "lstm",
            (7, 2, 5),
            2 * 14 * 4 * 2 * ((5 + 6) * 6 + (12 + 6) * 6),
        ),
        (nn.LSTM(5, 6, proj_size=3), "lstm", (7, 2, 5), 2 * 14 * (4 * (5 + 3) * 6 + 3 * 6)),
        (nn.GRU(5, 6, bias=False), "gru", (7, 2, 5), 2 * 14 * 3 * (5 + 6) * 6),
        (nn.RNN(5, 6), "rnn_tanh", (7, 2, 5), 2 * 14 * (5 + 6) * 6),
        (nn.RNN(5, 6, nonlinearity="relu"), "rnn_relu", (7, 2, 5), 2 * 14 * (5 + 6) * 6),
        (nn.LSTMCell(5, 6), "lstm_cell", (2, 5), 2 * 2 * 4 * (5 + 6) * 6),
        (nn.GRUCell(5, 6), "gru_cell", (2, 5), 2 * 2 * 3 * (5 + 6) * 6),
        (nn.RNNCell(5, 6), "rnn_tanh_cell", (2, 5), 2 * 2 * (5 + 6) * 6),
    ],
)
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_recurrent_networks_by_closed_formula(
    module: nn.Module, name: str, shape: tuple[int, ...], expected: int
) -> None:
    with LastCall(name) as last:
        module(rand(*shape))
    assert last.found is not None
    assert forward_flops(*last.found) == expected
    assert forward_macs(*last.found) is None


def test_a_packed_sequence_counts_its_real_steps() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(rand(7, 2, 5), torch.tensor([7, 4]))
    with LastCall("lstm") as last:
        nn.LSTM(5, 6)(packed)
    assert last.found is not None
    assert forward_flops(*last.found) == 2 * (7 + 4) * 4 * (5 + 6) * 6


X = rand(2, 3, 8)
IMAGE = rand(1, 2, 8, 8)


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "per_output"),
    [
        (torch.add, (X, X), {}, 1),
        (Tensor.__iadd__, (X.clone(), 1), {}, 1),
        (torch.neg, (X,), {}, 1),
        (torch.relu, (X,), {}, 1),
        (F.relu6, (X,), {}, 1),
        (torch.clamp, (X, 0), {}, 1),
        (torch.gt, (X, 0), {}, 1),
        (torch.pow, (X, 2), {}, 2),
        (torch.sqrt, (X.abs(),), {}, 2),
        (torch.rsqrt, (X.abs(),), {}, 2),
        (torch.lerp, (X, X, 0.5), {}, 3),
        (torch.addcmul, (X, X, X), {}, 3),
        (F.hardsigmoid, (X,), {}, 3),
        (torch.sigmoid, (X,), {}, 4),
        (F.hardswish, (X,), {}, 4),
        (F.silu, (X,), {}, 5),
        (F.logsigmoid, (X,), {}, 5),
        (torch.tanh, (X,), {}, 6),
        (torch.exp, (X,), {}, 8),
        (torch.sin, (X,), {}, 8),
        (F.elu, (X,), {}, 9),
        (F.softplus, (X,), {}, 9),
        (torch.selu, (X,), {}, 10),
        (F.gelu, (X,), {}, 14),
        (F.softmax, (X, -1), {}, 5),
        (F.log_softmax, (X, -1), {}, 6),
        (F.dropout, (X,), {}, 2),
        (F.layer_norm, (X, (8,)), {}, 5),
        (F.group_norm, (IMAGE, 2), {}, 5),
        (F.instance_norm, (IMAGE,), {}, 5),
        (F.batch_norm, (IMAGE, torch.zeros(2), torch.ones(2)), {}, 5),
        (F.interpolate, (IMAGE,), {"scale_factor": 2}, 4),
        (torch.cumsum, (X, 1), {}, 1),
        (F.max_pool2d, (IMAGE, 3), {}, 9),
        (F.avg_pool2d, (IMAGE, (2, 4)), {}, 8),
        (F.max_pool1d, (X, 2), {}, 2),
        (torch.maximum, (X, X), {}, 1),
        (torch.max, (X, X), {}, 1),
    ],
)
def test_costs_per_output_element(
    func: Callable, args: tuple[object, ...], kwargs: dict[str, object], per_output: int
) -> None:
    name, bound, outs = call(func, *args, **kwargs)
    assert forward_flops(name, bound, outs) == per_output * math.prod(outs[0].shape or ())
    assert forward_macs(name, bound, outs) is None


@pytest.mark.parametrize(
    ("func", "args", "expected"),
    [
        (torch.sum, (X,), 48),
        (Tensor.mean, (X, 1), 48),
        (torch.max, (X, 1), 48),
        (torch.argmax, (X,), 48),
        (torch.var, (X,), 3 * 48),
        (Tensor.std, (X, 1), 3 * 48),
        (torch.norm, (X,), 2 * 48),
        (torch.linalg.vector_norm, (X,), 2 * 48),
        (torch.topk, (X, 2), 48 * 3),
        (torch.sort, (X, 1), round(48 * math.log2(3))),
        (F.adaptive_avg_pool2d, (IMAGE, 1), 128),
        (F.mse_loss, (X, X), 3 * 48),
        (F.l1_loss, (X, X), 3 * 48),
        (F.cross_entropy, (rand(4, 5), torch.tensor([0, 1, 2, 3])), 6 * 20),
        (F.binary_cross_entropy_with_logits, (X, torch.ones_like(X)), 10 * 48),
    ],
)
def test_costs_per_input_element(func: Callable, args: tuple[object, ...], expected: int) -> None:
    assert flops(func, *args) == expected


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (Tensor.view, (X, -1)),
        (Tensor.__getitem__, (X, 0)),
        (torch.cat, ([X, X],)),
        (Tensor.to, (X, torch.float64)),
        (Tensor.float, (X,)),
        (F.embedding, (torch.tensor([1]), rand(3, 4))),
        (torch.zeros, (2, 3)),
        (F.pad, (X, (1, 1))),
        (torch.permute, (X, (0, 2, 1))),
        (Tensor.contiguous, (X,)),
        (torch.arange, (3,)),
        (Tensor.zero_, (X.clone(),)),
        (torch.broadcast_tensors, (rand(2), rand(3, 1))),
        (torch.rand, (2,)),
        (F.one_hot, (torch.tensor([1]), 3)),
    ],
)
def test_moving_data_costs_nothing(func: Callable, args: tuple[object, ...]) -> None:
    assert flops(func, *args) == 0


def test_a_bag_of_embeddings_adds_up_its_rows() -> None:
    table, rows = rand(10, 4), torch.arange(6).reshape(2, 3)
    assert flops(F.embedding_bag, rows, table) == 6 * 4
    weights = rand(2, 3)
    assert flops(F.embedding_bag, rows, table, mode="sum", per_sample_weights=weights) == 2 * 6 * 4
    offsets = torch.tensor([0, 2])
    assert flops(torch.embedding_bag, table, rows.reshape(-1), offsets) == 6 * 4


def test_a_normed_weight_is_a_norm_and_a_scaling() -> None:
    assert flops(torch._weight_norm, rand(3, 5), rand(3, 1), 0) == 3 * 15


def test_dropout_outside_training_costs_nothing() -> None:
    assert flops(F.dropout, X, 0.5, False) == 0
    assert flops(torch.dropout, X, 0.5, False) == 0


def test_what_is_not_known_is_none() -> None:
    known = TensorSpec((2, 3), "float32", "cpu", 24)
    nested = TensorSpec(None, "float32", "cpu", None)
    assert forward_flops("my_kernel", {"input": known}, (known,)) is None
    assert forward_macs("my_kernel", {"input": known}, (known,)) is None
    assert backward_factor("my_kernel") is None
    assert forward_flops("fft_rfft", {"input": known}, (known,)) is None
    assert forward_flops("linear", {"arg0": known}, (known,)) is None
    assert forward_flops("linear", {"input": nested, "weight": known}, (nested,)) is None
    assert forward_flops("add", {"input": known}, ()) is None
    assert forward_flops("max_pool2d", {"input": known}, (known,)) is None
    assert forward_flops("conv2d", {"input": known, "weight": nested}, (known,)) is None
    assert forward_flops("einsum", {"equation": "ij,jk", "operands": (known,)}, (known,)) is None
    assert forward_flops("inner", {"input": TensorSpec((), "float32", "cpu", 4), "other": known}, (known,)) is None


def test_backward_factors() -> None:
    factors = {
        "linear": 2,
        "conv2d": 2,
        "__matmul__": 2,
        "softmax": 2,
        "layer_norm": 2.5,
        "scaled_dot_product_attention": 2.5,
    }
    factors |= {"sigmoid": 1.5, "tanh": 1.5, "gelu": 1.5, "silu_": 1.5, "elu": 1.5, "relu": 1, "add": 1, "view": 1}
    assert {name: backward_factor(name) for name in factors} == factors
