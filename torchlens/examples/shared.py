"""A block that is called twice, and a weight that two layers share."""

from __future__ import annotations

from torch import Tensor, nn


class Shared(nn.Module):
    """Applies one block twice and reads out with the weight that read in. (N, width) -> (N, width)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.read = nn.Linear(width, width, bias=False)
        self.block = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.write = nn.Linear(width, width)
        self.write.weight = self.read.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.write(self.block(self.block(self.read(x))))
