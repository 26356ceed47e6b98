"""One child is a TorchScript module; its inside is opaque, but it must appear as one step with edges on both sides."""

from __future__ import annotations

import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Host(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = torch.jit.script(Plain())
        self.head = nn.Linear(3, 1)

    def forward(self, x):
        return self.head(self.child(x * 2))


def case():
    torch.manual_seed(0)
    return Host(), (torch.randn(2, 3),), {}


EXPECT = {
    "ops": {"mul": 1},
    "calls": {"child": 1, "head": 1},
    "n_inputs": 1,
    "n_outputs": 1,
    "min_ops": {"linear": 1},
    "plain_calls_skip": True,
}
