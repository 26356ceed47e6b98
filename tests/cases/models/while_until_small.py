"""A while loop with a tensor test runs a number of times only known at run time; tests and passes must both be
recorded.
"""

from __future__ import annotations

import torch
from torch import nn


class Settle(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.step.weight.copy_(torch.eye(2) * 0.5)

    def forward(self, x):
        while x.abs().max() > 1.0:
            x = self.step(x)
        return x


def case():
    return Settle(), (torch.tensor([[6.0, 0.0]]),), {}


EXPECT = {
    "ops": {"linear": 3, "abs": 4, "max": 4, "gt": 4},
    "branches": [True, True, True, False],
    "calls": {"step": 3},
    "passes": {"linear": [3]},
}
