"""The model is wrapped (as for multi-device training); on one device the wrapper must be transparent."""

from __future__ import annotations

import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, scale=1.0):
        return torch.relu(self.fc(x)) * scale


def case():
    torch.manual_seed(0)
    return nn.DataParallel(Small()), (torch.randn(2, 3),), {"scale": 0.5}


EXPECT = {"ops": {"linear": 1, "relu": 1, "mul": 1}, "n_outputs": 1, "n_inputs": 1, "inputs": ["x"]}
