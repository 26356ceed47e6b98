"""A loop whose tensors grow: the smallest model in which the passes of a layer differ in shape."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Appending(nn.Module):
    """Appends to a sequence what it makes of the last item, again and again. (N, length, width) -> the same, longer."""

    def __init__(self, width: int = 8, steps: int = 3) -> None:
        super().__init__()
        self.next = nn.Linear(width, width)
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = torch.cat([x, torch.tanh(self.next(x[:, -1:]))], dim=1)
        return x
