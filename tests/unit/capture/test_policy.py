"""Pinning puts everything back and proves it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models import recording as zoo
from torchlens.capture.policy import pinned, state_hash


def test_flags_streams_and_gradients_come_back():
    model = zoo.Conv().train()
    model.features[1].eval()
    flags = [m.training for m in model.modules()]
    stream = torch.get_rng_state()
    with pinned(model) as receipt:
        assert not any(m.training for m in model.modules())
        assert not torch.is_grad_enabled()
        torch.randn(3)
    assert [m.training for m in model.modules()] == flags
    assert torch.equal(torch.get_rng_state(), stream)
    assert torch.is_grad_enabled()
    assert receipt.state_verified
    assert receipt.rng_restored
    assert receipt.flags_restored == len(flags)
    assert receipt.state_hash == state_hash(model)


def test_written_buffers_are_restored_and_named():
    model = nn.BatchNorm1d(2)
    with pinned(model) as receipt:
        model.running_mean.add_(1)
    assert receipt.buffers_restored == ("running_mean",)
    assert receipt.state_verified
    assert model.running_mean.abs().sum() == 0


def test_a_changed_parameter_is_not_called_verified():
    model = nn.Linear(2, 2)
    with pinned(model) as receipt:
        model.weight.add_(1)
    assert not receipt.state_verified


def test_everything_comes_back_after_an_error():
    model = nn.Dropout().train()
    with pytest.raises(ZeroDivisionError), pinned(model):
        _ = 1 / 0
    assert model.training
    assert torch.is_grad_enabled()
