"""A generator of pictures as in DCGAN: noise grows, step by step, into a picture."""

from __future__ import annotations

from torch import Tensor, nn


class Grow(nn.Sequential):
    """Doubles the size and halves the channels. (N, 2 width, H, W) -> (N, width, 2 H, 2 W)."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )


class Generator(nn.Module):
    """Makes pictures of 64 x 64 pixels. (N, noise) -> (N, 3, 64, 64)."""

    def __init__(self, noise: int = 32, width: int = 8) -> None:
        super().__init__()
        self.start = nn.Sequential(
            nn.ConvTranspose2d(noise, 8 * width, 4, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU()
        )
        self.grow = nn.Sequential(Grow(4 * width), Grow(2 * width), Grow(width))
        self.paint = nn.Sequential(nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1), nn.Tanh())

    def forward(self, z: Tensor) -> Tensor:
        return self.paint(self.grow(self.start(z[:, :, None, None])))
