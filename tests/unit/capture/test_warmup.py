"""Warm-up runs and seeds: the recorded run is what a single plain call would be."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


class Busy(nn.Module):
    """Changes everything that a forward can change of its model and its arguments."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("step", torch.zeros(()))
        self.calls, self.log, self.plain = 0, [], torch.zeros(1)

    def forward(self, x, cache):
        self.calls += 1
        self.log.append(self.calls)
        self.step = self.step + 1
        self.plain += 1
        with torch.no_grad():
            self.weight.mul_(2)
        if not hasattr(self, "table"):
            self.table = torch.arange(4.0)
            self.register_buffer("late", torch.ones(1))
        x.add_(1)
        cache["seen"] = cache.get("seen", 0) + 1
        cache["steps"].append(self.step)
        noise = torch.rand(4) + random.random() + float(np.random.rand())
        return self.drop(self.norm(x)) * self.weight * self.step + noise + cache["seen"] + self.table


def state(model):
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    return tensors, model.calls, list(model.log), model.plain.clone(), sorted(vars(model)), sorted(model._buffers)


def same(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def seed_all():
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)


def streams():
    return torch.rand(1).item(), random.random(), float(np.random.rand())


@pytest.mark.filterwarnings("ignore::torchlens.TorchLensWarning")
def test_after_warm_up_everything_is_as_after_one_plain_call():
    model, x, cache = Busy(), torch.randn(3, 4), {"steps": []}
    plain, plain_x, plain_cache = copy.deepcopy(model), x.clone(), {"steps": []}
    seed_all()
    wanted = plain(plain_x, plain_cache)
    after = streams()
    seed_all()
    trace = tl.trace(model, (x, cache), capture={"warmup": 3})
    assert streams() == after
    assert torch.equal(trace.result, wanted)
    assert same(state(model), state(plain))
    assert torch.equal(x, plain_x)
    assert same(cache, plain_cache)


def test_the_model_runs_that_often_and_once_more():
    runs = []

    class Count(nn.Module):
        def forward(self, x):
            runs.append(1)
            return x + 1

    trace = tl.trace(Count(), torch.ones(1), save="none", capture={"warmup": 2})
    assert len(runs) == 3
    assert [op.label for op in trace.ops] == ["add_1_1"]
    assert trace.modules[0].num_calls == 1


def test_a_forward_that_fails_does_so_in_the_recorded_run():
    with pytest.raises(RuntimeError) as caught:
        tl.trace(zoo.Fails(), torch.randn(2, 4), capture={"warmup": 2})
    assert len(caught.value.partial_trace) == 2


def test_lazy_state_is_not_given_a_shape_by_a_warm_up():
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(tl.TorchLensError) as caught:
        tl.trace(model, torch.ones(2, 4), capture={"warmup": 1})
    assert caught.value.code == "warmup_state_pending"
    assert torch.nn.parameter.is_lazy(model[0].weight)


class Uncopied:
    """An argument that refuses to be copied."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __deepcopy__(self, memo):
        raise TypeError("no")


def test_arguments_that_cannot_be_copied_get_their_contents_back():
    class Write(nn.Module):
        def forward(self, held):
            return held.tensor.mul_(2) + 0

    held = Uncopied(torch.ones(2))
    trace = tl.trace(Write(), (held,), capture={"warmup": 2})
    assert trace.result.tolist() == [2.0, 2.0]
    assert held.tensor.tolist() == [2.0, 2.0]


def test_a_seed_makes_the_run_repeatable_and_leaves_the_streams():
    model, x = zoo.Noise().train(), torch.randn(3, 4)
    seed_all()
    before = streams()
    seed_all()
    first = tl.trace(model, x, capture={"random_seed": 3}).result
    assert streams() == before
    second = tl.trace(model, x, capture={"random_seed": 3}).result
    assert torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(first, model(x))
    assert not torch.equal(first, tl.trace(model, x, capture={"random_seed": 4}).result)


def test_a_seed_also_means_python_and_numpy():
    class Draw(nn.Module):
        def forward(self, x):
            return x + random.random() + float(np.random.rand())

    large = 2**40 + 7
    first = tl.trace(Draw(), torch.zeros(1), capture={"random_seed": large}).result
    assert torch.equal(first, tl.trace(Draw(), torch.zeros(1), capture={"random_seed": large}).result)
