"""Matrix products, convolutions and attention count what torch's own counter counts, on all models of the oracle.

The counter sits below the functions of torch. It returns 0 for the fused attention kernels of the CPU and misses the
encoder fast path, so both are switched off for it; a fused LSTM it does not see at all, a GRU or a cell it sees as
the matrix products it is made of.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import torchlens as tl
from tests.oracle import zoo
from tests.oracle.facts import RECORDS, trace_second_forward
from torchlens.ops.families import family_of

PRODUCTS = {
    "linear", "bilinear", "matmul", "reflected matmul", "added matmul", "tensordot", "einsum", "convolution",
    "transposed convolution", "attention",
}  # fmt: skip
# Models with recurrent layers: whether the counter sees their matrix products. The fused LSTM is one opaque kernel.
RECURRENT = {"zoo_rnn_cell_sequence": True, "zoo_gru_bidirectional": True, "zoo_lstm_module": False}
# Data decides how much these compute, or there is no agreed count.
UNKNOWN = {"roi_align", "nms", "linalg_qr", "fft_rfft", "fft_irfft"}


@pytest.fixture(autouse=True)
def ordinary_path():
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


def counted(model, args, kwargs) -> int:
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*args, **kwargs)
    return counter.get_total_flops()


def ours(trace: tl.Trace, formulas: set[str]) -> int:
    ops = [op for op in trace.ops if (family := family_of(op.func_name)) and family.formula in formulas]
    assert all(op.flops_forward is not None for op in ops)
    return sum(op.flops_forward for op in ops)


def _case(record: dict) -> object:
    heavy = () if record["family"] == "zoo" else (pytest.mark.models,)
    return pytest.param(record, id=record["key"], marks=heavy)


@pytest.mark.parametrize("record", [_case(record) for record in RECORDS])
def test_products_agree_with_the_counter(record):
    model = zoo.build_model(record)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for seed in (2, 2):  # the recorded forward is a model's second one too
        model.load_state_dict(before)
        args, kwargs = zoo.make_inputs(record)
        torch.manual_seed(seed)
        theirs = counted(model, args, kwargs)
    trace = trace_second_forward(record)
    recurrent = ours(trace, {"recurrent", "recurrent cell"})
    assert bool(recurrent) == (record["key"] in RECURRENT)
    seen = recurrent if RECURRENT.get(record["key"]) else 0
    assert ours(trace, PRODUCTS) + seen == theirs
    unknown = {trace[label].func_name for label in trace.ops_without_flops}
    assert unknown <= UNKNOWN
    assert trace.totals["flops_unknown_ops"] == len(trace.ops_without_flops)


def arithmetic(shape: tuple[int, ...], *factors: int) -> int:
    """A multiply and an add for every combination of these sizes."""
    return 2 * math.prod(shape) * math.prod(factors)


CALLS = {
    "grouped convolution": (lambda x: F.conv2d(x, torch.ones(6, 2, 3, 3), groups=2), (2, 4, 8, 8),
                            arithmetic((2, 6, 6, 6), 2, 3, 3)),
    "dilated and padded": (lambda x: F.conv1d(x, torch.ones(5, 4, 3), padding=2, dilation=2), (1, 4, 9),
                           arithmetic((1, 5, 9), 4, 3)),
    "transposed": (lambda x: F.conv_transpose2d(x, torch.ones(4, 3, 2, 2), stride=2), (1, 4, 5, 5),
                   arithmetic((1, 4, 5, 5), 3, 2, 2)),
    "broadcast product": (lambda x: torch.matmul(x, torch.ones(5, 7)), (3, 2, 4, 5), arithmetic((3, 2, 4, 7), 5)),
    "contraction": (lambda x: torch.einsum("bij,bjk->bik", x, torch.ones(2, 4, 5)), (2, 3, 4),
                    arithmetic((2, 3, 5), 4)),
    "shared key heads": (lambda x: F.scaled_dot_product_attention(
        x, torch.ones(2, 2, 5, 8), torch.ones(2, 2, 5, 6), enable_gqa=True), (2, 4, 3, 8),
                         arithmetic((2, 4, 3, 5), 8 + 6)),
    "causal": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (1, 2, 4, 8),
               arithmetic((1, 2, 4, 4), 8 + 8)),
}  # fmt: skip


class Call(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


@pytest.mark.parametrize("name", CALLS)
def test_single_calls_agree_with_the_counter_and_with_arithmetic(name):
    call, shape, wanted = CALLS[name]
    model = Call(call)
    trace = tl.trace(model, torch.ones(shape), save="none")
    assert ours(trace, PRODUCTS) == counted(model, (torch.ones(shape),), {}) == wanted
    assert trace.totals["macs"] == wanted // 2 == trace.total_macs_forward


def test_recurrent_layers_agree_with_arithmetic():
    steps, batch, features, hidden = 5, 3, 4, 6
    trace = tl.trace(nn.LSTM(features, hidden, num_layers=2), torch.ones(steps, batch, features), save="none")
    first = arithmetic((steps, batch), 4, features + hidden, hidden)
    assert trace.total_flops_forward == first + arithmetic((steps, batch), 4, hidden + hidden, hidden)
