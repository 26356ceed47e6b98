"""A stack of residual blocks: the smallest model with the depth and the repetition of a large one."""

from __future__ import annotations

from torch import Tensor, nn


class Mlp(nn.Module):
    """Widens, bends and narrows again. (N, width) -> (N, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """Adds to its input what a normalised perceptron makes of it. (N, width) -> (N, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(self.norm(x))


class Stack(nn.Module):
    """An embedding layer, residual blocks and a head. (N, width) -> (N, classes)."""

    def __init__(self, width: int = 16, blocks: int = 8, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(width, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embed(x)))
