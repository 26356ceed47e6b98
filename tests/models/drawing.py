"""Six tiny models that between them show what a drawing can show, and one recording of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import nn

import torchlens as tl
from tests.models.recording import Branch, Conv, Loop
from torchlens.records.trace_data import TraceData


class Containers(nn.Module):
    """Results in a mapping, a list and a tuple, with a None among them, and a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(10, 4), nn.LSTM(4, 4, batch_first=True)

    def forward(self, ids, *, scale=1.0):
        y, state = self.lstm(self.embed(ids) * scale)
        best, where = y.max(dim=1)
        return {"best": (best, where), "state": [*state], "none": None, "loss": torch.complex(y, y).sum()}


class Shared(nn.Module):
    """A block called twice and a weight under two addresses, one parameter frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.embed = nn.Linear(4, 4, bias=False)
        self.head = nn.Linear(4, 4)
        self.head.weight = self.embed.weight
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        x = self.embed(x)
        return self.head(x + self.block(self.block(x)))


class Memory(nn.Module):
    """Buffers that are read and written, and an op that no input leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("decay", torch.full((4,), 0.5))
        self.register_buffer("memory", torch.zeros(2, 4))
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        torch.ones(3).cumsum(0)
        self.memory = self.memory * self.decay + x
        return self.norm(self.memory.sub(x, alpha=2))


class Sample(NamedTuple):
    """How a model is made, what goes in, and whether it trains."""

    factory: Callable[[], nn.Module]
    x: Callable[[], torch.Tensor]
    training: bool = False


SAMPLES = {
    "conv and norm": Sample(Conv, lambda: torch.rand(2, 3, 8, 8), True),
    "loop": Sample(Loop, lambda: torch.rand(2, 4)),
    "branch": Sample(Branch, lambda: torch.rand(2, 4)),
    "containers": Sample(Containers, lambda: torch.randint(0, 10, (2, 3))),
    "shared": Sample(Shared, lambda: torch.rand(2, 4)),
    "memory": Sample(Memory, lambda: torch.rand(2, 4), True),
}


def record(name: str) -> TraceData:
    """A recording of a sample with all that can be measured; its model is gone afterwards."""
    sample = SAMPLES[name]
    torch.manual_seed(0)
    model = sample.factory().train(sample.training)
    options = tl.options.CaptureOptions(save="none", saved_for_backward=True, out_stats=True)
    return tl.trace(model, sample.x(), capture=options).data


recorded = cache(record)
