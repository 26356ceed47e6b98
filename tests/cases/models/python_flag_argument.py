"""A keyword flag (a Python bool, not a tensor) picks the path; the record shows the path taken and must not report a
tensor branch.
"""

from __future__ import annotations

import torch
from torch import nn


class Flagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x, skip=True, scale: float = 1.0):
        y = self.fc(x)
        return y if skip else torch.exp(y) * scale


def case():
    torch.manual_seed(0)
    return Flagged(), (torch.randn(1, 2),), {"skip": False, "scale": 0.5}


EXPECT = {"ops": {"linear": 1, "exp": 1, "mul": 1}, "branches": [], "n_inputs": 1, "inputs": ["x"]}
