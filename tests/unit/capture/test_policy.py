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


def test_buffers_of_all_kinds_are_as_before():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("nan", torch.tensor([float("nan"), 1.0]))
            self.register_buffer("resized", torch.zeros(2))
            self.register_buffer("away", torch.zeros(2, device="meta"))
            with torch.inference_mode():
                self.register_buffer("inferred", torch.zeros(2))

        def forward(self, x):
            self.resized.resize_(4)
            with torch.inference_mode():
                self.inferred.add_(1)
            return x + self.nan

    model = Odd()
    with pinned(model) as receipt:
        model(torch.ones(2))
    assert set(receipt.buffers_restored) == {"resized", "inferred"}
    assert receipt.state_verified
    assert model.resized.tolist() == model.inferred.tolist() == [0.0, 0.0]


def test_hashing_leaves_memory_as_it_is():
    model = nn.BatchNorm1d(3)
    state_hash(model)
    assert model.running_mean.resize_(5).shape == (5,)


def test_listing_methods_of_the_model_are_not_asked():
    class Closed(nn.BatchNorm1d):
        def modules(self):
            raise RuntimeError("not for you")

        named_modules = modules

    model = Closed(3).train()
    with pinned(model) as receipt:
        assert not model.training
        model(torch.ones(2, 3))
    assert model.training
    assert receipt.state_verified
