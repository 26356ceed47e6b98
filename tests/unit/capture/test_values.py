"""Kept values are right as of their call, or refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def test_values_are_references_not_copies():
    model = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    result = tl.trace(model, x)
    assert result["input_1"].out.data_ptr() == x.data_ptr()
    assert result["linear_1_1"].out.data_ptr() == result.result.data_ptr()
    assert not result["linear_1_1"].out.requires_grad
    assert result.result.requires_grad


def test_a_value_written_in_place_later_is_as_it_was():
    model = zoo.Conv().eval()
    x = torch.randn(2, 3, 8, 8)
    result = tl.trace(model, x)
    normed = model.features[1](model.features[0](x))
    assert torch.allclose(result["batchnorm_1_2"].out, normed)
    assert torch.allclose(result["relu_1_3"].out, normed.relu())


def test_an_input_written_in_place_is_kept_as_given():
    class Write(nn.Module):
        def forward(self, x):
            return x.mul_(2) + 1

    x = torch.ones(3)
    result = tl.trace(Write(), x)
    assert torch.equal(x, torch.full((3,), 2.0))
    assert torch.equal(result["input_1"].out, torch.ones(3))
    assert torch.equal(result["mul_1_1"].out, torch.full((3,), 2.0))


def test_a_write_through_a_view_spares_the_whole():
    x = torch.ones(2, 4)
    result = tl.trace(zoo.AliasWrite(), x)
    assert torch.equal(result["mul_1_1"].out, torch.full((2, 4), 2.0))
    assert torch.equal(result["mul_2_3"].out, torch.full((2,), 6.0))
    assert result["add_1_4"].out[:, 0].tolist() == [7.0, 7.0]


def test_a_later_write_by_the_caller_is_refused_not_shown():
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    result = tl.trace(Add(), torch.ones(2))
    assert result["add_1_1"].out.tolist() == [2.0, 2.0]
    result.result.mul_(5)
    with pytest.raises(tl.TorchLensError) as caught:
        _ = result["add_1_1"].out
    assert caught.value.code == "payload_overwritten"


def test_several_outputs_keep_their_structure():
    result = tl.trace(zoo.Several(), torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert result["max_1_1"].out.values.tolist() == [4.0]
    assert result["max_1_1"].out.indices.tolist() == [3]
    assert [part.tolist() for part in result["split_1_2"].out] == [[[1.0, 2.0]], [[3.0, 4.0]]]


def test_assigned_slices_keep_each_state():
    result = tl.trace(zoo.ListWrite(), torch.arange(8.0).reshape(2, 4))
    assert result["zeros_1_1"].out.abs().sum() == 0
    assert result["setitem_1_3"].out[0].tolist() == [0.0, 4.0]
    assert result["setitem_1_3"].out[1].tolist() == [0.0, 0.0]
    assert torch.equal(result["setitem_3_7"].out, result.result)


def test_metadata_only_keeps_nothing_and_says_so():
    result = tl.trace(nn.Linear(4, 4), torch.randn(2, 4), save="none")
    assert result.result is None
    with pytest.raises(tl.TorchLensError) as caught:
        _ = result["linear_1_1"].out
    assert caught.value.code == "payload_unavailable"
