"""Tiny models, one per phenomenon that recording has to get right."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Conv(nn.Module):
    """Convolution, batch norm, in-place relu, pooling and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Identity()
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Loop(nn.Module):
    """One recurrent cell, three steps."""

    def __init__(self) -> None:
        super().__init__()
        self.inp, self.rec = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.zeros_like(x)
        for _ in range(3):
            h = torch.tanh(self.inp(x) + self.rec(h))
        return h


class AliasWrite(nn.Module):
    """A view is written; the tensor it was taken from is read afterwards."""

    def forward(self, x):
        whole = x * 2
        part = whole[:, 0]
        part.mul_(3)
        return whole + 1


class DisjointWrite(nn.Module):
    """One half is written; only the other half is read afterwards."""

    def forward(self, x):
        left, right = (x * 2).chunk(2, dim=0)
        left.relu_()
        return right + 1


class ListWrite(nn.Module):
    """Slices of one tensor are assigned in a loop."""

    def forward(self, x):
        out = torch.zeros(3, x.shape[0])
        for t in range(3):
            out[t] = x[:, t]
        return out


class Constants(nn.Module):
    """A plain attribute and a tensor from outside take part."""

    def __init__(self, outside: torch.Tensor) -> None:
        super().__init__()
        self.scale = torch.full((4,), 2.0)
        self.outside = [outside]

    def forward(self, x):
        return x * self.scale + self.outside[0]


class Composite(nn.Module):
    """Functions of torch that are written in Python."""

    def forward(self, x):
        y = F.interpolate(x[:, None], scale_factor=2.0)
        z = F.max_pool1d(y, 2)
        return 1 - z


class Attention(nn.Module):
    """A composite of several ops."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.mha(x, x, x, need_weights=False)[0]


class Several(nn.Module):
    """Ops with several outputs, and a nested result."""

    def forward(self, x):
        values, indexes = x.max(dim=1)
        first, second = x.split(2, dim=1)
        return {"v": values, "rest": [indexes, (first - second,)], "none": None}


class Branch(nn.Module):
    """The value decides the way."""

    def __init__(self) -> None:
        super().__init__()
        self.pos, self.neg = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0:
            return torch.relu(self.pos(x))
        return -self.neg(x)


class Fails(nn.Module):
    """Two good ops, then an error inside a module."""

    def __init__(self) -> None:
        super().__init__()
        self.good, self.bad = nn.Linear(4, 4), nn.Linear(5, 5)

    def forward(self, x):
        return self.bad(torch.relu(self.good(x)))


class Scripted(nn.Module):
    """A TorchScript child between two ordinary ops."""

    def __init__(self) -> None:
        super().__init__()
        self.script = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

    def forward(self, x):
        return self.script(x + 1) * 2


class Hidden(nn.Module):
    """Modules in a plain list, unknown to `named_modules`."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Tied(nn.Module):
    """One parameter under two addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


class Noise(nn.Module):
    """Takes from the random stream."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + torch.randn_like(x)
