"""Children are called weight, bias, module, input and output; addresses must stay exact and must not be mistaken for
parameters or end nodes.
"""

from __future__ import annotations

import torch
from torch import nn


class Names(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Linear(3, 2), nn.Linear(3, 2)
        self.module, self.input, self.output = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)

    def forward(self, x):
        h = torch.cat([self.weight(x), self.bias(x)], 1)
        return self.output(self.input(self.module(h)))


def case():
    torch.manual_seed(0)
    return Names(), (torch.randn(2, 3),), {}


EXPECT = {
    "ops": {"linear": 4, "cat": 1, "relu": 1},
    "calls": {"weight": 1, "bias": 1, "module": 1, "input": 1, "output": 1},
    "n_inputs": 1,
    "n_outputs": 1,
    "fan_in": {"cat#1": 2},
    "edges": [("linear#4", "output#1")],
}
