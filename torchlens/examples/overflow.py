"""A softmax written out without its usual precaution, on scores that are too large for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Overflow(nn.Module):
    """Weighs its inputs by a softmax of their scores; the exponential overflows. (N, width) -> (N, width)."""

    def __init__(self, width: int = 8, scale: float = 400.0) -> None:
        super().__init__()
        self.scale = scale
        self.score = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.exp(self.score(x) * self.scale)
        weights = scores / scores.sum(dim=-1, keepdim=True)
        return self.out(weights * x)
