"""Layers that exist but never run: they count in the model total but must not appear as nodes."""

from __future__ import annotations

import torch
from torch import nn


class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(3, 3)
        self.classifier = nn.Sequential(nn.Linear(3, 100), nn.ReLU())
        self.ghost = nn.Parameter(torch.zeros(11))

    def forward(self, x):
        return self.used(x)


def case():
    torch.manual_seed(0)
    return Spare(), (torch.randn(1, 3),), {}


EXPECT = {
    "params_total": 423,
    "ops": {"linear": 1, "relu": 0},
    "calls": {"used": 1, "classifier": 0, "classifier.0": 0},
}
