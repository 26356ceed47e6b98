"""weight_norm computes the weight at access time; the norm ops belong to the layer and the two original parameters must
be named.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = weight_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.fc(x)


def case():
    torch.manual_seed(0)
    return Normed(), (torch.randn(1, 3),), {}


EXPECT = {
    "params_total": 10,
    "ops": {"linear": 1, "weight_norm": 1},
    "plain_ops_skip": ["weight_norm"],
    "fan_in": {"linear#1": 2},
    "op_params": {"weight_norm#1": ["original0", "original1"]},
    "plain_calls_skip": True,
    "calls": {"fc": 1},
}
