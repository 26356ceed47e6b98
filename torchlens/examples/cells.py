"""Two recurrent cells: one upon the other, so that their passes run in lockstep, or one after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Cell(nn.Module):
    """A state moved on by what it sees. (N, width), (N, width) -> (N, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.see = nn.Linear(width, width)
        self.keep = nn.Linear(width, width)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        return torch.tanh(self.see(x) + self.keep(state))


class TwoCells(nn.Module):
    """Reads a sequence with two cells and classifies what is left. (N, length, width) -> (N, classes)."""

    def __init__(self, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.lower = Cell(width)
        self.upper = Cell(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        low = high = torch.zeros(len(x), x.shape[2])
        for item in x.unbind(1):
            low = self.lower(item, low)
            high = self.upper(low, high)
        return self.head(high)


class BothWays(nn.Module):
    """Reads a sequence forwards, then backwards, and classifies it. (N, length, width) -> (N, classes)."""

    def __init__(self, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.ahead = Cell(width)
        self.back = Cell(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        items = x.unbind(1)
        first = last = torch.zeros(len(x), x.shape[2])
        for item in items:
            last = self.ahead(item, last)
        for item in reversed(items):
            first = self.back(item, first)
        return self.head(first * last)
