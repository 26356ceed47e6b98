"""A wrapped module returns an ordered dict with a None, a namedtuple and a nested list; every tensor keeps its path as
name.
"""

from __future__ import annotations

import collections

import torch
from torch import nn

Stats = collections.namedtuple("Stats", "low high")


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        return collections.OrderedDict(out=y, aux=None, stats=Stats(y.amin(), y.amax()), maps=[[y * 2], y])


class Wrap(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


def case():
    torch.manual_seed(0)
    return Wrap(), (torch.randn(2, 3),), {}


EXPECT = {
    "n_outputs": 5,
    "outputs": ["out", "stats.low", "stats.high", "maps.0.0", "maps.1"],
    "ops": {"linear": 1, "amin": 1, "amax": 1, "mul": 1},
    "calls": {"inner": 1, "inner.fc": 1},
}
