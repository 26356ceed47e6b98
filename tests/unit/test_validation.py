"""The public proof: what it says, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo

validate = tl.validation.validate_forward_pass


class Restless(nn.Module):
    """Changes everything that a forward can change."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("state", torch.zeros(4))
        self.scale = nn.Parameter(torch.ones(4))
        self.kept, self.log, self.calls = torch.zeros(4), [], 0

    def forward(self, x, extra=None):
        self.calls += 1
        self.log.append(self.calls)
        self.kept.add_(1)
        self.late = x * random.random() + float(np.random.rand())
        self.state = self.state + x.mean(0).detach()
        with torch.no_grad():
            self.scale.mul_(0.5)
        if extra is not None:
            x.add_(extra.pop("y"))
        return self.drop(self.norm(x * self.scale)) + self.late + self.kept


def snapshot(model):
    return (
        {name: value.clone() for name, value in model.state_dict().items()},
        {name: value for name, value in vars(model).items() if name not in ("_parameters", "_buffers")},
        [id(tensor) for tensor in (*model.parameters(), *model.buffers())],
        model.kept.clone(),
        list(model.log),
    )


def same(one, other):
    return (
        one[0].keys() == other[0].keys()
        and all(torch.equal(one[0][name], other[0][name]) for name in one[0])
        and one[1].keys() == other[1].keys()
        and all(one[1][name] is other[1][name] or one[1][name] == other[1][name] for name in one[1] if name != "kept")
        and one[2] == other[2]
        and torch.equal(one[3], other[3])
        and one[4] == other[4]
    )


@pytest.mark.parametrize("grad", [True, False])
def test_nothing_is_left_behind(grad):
    torch.manual_seed(0)
    model, x, extra = Restless(), torch.randn(3, 4), {"y": torch.randn(3, 4)}
    before, was, streams = snapshot(model), x.clone(), (torch.get_rng_state(), random.getstate())
    numbers = np.random.get_state()[1].copy()
    with torch.set_grad_enabled(grad):
        report = validate(model, x, input_kwargs={"extra": extra})
    assert report.ok, report
    assert same(before, snapshot(model))
    assert not hasattr(model, "late")
    assert torch.equal(x, was)
    assert not x.requires_grad
    assert list(extra) == ["y"]
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert random.getstate() == streams[1]
    assert (np.random.get_state()[1] == numbers).all()


def test_what_a_report_says():
    report = validate(zoo.Loop(), torch.randn(2, 4))
    assert report.ok
    assert bool(report)
    assert (report.ops, report.replayed, report.failures, report.not_compared) == (13, 13, [], [])
    assert report.ancestors == (1, 1)
    assert report.arguments == 28
    (unshown,) = report.unshown
    assert unshown == ("zeroslike_1_1", (0,), "table")
    assert repr(report).startswith("ValidationReport(Loop: ok, 13 of 13 ops replayed")
    assert "1 by table, 0 by search" in repr(report)


def test_without_changes_of_arguments():
    report = validate(zoo.Loop(), torch.randn(2, 4), perturb=False)
    assert report.ok
    assert (report.replayed, report.arguments) == (13, 0)


def test_a_budget_that_is_too_small_is_said():
    class Wide(nn.Module):
        def forward(self, x):
            return [x + k for k in range(40)]

    assert validate(Wide(), torch.randn(2), budget=20).ancestors == (40, 40)
    tried, wanted = validate(Wide(), torch.randn(2), budget=1).ancestors
    assert wanted == 40
    assert 0 < tried < 40


def test_what_cannot_be_compared_is_listed():
    class Raw(nn.Module):
        def forward(self, x):
            return torch.empty(3).fill_(1) + torch.vmap(torch.sin)(x)

    report = validate(Raw(), torch.randn(3))
    assert report.ok, report
    reasons = [row.reason for row in report.not_compared]
    assert reasons[0] == "uninitialised memory"
    assert any("function transform" in reason for reason in reasons[1:])
    assert report.replayed == report.ops - len(report.not_compared)
    assert "not compared: 1 x uninitialised memory" in repr(report)


def test_a_forward_that_raises_raises_and_leaves_nothing():
    class Fails(Restless):
        def forward(self, x):
            super().forward(x)
            return x @ x

    torch.manual_seed(0)
    model, x = Fails(), torch.randn(3, 4)
    before = snapshot(model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        validate(model, x)
    assert same(before, snapshot(model))


def test_no_model_is_refused():
    with pytest.raises(tl.TorchLensError) as caught:
        validate(len, torch.randn(2))
    assert caught.value.code == "trace_model_invalid"


def test_no_input_is_refused():
    with pytest.raises(tl.TorchLensError) as caught:
        validate(zoo.Loop())
    assert caught.value.code == "trace_input_missing"


def test_many_failures_are_counted():
    report = tl.validation.ValidationReport("Net", ops=30)
    report.failures += [tl.validation.Failure(f"add_{k}", "net.py:1", "replay", "dtype") for k in range(30)]
    assert not report.ok
    assert "30 failures" in repr(report)
    assert "replay: add_0 (net.py:1): dtype" in repr(report)
    assert "and 10 more failures" in repr(report)
