"""Recording in training mode runs batch norm for real: statistics must move exactly as one plain forward would move
them, no more, and the counter must be 1.
"""

from __future__ import annotations

import torch
from torch import nn


def case():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.ReLU())
    return net.train(), (torch.randn(6, 4),), {}


EXPECT = {
    "ops": {"linear": 1, "batch_norm": 1, "dropout": 1, "relu": 1},
    "calls": {"1": 1, "2": 1},
    "edges": [("batch_norm#1", "dropout#1"), ("dropout#1", "relu#1")],
}
