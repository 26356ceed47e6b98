"""A perceptron that computes its middle in bfloat16: the smallest model whose dtype changes on the way."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Mixed(nn.Module):
    """The wide layer in half the bits, the others in full. (N, width) -> (N, classes)."""

    def __init__(self, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.narrow = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width, dtype=torch.bfloat16)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = self.wide(self.narrow(x).to(torch.bfloat16))
        return self.head(torch.relu(h).to(torch.float32))
