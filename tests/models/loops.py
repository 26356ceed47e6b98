"""Tiny models, one per way in which ops can be, or only seem, passes of one layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class StackedCells(nn.Module):
    """Two recurrent cells in a row, each with an activation, stepped through time."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.RNNCell(4, 4), nn.RNNCell(4, 4)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        g = x.new_zeros(x.shape[0], 4)
        for t in range(3):
            h = torch.relu(self.low(x[:, t], h))
            g = torch.relu(self.high(h, g))
        return g


class TiedResidual(nn.Module):
    """One residual block, applied four times."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        for _ in range(4):
            x = x + self.down(torch.relu(self.up(x)))
        return x


class FreeLoop(nn.Module):
    """A loop without parameters."""

    def forward(self, x):
        for _ in range(5):
            x = torch.sin(x) + 1
        return x


class ThreeLines(nn.Module):
    """The same function on three lines."""

    def forward(self, x):
        x = torch.sin(x)
        x = torch.sin(x)
        return torch.sin(x)


class ThreeInOneLine(nn.Module):
    """The same method three times in one expression."""

    def forward(self, x):
        return x.sin().sin().sin()


class Nested(nn.Module):
    """A loop in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.outer, self.inner = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(2):
            x = self.outer(x)
            for _ in range(3):
                x = torch.relu(self.inner(x))
        return x


class Recursion(nn.Module):
    """A method that calls itself; `depth` may exceed what one call site keeps."""

    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        self.depth, self.lin = depth, nn.Linear(4, 4)

    def down(self, x, depth):
        if depth == 0:
            return x
        return self.down(torch.relu(self.lin(x)), depth - 1)

    def forward(self, x):
        return self.down(x, self.depth)


class RecursionAfter(nn.Module):
    """The work is done on the way back, so that the deepest call comes first."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth, self.lin = depth, nn.Linear(4, 4)

    def down(self, x, depth):
        if depth > 0:
            x = self.down(x, depth - 1)
        return torch.tanh(self.lin(x))

    def forward(self, x):
        return self.down(x, self.depth)


class FreeModuleRecursion(nn.Module):
    """A module without parameters that calls itself, used by one with parameters."""

    class Down(nn.Module):
        def forward(self, x, depth):
            x = torch.sin(x)
            return x if depth == 0 else self(x, depth - 1)

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.down = nn.Linear(4, 4), self.Down()

    def forward(self, x):
        return self.down(self.lin(x), 2)


class DistinctBlocks(nn.Module):
    """A residual step over a list of distinct layers, `times` over."""

    def __init__(self, times: int = 1, size: int = 3) -> None:
        super().__init__()
        self.times, self.blocks = times, nn.ModuleList(nn.Linear(4, 4) for _ in range(size))

    def forward(self, x):
        for _ in range(self.times):
            for block in self.blocks:
                x = torch.relu(block(x)) + x
        return x


class Refinement(nn.Module):
    """Refine until small, with two tests a turn that never end it early."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(6):
            delta = self.step(x) * 0.1
            x = x - delta
            size = delta.abs()
            if size.mean() < -1:
                break
            if (size.amax() > 1e9) and x.min() > 0:
                x = x * 0.5
        return x


class EarlyExit(nn.Module):
    """The loop is left in the middle of its third turn."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        total = torch.zeros(())
        for _ in range(9):
            x = torch.tanh(self.step(x))
            total = total + 1
            if total > 2.5:
                break
            x = torch.sigmoid(x)
        return x


class WhileLoop(nn.Module):
    """The test of a `while`, which the compiler writes twice, with a chained comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        total = torch.zeros(())
        while -1 < total < 3:
            x = torch.tanh(self.step(x))
            total = total + 1
        return x


class HandGru(nn.Module):
    """A gated unit written out."""

    def __init__(self) -> None:
        super().__init__()
        self.z, self.r, self.n = (nn.Linear(8, 4) for _ in range(3))

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        for t in range(3):
            both = torch.cat([x[:, t], h], dim=1)
            z = torch.sigmoid(self.z(both))
            r = torch.sigmoid(self.r(both))
            n = torch.tanh(self.n(torch.cat([x[:, t], r * h], dim=1)))
            h = (1 - z) * n + z * h
        return h


class FreeFirst(nn.Module):
    """The body begins with an op without parameters; layers stand before and after the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = self.stem(x)
        for _ in range(3):
            x = self.body(torch.relu(x))
        return self.head(x)


class TwoLines(nn.Module):
    """One layer called on two lines, with other things done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        a = torch.tanh(torch.relu(self.lin(x)))
        return torch.tanh(torch.relu(self.lin(a)))


class SharedRelu(nn.Module):
    """A Sequential that holds one activation twice; applied `times` over."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        act, self.times = nn.ReLU(), times
        self.net = nn.Sequential(nn.Linear(4, 4), act, nn.Linear(4, 4), act)

    def forward(self, x):
        for _ in range(self.times):
            x = self.net(x)
        return x


class ScaledWeight(nn.Module):
    """Work on the weight itself, inside the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(F.linear(x, self.w * 2))
        return x


class Helper(nn.Module):
    """A method with parameters, called on two lines; and one without."""

    def __init__(self, *, same: bool = True) -> None:
        super().__init__()
        self.same, self.a, self.b = same, nn.Linear(4, 4), nn.Linear(4, 4)

    def block(self, x, layer):
        return torch.relu(layer(x)) + x

    def plain(self, x):
        return torch.sin(x)

    def forward(self, x):
        x = self.plain(self.block(x, self.a))
        x = self.block(x, self.a if self.same else self.b)
        return self.plain(x)


class HelperInHelper(nn.Module):
    """A method with parameters called on two lines of one that is itself called on two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def inner(self, x):
        return torch.relu(self.lin(x))

    def outer(self, x):
        x = self.inner(x)
        return torch.tanh(self.inner(x))

    def forward(self, x):
        x = self.outer(x)
        return self.outer(x)


class HelperBesideBlocks(nn.Module):
    """A shared step after each of several distinct layers, as a method, and as a module."""

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            return torch.tanh(self.lin(x))

    def __init__(self, *, method: bool) -> None:
        super().__init__()
        self.method, self.step = method, self.Step()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def shared(self, x):
        return torch.tanh(self.step.lin(x))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            x = self.shared(x) if self.method else self.step(x)
        return x


class HelperOverBlocks(nn.Module):
    """A method that loops over distinct layers, called on two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def run(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return x

    def forward(self, x):
        x = self.run(x)
        return self.run(x)


class Map(nn.Module):
    """The same work on independent tensors: without parameters no loop, with them passes of one layer."""

    def __init__(self, *, layer: bool) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2) if layer else None
        self.scale = torch.tensor(2.0)

    def forward(self, x):
        parts = [torch.tanh(self.lin(p) if self.lin else p * self.scale) for p in x.chunk(2, dim=1)]
        return torch.cat(parts, dim=1)


class Alternating(nn.Module):
    """A loop without parameters that takes turns between two functions."""

    def forward(self, x):
        for i in range(5):
            x = torch.sin(x) if i % 2 else torch.cos(x)
        return x


class AlternatingModules(nn.Module):
    """One layer every turn, two activations in turns."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.acts = nn.Linear(4, 4), nn.ModuleList([nn.Tanh(), nn.Sigmoid()])

    def forward(self, x):
        for i in range(4):
            x = self.acts[i % 2](self.lin(x)) + x
        return x


class Growing(nn.Module):
    """Shapes change from pass to pass."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(3):
            x = torch.cat([x, torch.relu(self.lin(x[:1]))])
        return x.sum()


class FreeModules(nn.Module):
    """Distinct modules without parameters in a row, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.Tanh()
        self.net = nn.Sequential(act, nn.Sigmoid(), act)

    def forward(self, x):
        return self.net(x)


class RunningBuffer(nn.Module):
    """A loop whose only memory is a buffer written in place, and a constant read every turn."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(4))
        self.offset = torch.ones(4)

    def forward(self, x):
        for t in range(3):
            self.state.add_(x[t])
            y = torch.tanh(self.state + self.offset)
        return y


class IdentityInLoop(nn.Module):
    """Modules without an op of their own: one reused in a loop, one shared by two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.same, self.shared = nn.Linear(4, 4), nn.Identity(), nn.Identity()

    def forward(self, x):
        for _ in range(3):
            x = self.same(self.lin(x))
        x = self.shared(x)
        return self.shared(x + 1)


class SharedPool(nn.Module):
    """One pooling module at two places that are no loop, inside a block that is applied twice if asked."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.pool = nn.Conv1d(2, 2, 1), nn.Conv1d(2, 2, 1), nn.MaxPool1d(2)

        def forward(self, x):
            x = self.pool(torch.relu(self.a(x)))
            return self.pool(torch.relu(self.b(x)))

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times, self.block = times, self.Block()

    def forward(self, x):
        for _ in range(self.times):
            x = self.block(x)
        return x


class Composite(nn.Module):
    """A function of torch written in Python, opened into several ops, in a loop and on two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(4, 1, batch_first=True)

    def forward(self, x):
        for _ in range(2):
            x = self.mha(x, x, x, need_weights=False)[0]
        return F.cosine_similarity(x, x) + F.cosine_similarity(x, x * 2)


class Deep(nn.Module):
    """A tied step, very often."""

    def __init__(self, times: int = 1200) -> None:
        super().__init__()
        self.times, self.cell = times, nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(self.times):
            x = torch.tanh(self.cell(x))
        return x
