"""Parameters that belong to no leaf module (bare, in ParameterList and ParameterDict) must show on the ops that use
them.
"""

from __future__ import annotations

import torch
from torch import nn


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3))
        self.gates = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.extra = nn.ParameterDict({"shift": nn.Parameter(torch.zeros(3))})
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        h = x @ self.w
        for g in self.gates:
            h = h * g
        return self.fc(h + self.extra["shift"])


def case():
    torch.manual_seed(0)
    return Bare(), (torch.randn(5, 4),), {}


EXPECT = {
    "params_total": 29,
    "ops": {"matmul": 1, "mul": 2, "add": 1, "linear": 1},
    "op_params": {
        "matmul#1": ["w"],
        "mul#1": ["0"],
        "mul#2": ["1"],
        "add#1": ["shift"],
        "linear#1": ["weight", "bias"],
    },
}
