"""One pooling module is used at two places that are not a loop; two calls, two distinct positions in the graph."""

from __future__ import annotations

import torch
from torch import nn


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.pool = nn.Conv2d(1, 2, 3), nn.Conv2d(2, 4, 3), nn.MaxPool2d(2)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = self.pool(torch.relu(self.c1(x)))
        x = self.pool(torch.relu(self.c2(x)))
        return self.fc(x.view(-1, 4))


def case():
    torch.manual_seed(0)
    return Lenet(), (torch.randn(1, 1, 12, 12),), {}


EXPECT = {
    "ops": {"conv2d": 2, "max_pool2d": 2, "relu": 2, "view": 1, "linear": 1},
    "calls": {"pool": 2},
    "edges": [("max_pool2d#1", "conv2d#2"), ("max_pool2d#2", "view#1")],
    "no_edges": [("max_pool2d#2", "conv2d#1")],
}
