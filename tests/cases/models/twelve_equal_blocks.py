"""Twelve identical blocks in a row; the record must keep all twelve, and a folded drawing may show one with an exact
count.
"""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.blocks, self.out = nn.Linear(3, 8), nn.ModuleList(Block(8) for _ in range(12)), nn.Linear(8, 2)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def case():
    torch.manual_seed(0)
    return Tower(), (torch.randn(2, 3),), {}


EXPECT = {
    "ops": {"linear": 26, "layer_norm": 12, "gelu": 12, "add": 12},
    "calls": {f"blocks.{i}": 1 for i in range(12)},
    "fan_out": {"add#3": 2},
    "passes": {"gelu": [1] * 12, "linear": [1] * 26},
}
