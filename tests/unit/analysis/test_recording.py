"""A whole recording: what is refused before a forward, and what lazy parameters became in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl


def test_lazy_buffers_are_refused_before_the_forward() -> None:
    ran: list[int] = []
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())
    model.register_forward_pre_hook(lambda *_: ran.append(1))
    for verb in (tl.trace, tl.draw):
        with pytest.raises(tl.TorchLensError, match=r"1\.running_mean") as caught:
            verb(model, torch.randn(2, 3, 8, 8))
        assert caught.value.code == "lazy_uninitialized"
    assert not ran
    with torch.no_grad():
        model(torch.randn(2, 3, 8, 8))
    assert len(tl.trace(model.eval(), torch.randn(2, 3, 8, 8)).ops) == 2


def test_lazy_parameters_take_their_shape_and_the_trace_says_so() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.Linear(3, 2))
    trace = tl.trace(model, torch.randn(2, 5))
    assert trace.provenance.lazy_transitions == ("0.weight", "0.bias")
    assert trace.num_params == 5 * 3 + 3 + 3 * 2 + 2
    assert tl.trace(model, torch.randn(2, 5)).provenance.lazy_transitions == ()


def test_a_lazy_module_made_by_the_forward_is_told() -> None:
    class Grows(nn.Module):
        def forward(self, x):
            self.lazy = nn.LazyLinear(4)
            return self.lazy(x)

    trace = tl.trace(Grows(), torch.randn(2, 5))
    assert [row["code"] for row in trace.annotations["capture_advisories"]] == ["parameter_created_in_forward"]
    assert trace["lazy"].num_params == 24
