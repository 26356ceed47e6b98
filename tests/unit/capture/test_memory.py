"""Copies keep what shares memory, and everything can be put back."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from torchlens.capture.memory import Copies, ModelState, Workspace, streams_kept


def test_views_stay_views_of_one_copy():
    base = torch.arange(12.0).reshape(3, 4)
    view = base[1:, ::2]
    copies = Copies()
    sources = [copies.meet(base), copies.meet(view)]
    base.zero_()
    (key,) = copies.changed()
    space = Workspace(copies, frozenset([key]))
    first, second = (space.tensor(source) for source in sources)
    assert first.tolist() == torch.arange(12.0).reshape(3, 4).tolist()
    second.add_(100)
    assert first[1, 2] == 106
    assert base.sum() == 0
    assert Workspace(copies, frozenset([key])).tensor(sources[0])[1, 2] == 6
    copies.restore([key])
    assert base[1, 2] == 6


def test_gradient_and_inference_flags_are_kept():
    copies = Copies()
    leaf = nn.Parameter(torch.ones(2))
    inner = leaf * 2
    with torch.inference_mode():
        frozen = torch.ones(2)
    space = Workspace(copies, frozenset())
    again = [space.tensor(copies.meet(tensor)) for tensor in (leaf, inner, frozen)]
    assert [tensor.requires_grad for tensor in again] == [True, True, False]
    assert [tensor.is_leaf for tensor in again] == [True, False, True]
    assert [tensor.is_inference() for tensor in again] == [False, False, True]


def test_other_layouts_are_copied_by_themselves():
    copies = Copies()
    source = copies.meet(torch.tensor([0.0, 3.0]).to_sparse())
    assert source.storage is None
    again = Workspace(copies, frozenset()).tensor(source)
    assert again.to_dense().tolist() == [0.0, 3.0]


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("state", torch.zeros(2))
        self.plain, self.rows, self.seen, self.named = torch.ones(2), [1], {1}, OrderedDict(a=1)
        self.inner = nn.Linear(2, 2)


def test_a_model_is_put_back():
    model, x = Holder(), torch.zeros(2)
    state = ModelState(model, [x])
    assert state.names == ["weight", "state", "plain", "inner.weight", "inner.bias", "argument 0"] or set(
        state.names
    ) == {"weight", "state", "plain", "inner.weight", "inner.bias", "argument 0"}
    before = [tensor.clone() for tensor in state.contents()]
    weight, buffer, inner = model.weight, model.state, model.inner
    stream = torch.get_rng_state()
    with torch.no_grad():
        model.weight.add_(1)
        model.plain.add_(1)
        model.inner.weight.data = torch.zeros(5)
    x += model.weight
    model.state = model.state + 1
    model.rows.append(2)
    model.seen.add(2)
    model.named["b"] = 2
    model.extra, model.training = 3, False
    model.inner = nn.Identity()
    model.register_forward_hook(lambda *_: None)
    torch.randn(3)
    state.restore()
    assert all(torch.equal(was, now) for was, now in zip(before, state.contents(), strict=True))
    assert (model.weight, model.state, model.inner) == (weight, buffer, inner) or model.weight is weight
    assert model.state is buffer
    assert model.inner is inner
    assert model.inner.weight.shape == (2, 2)
    assert (model.rows, model.seen, dict(model.named)) == ([1], {1}, {"a": 1})
    assert not hasattr(model, "extra")
    assert model.training
    assert not model._forward_hooks
    assert not x.requires_grad
    assert x.is_leaf
    assert torch.equal(torch.get_rng_state(), stream)


def test_every_tensor_can_be_given_other_values():
    model, x = Holder(), torch.zeros(2)
    state = ModelState(model, [x])
    state.change(lambda tensor: tensor + 5)
    assert x.tolist() == [5.0, 5.0]
    assert model.weight.tolist() == [6.0, 6.0]
    state.restore()
    assert x.tolist() == [0.0, 0.0]


def test_streams_are_put_back():
    before = torch.get_rng_state()
    with streams_kept():
        torch.randn(2)
        assert not torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)
