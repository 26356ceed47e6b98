"""Cost must follow the whole input: a linear layer over a 4-D tensor and an LSTM over a sequence."""

from __future__ import annotations

import torch
from torch import nn


class Costly(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)
        self.rnn = nn.LSTM(5, 6, num_layers=2, batch_first=True)

    def forward(self, x):
        y = self.fc(x).flatten(0, 1)
        out, (h, c) = self.rnn(y)
        return out[:, -1] + h[-1] + c[-1]


def case():
    torch.manual_seed(0)
    return Costly(), (torch.randn(2, 3, 7, 3),), {}


EXPECT = {"ops": {"linear": 1, "flatten": 1, "add": 2}, "min_ops": {"lstm": 1}, "calls": {"rnn": 1}, "n_outputs": 1}
