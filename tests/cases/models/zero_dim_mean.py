"""A 0-d tensor in the middle of the network (mean over everything) must be an ordinary node and must not break
gradients.
"""

from __future__ import annotations

import torch
from torch import nn


class Scalarise(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(6, 5)

    def forward(self, x):
        m = self.proj(x).mean()
        return (m + 2.5) ** 2


def case():
    torch.manual_seed(0)
    return Scalarise(), (torch.randn(7, 6, requires_grad=True),), {}


EXPECT = {
    "ops": {"linear": 1, "mean": 1, "add": 1, "pow": 1},
    "n_inputs": 1,
    "n_outputs": 1,
    "edges": [
        ("input:x", "linear#1"),
        ("linear#1", "mean#1"),
        ("mean#1", "add#1"),
        ("add#1", "pow#1"),
        ("pow#1", "output#1"),
    ],
}
