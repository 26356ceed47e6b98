"""A model that asks its input which of two ways to take, with a frozen layer and a scalar: tests, arms and fills."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Choice(nn.Module):
    """One of two linear layers, chosen by the mean of the input. (N, width) -> (N, width) and a scalar."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.pos = nn.Linear(width, width)
        self.neg = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        if x.mean() > 0:
            return torch.relu(self.pos(x))
        return -self.neg(x)


class Gate(nn.Module):
    """A frozen layer, a test that comes out false, and a trainable head. (N, width) -> (N, width) and a scalar."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.head = nn.Linear(width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.frozen(x)
        if x.std() > 10:
            x = x / x.std()
        x = self.head(x)
        return x, x.mean()
