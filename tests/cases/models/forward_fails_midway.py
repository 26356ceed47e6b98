"""forward raises a shape error in the middle; the same error type must reach the caller, and torch must work normally
afterwards.
"""

from __future__ import annotations

import torch
from torch import nn


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.ok, self.bad = nn.Linear(3, 4), nn.Linear(5, 2)

    def forward(self, x):
        return self.bad(torch.relu(self.ok(x)))


def case():
    torch.manual_seed(0)
    return Broken(), (torch.randn(2, 3),), {}


def after():
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad.tolist() == [2.0, 2.0] and type(torch.relu(x.detach())) is torch.Tensor


EXPECT = {"raises": "RuntimeError", "after": True}
