"""einsum strings hold '->' and ','; three operands go through an inner contraction path. The op must be recorded once
with three parents and its text must not break the DOT file.
"""

from __future__ import annotations

import torch
from torch import nn


class TriLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 5))

    def forward(self, a, b):
        y = torch.einsum("ni,ijk,nj->nk", a, self.w, b)
        return torch.einsum("nk->n", y)


def case():
    torch.manual_seed(0)
    return TriLinear(), (torch.randn(2, 3), torch.randn(2, 4)), {}


EXPECT = {
    "ops": {"einsum": 2},
    "n_inputs": 2,
    "inputs": ["a", "b"],
    "edges": [("input:a", "einsum#1"), ("input:b", "einsum#1"), ("einsum#1", "einsum#2")],
    "op_params": {"einsum#1": ["w"]},
}
