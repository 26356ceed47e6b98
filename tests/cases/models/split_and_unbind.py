"""Ops with several results (chunk, unbind, topk, max with dim): each result used must link to the right consumer."""

from __future__ import annotations

import torch
from torch import nn


class Splits(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        top, idx = (q * k).topk(2, dim=-1)
        best = v.max(dim=-1).values
        a, b = top.unbind(-1)
        return a - b + best, idx


def case():
    torch.manual_seed(0)
    return Splits(), (torch.randn(3, 4),), {}


EXPECT = {
    "min_ops": {"chunk": 1, "topk": 1, "max": 1, "unbind": 1},
    "ops": {"linear": 1, "mul": 1, "sub": 1, "add": 1},
    "n_outputs": 2,
    "fan_in": {"add#1": 2},
}
