"""Sub-modules live in a plain Python list, so they have no address and their parameters are not in model.parameters();
ops must still be recorded and the drawing must not crash.
"""

from __future__ import annotations

import torch
from torch import nn


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = [nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3)]
        self.table = {"head": nn.Linear(5, 2)}

    def forward(self, x):
        for layer in self.stack:
            x = torch.relu(layer(x))
        return self.table["head"](x.mean((2, 3)))


def case():
    torch.manual_seed(0)
    return Hidden(), (torch.randn(1, 3, 9, 9),), {}


EXPECT = {
    "ops": {"conv2d": 2, "relu": 2, "mean": 1, "linear": 1},
    "n_inputs": 1,
    "n_outputs": 1,
    "params_total": 0,
    "params_met": 309,
    "edges": [("conv2d#1", "relu#1"), ("relu#1", "conv2d#2"), ("mean#1", "linear#1")],
}
