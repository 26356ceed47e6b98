"""The network of a diffusion model: a U-Net that is told, in every block, how noisy its picture is."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, scaled_dot_product_attention


class Moment(nn.Module):
    """Turns a time into waves of many lengths, then into a code. (N,) -> (N, code)."""

    def __init__(self, waves: int, code: int) -> None:
        super().__init__()
        self.waves = waves
        self.mlp = nn.Sequential(nn.Linear(waves, code), nn.SiLU(), nn.Linear(code, code))

    def forward(self, t: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(self.waves // 2) * (-math.log(10_000) / (self.waves // 2)))
        angles = t[:, None] * rates
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=1))


class Block(nn.Module):
    """A residual block that adds the code of the time half-way. (N, before, H, W) -> (N, after, H, W)."""

    def __init__(self, before: int, after: int, code: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))
        self.time = nn.Linear(code, after)
        self.second = nn.Sequential(nn.GroupNorm(4, after), nn.SiLU(), nn.Conv2d(after, after, 3, padding=1))
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        h = self.first(x) + self.time(code)[:, :, None, None]
        return self.second(h) + self.skip(x)


class Attention(nn.Module):
    """Lets every pixel look at every other. (N, width, H, W) -> (N, width, H, W)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=2)
        mixed = scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


class Denoiser(nn.Module):
    """Guesses the noise in a picture; H and W divisible by 4. (N, 3, H, W) and times (N,) -> (N, 3, H, W)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        code = 4 * width
        self.moment = Moment(2 * width, code)
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Block(width, width, code), Block(width, 2 * width, code)])
        self.middle = Block(2 * width, 2 * width, code)
        self.attention = Attention(2 * width)
        self.up = nn.ModuleList([Block(4 * width, width, code), Block(2 * width, width, code)])
        self.leave = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        code, x = self.moment(t), self.enter(x)
        bridges = []
        for block in self.down:
            x = block(x, code)
            bridges.append(x)
            x = self.pool(x)
        x = self.attention(self.middle(x, code))
        for block in self.up:
            x = block(torch.cat([interpolate(x, scale_factor=2.0), bridges.pop()], dim=1), code)
        return self.leave(x)
