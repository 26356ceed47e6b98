"""Sixty-four parallel branches meet in one concat: a worst case for rank layout; every edge must be kept."""

from __future__ import annotations

import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([nn.Linear(4, 1) for _ in range(64)])

    def forward(self, x):
        return torch.cat([torch.relu(b(x)) for b in self.branches], dim=1)


def case():
    torch.manual_seed(0)
    return Wide(), (torch.randn(2, 4),), {}


EXPECT = {
    "ops": {"linear": 64, "relu": 64, "cat": 1},
    "fan_in": {"cat#1": 64},
    "fan_out": {"input:x": 64},
    "passes": {"linear": [1] * 64},
    "max_seconds": 60,
}
