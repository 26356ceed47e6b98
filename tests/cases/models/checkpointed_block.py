"""A block runs under torch.utils.checkpoint; symbolic tracers drop it. The forward ops must be recorded once."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Saver(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(checkpoint(self.block, x, use_reentrant=False))


def case():
    torch.manual_seed(0)
    return Saver().train(), (torch.randn(2, 4, requires_grad=True),), {}


EXPECT = {
    "ops": {"linear": 3, "tanh": 1},
    "plain_ops_skip": ["linear", "tanh"],
    "calls": {"block": 1, "head": 1},
    "edges": [("tanh#1", "linear#2"), ("linear#2", "linear#3")],
}
