"""A jagged nested tensor (symbolic size in its shape) flows through a layer; recording and drawing must cope with the
shape.
"""

from __future__ import annotations

import torch
from torch import nn


class OnRagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.fc(x)).values().sum(0)


def case():
    torch.manual_seed(0)
    rows = [torch.randn(3, 4), torch.randn(5, 4)]
    return OnRagged(), (torch.nested.nested_tensor(rows, layout=torch.jagged),), {}


EXPECT = {"ops": {"linear": 1, "relu": 1, "sum": 1}, "n_inputs": 1, "n_outputs": 1}
