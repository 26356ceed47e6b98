"""A user autograd Function is applied twice with different second arguments; two ops with their own parents."""

from __future__ import annotations

import torch
from torch import nn


class ScaleGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(g)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (g,) = ctx.saved_tensors
        return grad * g, None


class UsesIt(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, ga, gb):
        h = self.fc(x)
        return ScaleGrad.apply(h, ga) + ScaleGrad.apply(h, gb)


def case():
    torch.manual_seed(0)
    return UsesIt(), (torch.randn(2, 3), torch.rand(2, 3), torch.rand(2, 3)), {}


EXPECT = {"ops": {"linear": 1, "add": 1}, "n_inputs": 3, "n_outputs": 1, "fan_in": {"add#1": 2}, "calls": {"fc": 1}}
