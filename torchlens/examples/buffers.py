"""Buffers: one that the result depends on, and those of a norm, which only keep count."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Average(nn.Module):
    """Subtracts from a linear layer its running average, which is kept in a buffer. (N, width) -> (N, width)."""

    average: Tensor

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        self.average = self.average * 0.9 + x.mean(dim=0) * 0.1
        return x - self.average


class Normed(nn.Module):
    """A linear layer and a batch norm. (N, width) -> (N, width)."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.fc(x))
