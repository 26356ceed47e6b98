"""torch.vmap is used inside forward; ops under the transform may be summarised, but the chain from input to output must
not be cut and nothing may crash.
"""

from __future__ import annotations

import torch
from torch import nn


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 2))

    def forward(self, x):
        return torch.vmap(lambda w: torch.tanh(x @ w))(self.w).mean(0)


def case():
    torch.manual_seed(0)
    return Ensemble(), (torch.randn(5, 4),), {}


EXPECT = {"n_inputs": 1, "n_outputs": 1, "ops": {"mean": 1}, "edges": [("mean#1", "output#1")], "fan_in": {"mean#1": 1}}
