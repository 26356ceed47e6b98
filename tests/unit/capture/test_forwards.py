"""A forward called past `__call__` opens a module frame; one called by its own class or subclass does not."""

from __future__ import annotations

import inspect

import torch
from torch import nn

import torchlens as tl
from torchlens.capture.forwards import forward_classes, release, watch


class Inner(nn.Module):
    def forward(self, x, scale: float = 2.0):
        return x * scale


class Deeper(Inner):
    def forward(self, x, scale: float = 2.0):
        return super().forward(x, scale) + 1


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Inner(), Deeper()

    def forward(self, x):
        return self.b(self.a.forward(x)) + self.b.forward(x, scale=3.0)


def test_frames_of_direct_calls() -> None:
    trace = tl.trace(Outer(), torch.ones(2))
    assert trace.module_calls == ("self:1", "a:1", "b:1", "b:2")
    assert [op.modules for op in trace.ops] == [("a:1",), ("b:1",), ("b:1",), ("b:2",), ("b:2",), ()]
    trace.check()


def test_a_forward_that_calls_itself_stays_in_its_frame() -> None:
    class Halving(nn.Module):
        def forward(self, x, times=3):
            return x if not times else self.forward(x * 0.5, times - 1)

    trace = tl.trace(nn.Sequential(Halving()), torch.ones(2))
    assert trace.module_calls == ("self:1", "0:1")
    assert len(trace) == 3


def test_classes_that_hold_a_forward() -> None:
    assert forward_classes(Outer().modules()) == [Outer, Inner, Deeper]
    scripted = torch.jit.script(nn.Sequential(nn.ReLU()))
    assert forward_classes(scripted.modules()) == []


def test_two_traces_share_the_watch() -> None:
    plain = vars(Inner)["forward"]
    watched: list[type] = []
    watch([Inner], {}, watched)
    watch([Inner], {}, watched)
    assert watched == [Inner, Inner]
    assert inspect.signature(Inner.forward) == inspect.signature(plain)
    release([Inner])
    assert vars(Inner)["forward"] is not plain
    release([Inner])
    assert vars(Inner)["forward"] is plain
