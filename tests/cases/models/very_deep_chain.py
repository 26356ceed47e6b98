"""A weight-tied loop runs 1,200 times: no recursion limit may be hit, and the rolled view is one layer with 1,200
passes.
"""

from __future__ import annotations

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(1200):
            x = torch.tanh(self.cell(x))
        return x


def case():
    torch.manual_seed(0)
    return Deep(), (torch.randn(1, 3),), {}


EXPECT = {
    "ops": {"linear": 1200, "tanh": 1200},
    "calls": {"cell": 1200},
    "passes": {"linear": [1200], "tanh": [1200]},
    "max_seconds": 120,
}
