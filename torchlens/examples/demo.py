"""The model of the first drawing: two convolution blocks, two poolings, a mean and a classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ConvBlock(nn.Module):
    """A 3x3 convolution that keeps the size, batch normalisation, ReLU. (N, in, H, W) -> (N, out, H, W)."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.norm(self.conv(x)))


class Demo(nn.Module):
    """Classifies small pictures. (N, 3, H, W) -> (N, classes), H and W at least 4."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(ConvBlock(3, 8), ConvBlock(8, 16))
        self.pool1 = nn.MaxPool2d(2)
        self.pool2 = nn.MaxPool2d(2)
        self.classifier = nn.Linear(16, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool2(self.pool1(self.features(x)))
        return self.classifier(torch.mean(x, dim=(2, 3)))
