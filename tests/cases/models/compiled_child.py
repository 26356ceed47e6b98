"""One child was wrapped with torch.compile; recording must fall back to its eager ops or say plainly that it cannot,
never drop it silently.
"""

from __future__ import annotations

import torch
from torch import nn


class Host(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), backend="eager")

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def case():
    torch.manual_seed(0)
    return Host(), (torch.randn(2, 3),), {}


EXPECT = {
    "ops": {"linear": 2, "relu": 1, "tanh": 1},
    "plain_ops_skip": ["linear", "tanh"],
    "n_outputs": 1,
    "calls": {"a": 1},
}
