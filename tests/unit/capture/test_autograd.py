"""What autograd keeps, op by op, agrees with what hooks on saved tensors see."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torchlens as tl
from torchlens.capture import autograd


def traced(model, *args) -> tl.Trace:
    return tl.trace(model, args, save="none", capture={"saved_for_backward": True})


def packed(model, *args) -> tuple[int, int]:
    """Storages that pack hooks see in a plain run, and their bytes."""
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        seen[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = model(*args)
    count = len(seen), sum(storage.nbytes() for storage in seen.values())
    del result
    return count


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp() * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1]


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return Exp.apply(self.fc(x)).sum()


class Written(nn.Module):
    """In-place ops, views and one storage read twice."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        y = y.relu_().view(2, -1)
        return (y * y.sigmoid()).sum() + y.t().tanh().sum()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.gru = nn.LSTMCell(4, 4), nn.GRU(4, 3)

    def forward(self, x):
        h, c = self.cell(x)
        return self.gru(torch.stack([h, c]))[0]


MODELS = {
    "custom function": (Custom, (3, 4)),
    "in place": (Written, (2, 4)),
    "recurrent": (Recurrent, (3, 4)),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        (2, 3, 8, 8),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_that_hooks_see(name):
    factory, shape = MODELS[name]
    torch.manual_seed(0)
    model, x = factory(), torch.randn(shape)
    _, nbytes = packed(model, x)
    trace = traced(model, x)
    assert trace.total_autograd_memory == trace.totals["autograd_bytes"] == nbytes > 0
    assert trace.totals["autograd_unknown_ops"] == 0
    assert sum(op.autograd_memory for op in trace.ops) >= nbytes


@pytest.mark.models
def test_bytes_of_a_resnet_are_those_that_hooks_see():
    from torchvision.models import resnet18

    model, x = resnet18(weights=None).train(), torch.randn(2, 3, 64, 64)
    storages, nbytes = packed(model, x)
    trace = traced(model, x)
    assert trace.total_autograd_memory == nbytes
    assert sum(op.num_autograd_tensors for op in trace.ops) >= storages


def test_counts_of_single_ops():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Flatten())
    x = torch.randn(3, 4)
    trace = traced(model, x)
    linear, relu, flatten = (trace[f"{name}"] for name in ("linear_1_1", "relu_1_2", "flatten_1_3"))
    # The input and nothing of the weight, whose product nobody needs: x takes no gradient.
    assert (linear.num_autograd_tensors, linear.autograd_memory) == (1, 3 * 4 * 4)
    assert (relu.num_autograd_tensors, relu.autograd_memory) == (1, 3 * 5 * 4)
    assert (flatten.num_autograd_tensors, flatten.autograd_memory) == (0, 0)
    assert trace["output_1"].num_autograd_tensors is None
    needing = traced(model, x.clone().requires_grad_())
    assert (needing["linear_1_1"].num_autograd_tensors, needing["linear_1_1"].autograd_memory) == (2, (12 + 20) * 4)


def test_one_storage_counts_once_in_an_op_and_over_the_trace():
    class Square(nn.Module):
        def forward(self, x):
            return (x * x).sum() + x.view(-1).sin().sum()

    trace = traced(Square(), torch.ones(3, 4, requires_grad=True))
    assert (trace["mul_1_1"].num_autograd_tensors, trace["mul_1_1"].autograd_memory) == (1, 48)
    assert trace["sin_1_4"].autograd_memory == 48
    assert trace.total_autograd_memory == 48


def test_a_python_number_is_no_tensor_but_a_tensor_of_one_number_is():
    class Scale(nn.Module):
        def forward(self, x):
            return (x * 2.5 / 3 * torch.tensor(2.0, dtype=torch.float64) * torch.tensor(4)).sum()

    x = torch.ones(3, requires_grad=True)
    assert packed(Scale(), x) == (2, 16)
    trace = traced(Scale(), x)
    assert [op.autograd_memory for op in trace.ops if op.func_name in ("mul", "div")] == [0, 0, 8, 8]
    assert trace.total_autograd_memory == 16


def test_the_graph_of_an_earlier_run_is_not_counted():
    before = (torch.ones(100, requires_grad=True) * 2).exp()

    class Add(nn.Module):
        def forward(self, x):
            return (x + 1).tanh()

    trace = traced(Add(), before)
    assert [op.num_autograd_tensors for op in trace.ops] == [0, 1]
    assert trace.total_autograd_memory == 400


def test_a_custom_function_is_counted_at_the_op_that_made_its_result():
    trace = traced(Custom(), torch.randn(3, 4))
    counts = {op.label: op.num_autograd_tensors for op in trace.ops}
    assert counts == {"linear_1_1": 1, "exp_1_2": 0, "mul_1_3": 2, "sum_1_4": 0}


def test_without_gradients_nothing_is_kept():
    with torch.no_grad():
        trace = traced(Custom(), torch.randn(3, 4))
    assert {op.num_autograd_tensors for op in trace.ops} == {0}
    assert trace.total_autograd_memory == 0


def test_not_measured_is_unknown():
    trace = tl.trace(Custom(), torch.randn(3, 4), save="none")
    assert {op.num_autograd_tensors for op in trace.ops} == {None}
    assert trace.total_autograd_memory is None
    assert trace.totals["autograd_unknown_ops"] is None


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant, self.body = reentrant, nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.runs = 0

    def run(self, x):
        self.runs += 1
        return self.body(x)

    def forward(self, x):
        return checkpoint(self.run, x.exp(), use_reentrant=self.reentrant).sum()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_not_unpacked(reentrant):
    model, x = Checkpointed(reentrant), torch.randn(2, 4, requires_grad=True)
    _, nbytes = packed(model, x)
    model.runs = 0
    trace = traced(model, x)
    assert model.runs == 1
    # What hooks made of a tensor is unknown. A reentrant checkpoint runs its body without a graph; its own node, which
    # came to the last result, holds the input and, on its context, the random state.
    inner = [op.num_autograd_tensors for op in trace.ops if op.modules]
    assert inner == ([0, 0, 2] if reentrant else [None, None, None])
    assert trace.totals["autograd_unknown_ops"] == (0 if reentrant else 3)
    assert nbytes == 32
    assert trace.total_autograd_memory == nbytes + (torch.get_rng_state().nbytes if reentrant else 0)


def test_tensors_moved_by_hooks_are_still_tensors():
    class Offloaded(nn.Module):
        def forward(self, x):
            with torch.autograd.graph.save_on_cpu():
                return x.tanh().sum()

    trace = traced(Offloaded(), torch.ones(2, 4, requires_grad=True))
    assert (trace["tanh_1_1"].num_autograd_tensors, trace["tanh_1_1"].autograd_memory) == (1, 32)


def test_hooks_of_the_caller_are_not_run_more_often():
    calls = []

    def pack(tensor):
        calls.append("pack")
        return tensor

    def unpack(tensor):
        calls.append("unpack")
        return tensor

    x = torch.ones(2, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        Custom()(x[:, :4])
        plain = list(calls)
        calls.clear()
        traced(Custom(), x[:, :4])
    assert calls == plain
    assert "unpack" not in calls


def test_gradients_come_out_as_without_measuring():
    model = MODELS["transformer layer"][0]().eval()
    x = torch.randn(2, 5, 8, requires_grad=True)
    model(x).sum().backward()
    plain, x.grad = x.grad, None
    tl.trace(model, x, capture={"saved_for_backward": True, "out_stats": True}).result.sum().backward()
    assert torch.equal(x.grad, plain)


def test_older_torch_reads_what_is_saved_where_no_hook_is_in_force(monkeypatch):
    class Older:
        """A saved value that does not show what it packs."""

    y = torch.ones(3, requires_grad=True).tanh()
    monkeypatch.setattr(autograd, "_fields", lambda kind: ("_raw_saved_result",))
    assert [t.data_ptr() for t in autograd._packed(y.grad_fn, "_raw_saved_result", Older())] == [y.data_ptr()]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert autograd._packed(y.grad_fn, "_raw_saved_result", Older()) is None
