"""A quantiser module is applied to the WEIGHT, not to the activations; it must be visible as a path from the parameter
into the linear op.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class RoundWeights(nn.Module):
    def forward(self, w):
        scale = w.abs().max() / 7
        return torch.round(w / scale) * scale


class QLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 5))
        self.bias = nn.Parameter(torch.zeros(3))
        self.q = RoundWeights()

    def forward(self, x):
        return F.linear(x, self.q(self.weight), self.bias)


def case():
    torch.manual_seed(0)
    return QLinear(), (torch.randn(2, 5),), {}


EXPECT = {
    "ops": {"abs": 1, "max": 1, "round": 1, "div": 2, "mul": 1, "linear": 1},
    "calls": {"q": 1},
    "fan_in": {"linear#1": 2},
    "edges": [("mul#1", "linear#1"), ("round#1", "mul#1"), ("input:x", "linear#1")],
    "op_params": {"abs#1": ["weight"], "linear#1": ["bias"]},
}
