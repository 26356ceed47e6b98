"""The input is a wrapper around a tensor whose __getitem__ never ends; a tracer that iterates it hangs."""

from __future__ import annotations

import torch
from torch import nn


class Geometric:
    """Looks indexable for ever, the way some equivariant libraries wrap tensors."""

    def __init__(self, tensor, kind):
        self.tensor, self.kind = tensor, kind

    def __getitem__(self, i):
        return Geometric(self.tensor[:1], self.kind)


class RotConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.basis = nn.Parameter(torch.randn(3, 3, 3, 3) * 0.1)
        self.register_buffer("mask", torch.ones(3, 3))

    def forward(self, g):
        kernel = self.basis * self.mask
        return Geometric(nn.functional.conv2d(g.tensor, kernel, padding=1), "out")


def case():
    torch.manual_seed(0)
    return RotConv().eval(), (Geometric(torch.randn(1, 3, 6, 6), "in"),), {}


EXPECT = {
    "ops": {"conv2d": 1, "mul": 1},
    "edges": [("mul#1", "conv2d#1")],
    "op_params": {"mul#1": ["basis"]},
    "max_seconds": 30,
    "n_outputs": 1,
    "n_inputs": 1,
}
