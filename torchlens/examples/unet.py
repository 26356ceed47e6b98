"""A U-Net: a path down, a path up, and a bridge between the two at every size."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Double(nn.Sequential):
    """Two convolutions, each normalised and bent. (N, before, H, W) -> (N, after, H, W)."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        )


class Up(nn.Module):
    """Doubles the size and joins what crossed the bridge. (N, 2 width, H, W) -> (N, width, 2 H, 2 W)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.conv = Double(2 * width, width)

    def forward(self, x: Tensor, bridge: Tensor) -> Tensor:
        return self.conv(torch.cat([bridge, self.grow(x)], dim=1))


class UNet(nn.Module):
    """A map of classes for every pixel; H and W divisible by 8. (N, 3, H, W) -> (N, classes, H, W)."""

    def __init__(self, width: int = 8, classes: int = 2) -> None:
        super().__init__()
        self.enter = Double(3, width)
        self.down1 = Double(width, 2 * width)
        self.down2 = Double(2 * width, 4 * width)
        self.bottom = Double(4 * width, 8 * width)
        self.pool = nn.MaxPool2d(2)
        self.up2 = Up(4 * width)
        self.up1 = Up(2 * width)
        self.up0 = Up(width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        full = self.enter(x)
        half = self.down1(self.pool(full))
        quarter = self.down2(self.pool(half))
        x = self.bottom(self.pool(quarter))
        return self.head(self.up0(self.up1(self.up2(x, quarter), half), full))
