"""Addresses, aliases, calls and state of modules."""

from __future__ import annotations

import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def test_tied_parameters_have_one_record_with_aliases():
    result = tl.trace(zoo.Tied(), torch.tensor([[1, 2]]))
    (weight,) = result.params
    assert (weight.address, weight.aliases, weight.shape) == ("embed.weight", ("head.weight",), (10, 4))
    assert [result.data.nodes.label[i] for i in weight.used_by] == ["embedding_1_1", "linear_1_2"]
    assert result["linear_1_2"].params == ("embed.weight",)


def test_a_module_under_two_names_has_one_record():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.left = nn.Linear(4, 4)
            self.right = self.left

        def forward(self, x):
            return self.left(x) + self.right(x)

    result = tl.trace(Twice(), torch.randn(2, 4))
    assert [(m.address, m.num_calls) for m in result.modules] == [("", 1), ("left", 2)]
    assert result.data.modules[1].aliases == ("right",)
    assert result["right"].address == "left"
    assert result["linear_1_1"].num_passes == 2


def test_modules_in_plain_lists_get_an_address_and_their_parameters():
    result = tl.trace(zoo.Hidden(), torch.randn(2, 4))
    assert [m.address for m in result.modules] == ["", "blocks[0]", "blocks[1]"]
    assert not result.data.modules[1].registered
    assert result["linear_1_1"].params == ("blocks[0].weight", "blocks[0].bias")
    assert result["linear_2_2"].modules == ("blocks[1]:1",)


def test_calls_nest_and_number():
    result = tl.trace(zoo.Loop(), torch.randn(2, 4))
    assert result["rec"].calls == ("rec:1", "rec:2", "rec:3")
    assert result["linear_2_3:2"].modules == ("rec:2",)
    spans = [call.span for call in result.data.calls if call.index]
    assert all(last - first == 1 for first, last in spans)


def test_modules_that_never_run_are_listed():
    model = zoo.Branch()
    result = tl.trace(model, torch.ones(2, 4))
    assert {m.address: m.num_calls for m in result.modules} == {"": 1, "pos": 1, "neg": 0}


def test_frozen_parameters_are_told_apart():
    model = nn.Linear(4, 2)
    model.weight.requires_grad_(False)
    result = tl.trace(model, torch.randn(1, 4))
    assert {p.name: p.trainable for p in result.params} == {"weight": False, "bias": True}
    assert result.data.totals["trainable_params"] == 2


def test_lazy_parameters_show_their_real_size():
    result = tl.trace(nn.Sequential(nn.LazyLinear(3)), torch.randn(2, 5))
    assert {p.address: p.shape for p in result.params} == {"0.weight": (3, 5), "0.bias": (3,)}
    assert set(result["linear_1_" + str(result.ops[-1].step)].params) == {"0.weight", "0.bias"}
