"""Ops that come from nowhere or lead nowhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Strays(nn.Module):
    """Makes a mask that nobody reads, a sum that nobody uses, and a noise term. (N, width) -> (N, width)."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        torch.ones(3, 3).triu()
        x.sum()
        return self.fc(x) + torch.arange(4.0)
