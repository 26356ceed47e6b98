"""One input feeds three projections and an attention map is kept on the module after detach(); every edge from the
input must be there and the side value must not swallow one.
"""

from __future__ import annotations

import math

import torch
from torch import nn


class TokenMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, d, bias=False) for d in (4, 4, 1))
        self.last_map = None

    def forward(self, tokens):
        scores = self.q(tokens) @ self.k(tokens).T / math.sqrt(4)
        scores = scores.softmax(-1)
        self.last_map = scores.detach()
        return scores @ self.v(tokens)


def case():
    torch.manual_seed(0)
    return TokenMixer(), (torch.randn(5, 6),), {}


EXPECT = {
    "ops": {"linear": 3, "matmul": 2, "softmax": 1, "div": 1, "detach": 1},
    "fan_out": {"input:tokens": 3},
    "edges": [
        ("input:tokens", "linear#1"),
        ("input:tokens", "linear#2"),
        ("input:tokens", "linear#3"),
        ("linear#3", "matmul#2"),
        ("softmax#1", "matmul#2"),
    ],
}
