"""A recurrent cell applied several times: the smallest model in which layers have passes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Rnn(nn.Module):
    """Feeds the same input to one tanh cell, step after step. (N, width) -> (N, width)."""

    def __init__(self, width: int = 8, steps: int = 3) -> None:
        super().__init__()
        self.inp = nn.Linear(width, width)
        self.rec = nn.Linear(width, width)
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        for _ in range(self.steps):
            h = torch.tanh(self.inp(x) + self.rec(h))
        return h
