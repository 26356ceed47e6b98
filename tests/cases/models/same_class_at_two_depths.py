"""Blocks of one class sit at different depths of the tree, so a depth limit can never fold them all; folding by class
must be possible.
"""

from __future__ import annotations

import torch
from torch import nn


class ResUnit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class Level(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.units = nn.ModuleList([ResUnit(c), ResUnit(c)])
        self.down = nn.Conv2d(c, c * 2, 2, stride=2)

    def forward(self, x):
        for u in self.units:
            x = u(x)
        return self.down(x)


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.ModuleList([Level(4), Level(8)])
        self.mid = ResUnit(16)
        self.up = nn.ConvTranspose2d(16, 4, 4, stride=4)

    def forward(self, x):
        h = x
        for lv in self.enc:
            h = lv(h)
        return torch.cat([x, self.up(self.mid(h))], dim=1)


def case():
    torch.manual_seed(0)
    return SmallUNet().eval(), (torch.randn(1, 4, 16, 16),), {}


EXPECT = {
    "ops": {"conv2d": 12, "silu": 5, "add": 5, "cat": 1, "conv_transpose2d": 1},
    "calls": {"enc.0.units.0": 1, "enc.1.units.1": 1, "mid": 1, "enc.0.down": 1},
    "fan_in": {"cat#1": 2},
    "edges": [("input:x", "cat#1")],
}
