"""One small network of which every value is kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.trace_view import Trace


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.tanh(self.step(x))
        return x


def record(model: nn.Module, *shape: int, **options: object) -> Trace:
    torch.manual_seed(0)
    return tl.trace(model.eval(), torch.randn(shape), **options)  # type: ignore[arg-type]


@pytest.fixture
def trace() -> Trace:
    torch.manual_seed(0)
    return record(Net(), 6, 3, 8, 8)


@pytest.fixture
def facts() -> Trace:
    torch.manual_seed(0)
    return record(Net(), 6, 3, 8, 8, save="none")


@pytest.fixture
def looped() -> Trace:
    torch.manual_seed(0)
    return record(Loop(), 6, 4)
