"""Calls are made again as they were: sharing, writes, streams, modes; and only with what the arrows lead to."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.models import recording as zoo
from torchlens.capture.memory import ModelState
from torchlens.proof.replay import Disagreement, Replay, ancestors, from_ancestors
from torchlens.proof.validate import record_noted


def noted(model, *args):
    state = ModelState(model, args)
    recorded = record_noted(model, args, {}, state.copies)
    return recorded.data, recorded.recorder.notes, frozenset(state.copies.changed())


def run_all(model, *args):
    data, notes, written = noted(model, *args)
    replay = Replay(data, notes, written)
    for node in range(len(data.nodes)):
        replay.run(node)
    return data, notes, replay


class Function(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.forward = forward


def modes(x):
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", torch.bfloat16):
        z = y @ y.T
    return z, y


def streams(x):
    return F.dropout(x, 0.5) + torch.randn_like(x) * torch.rand(1, generator=torch.Generator().manual_seed(3))


def writes(x):
    x[0].add_(1)
    y = x.view(-1)
    y[2:4].mul_(x[1, 0])
    x += 1
    out = torch.empty(3, 4)
    torch.mul(x, 2, out=out)
    return x, out.relu_()


def nested(x):
    a, b = torch.stack([x, x * 2]).unbind(0)
    return {"a": torch.cat([a, b], dim=1), "rest": torch.einsum("ij,ij->i", a, b), "top": x.topk(2, 1)}


def public_names(x):
    y = F.interpolate(x[None], scale_factor=2.0)
    return F.embedding_bag(torch.tensor([0, 2, 1]), x, torch.tensor([0, 1])), 1 - y, 2**x, x.split(1), x.norm()


def gradient(x):
    w = x.detach().requires_grad_()
    return torch.autograd.grad((w**2).sum(), w)[0] if torch.is_grad_enabled() else x + 1


def defaults(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(4)
    torch.set_default_dtype(torch.float32)
    return y * x


FUNCTIONS = [modes, streams, writes, nested, public_names, gradient, defaults]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_every_call_gives_its_values_again(function, mode):
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    want = x.clone()
    with mode():
        data, notes, replay = run_all(Function(function), x)
    assert {n for n in data.op_indexes if not data.nodes.synthetic[n]} == notes.inner.keys()
    # On copies: what the forward wrote into its input was written once.
    with mode():
        function(want)
    assert torch.equal(x, want)
    for (node, output), tensor in replay.values.items():
        recorded = notes.values[node][output]
        final = data.nodes.kind[node] == "output"
        assert not final or torch.equal(tensor, recorded)


def test_surroundings_are_put_back():
    was = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))
    run_all(Function(modes), torch.randn(3, 4))
    run_all(Function(defaults), torch.randn(3, 4))
    assert was == (torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))


def test_batch_norm_writes_its_statistics_on_copies():
    torch.manual_seed(0)
    model = zoo.Conv().train()
    data, notes, replay = run_all(model, torch.randn(2, 3, 8, 8))
    versions = [node for node, kind in enumerate(data.nodes.kind) if kind == "buffer" and data.nodes.parents[node]]
    assert len(versions) >= 3
    for node in versions:
        assert torch.equal(replay.values[node, 0], notes.values[node][0])
    norm = model.features[1]
    assert all(t.untyped_storage()._cdata != norm.running_mean.untyped_storage()._cdata for t in replay.values.values())


def test_ancestors_are_all_that_the_arrows_lead_to():
    data, notes, written = noted(zoo.AliasWrite(), torch.randn(2, 4))
    add = data.nodes.func.index("add")
    assert [data.nodes.func[node] for node in ancestors(data, add)] == ["input", "mul", "__getitem__", "mul_", "add"]
    assert from_ancestors(data, notes, written, ancestors(data, add)) == (-1, "")
    without = [node for node in ancestors(data, add) if data.nodes.func[node] != "mul_"]
    at, what = from_ancestors(data, notes, written, without)
    assert at == add
    assert "apart" in what


def test_an_unrelated_write_is_no_ancestor():
    data, notes, written = noted(zoo.DisjointWrite(), torch.randn(2, 4))
    add = data.nodes.func.index("add")
    order = ancestors(data, add)
    assert "relu_" not in [data.nodes.func[node] for node in order]
    assert from_ancestors(data, notes, written, order) == (-1, "")


def test_after_a_disagreement_the_recorded_value_is_used():
    data, notes, written = noted(zoo.Composite(), torch.randn(2, 4))
    first = data.op_indexes[1]
    notes.values[first][0].add_(1)
    replay, wrong = Replay(data, notes, written), []
    for node in range(len(data.nodes)):
        try:
            replay.run(node)
        except Disagreement as problem:
            wrong.append((node, problem.check))
    assert wrong[0] == (first, "replay")
    assert torch.equal(replay.values[first, 0], notes.values[first][0])


def test_a_call_that_raises_is_a_disagreement():
    data, notes, written = noted(zoo.Several(), torch.randn(2, 4))
    node = data.nodes.func.index("sub")
    notes.inner[node].func = len
    replay = Replay(data, notes, written)
    for index in range(node):
        replay.run(index)
    with pytest.raises(Disagreement, match="it raises TypeError"):
        replay.run(node)
