"""The forward differs between train and eval (an auxiliary head in train mode); the record must show the mode it ran in
and must leave the mode alone.
"""

from __future__ import annotations

import torch
from torch import nn


class AuxNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.main, self.aux = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        h = torch.relu(self.stem(x))
        if self.training:
            return {"main": self.main(h), "aux": self.aux(h)}
        return self.main(h)


def case():
    torch.manual_seed(0)
    return AuxNet().train(), (torch.randn(2, 3),), {}


EXPECT = {
    "ops": {"linear": 3, "relu": 1},
    "calls": {"aux": 1},
    "n_outputs": 2,
    "outputs": ["main", "aux"],
    "branches": [],
    "fan_out": {"relu#1": 2},
}
