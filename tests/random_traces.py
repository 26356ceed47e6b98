"""Random traces made by hand: nested modules, repeated blocks, shared modules, side inputs, buffers and dead ends."""

from __future__ import annotations

import random

from tests.builders import Builder, Ref
from torchlens.records.trace_data import TraceData

FUNCS = ("relu", "tanh", "sin", "neg")


class _Writer:
    def __init__(self, seed: int, size: int) -> None:
        self.random, self.left = random.Random(seed), size
        self.builder = Builder(f"Random{seed}")
        self.known: list[Ref] = [self.builder.input(f"x{k}") for k in range(self.random.randint(1, 2))]
        self.shared: list[str] = []

    def pick(self) -> Ref:
        """Mostly something recent, so that chains form; sometimes anything."""
        recent = self.known[-2:] if self.random.random() < 0.75 else self.known
        return self.random.choice(recent)

    def op(self, place: str) -> Ref:
        b, kind = self.builder, self.random.random()
        self.left -= 1
        if kind < 0.35:
            made = b.op(self.random.choice(FUNCS), [self.pick()])
        elif kind < 0.6:
            made = b.op(self.random.choice(("add", "sub")), [self.pick(), self.pick()])
        elif kind < 0.7:
            made = b.op("zeros", [])
        elif kind < 0.75:
            made = b.op("mul", [self.pick(), b.constant()])
        elif kind < 0.85:
            name = f"{place}gain" if self.random.random() < 0.5 else f"{place}norm.running_mean"
            made = b.op("mul", [self.pick(), b.read(name)])
            if self.random.random() < 0.3:
                b.write(name, made)
        else:
            made = b.linear(f"{place}fc{self.left}", self.pick(), 8)
        self.known.append(made)
        return made

    def body(self, place: str, depth: int) -> Ref:
        """Some statements of a module; gives what it returns."""
        last = self.known[-1]
        for k in range(self.random.randint(1, 5)):
            choice = self.random.random()
            if self.left <= 0:
                break
            if depth < 4 and choice < 0.3:
                last = self.call(f"{place}m{k}", depth)
            elif depth < 4 and choice < 0.42:
                last = self.tower(f"{place}t{k}", depth)
            elif depth < 4 and choice < 0.46:
                last = self.fan(f"{place}f{k}")
            elif depth < 4 and choice < 0.5:
                last = self.tap(f"{place}p{k}")
            elif self.shared and choice < 0.58:
                last = self.again()
            else:
                last = self.op(place)
        return last if self.random.random() < 0.9 else self.known[-1]

    def call(self, address: str, depth: int) -> Ref:
        with self.builder.module(address, self.random.choice(("Block", "Net"))) as opened:
            opened.returns = [self.body(f"{address}.", depth + 1)]
        self.known.append(opened.returns[0])
        return opened.returns[0]

    def tower(self, address: str, depth: int) -> Ref:
        """Blocks alike in a row, with or without a residual add, in a module or in a mere list."""
        residual, listed, width = (self.random.random() < 0.5 for _ in range(3))
        b, h = self.builder, self.pick()
        first = len(self.known)
        if listed:
            for k in range(self.random.randint(2, 6)):
                h = self.block(f"{address}.{k}", h, residual, width)
        else:
            with b.module(address, "Sequential") as opened:
                for k in range(self.random.randint(2, 6)):
                    h = self.block(f"{address}.{k}", h, residual, width)
                opened.returns = [h]
        del self.known[first:]
        self.known.append(h)
        return h

    def block(self, address: str, x: Ref, residual: bool, wide: bool) -> Ref:
        b = self.builder
        self.left -= 3
        with b.module(address, "Block") as opened:
            h = b.linear(f"{address}.fc1", x, 8)
            h = b.op("relu", [h])
            h = b.linear(f"{address}.fc2", h, 8) if wide else h
            h = b.op("add", [x, h]) if residual else h
            opened.returns = [h]
        if self.random.random() < 0.2:
            self.known.append(h)
        self.shared.append(address) if self.random.random() < 0.1 else None
        return h

    def fan(self, address: str) -> Ref:
        """Blocks alike side by side, read together."""
        x = self.pick()
        arms = [self.block(f"{address}.{k}", x, False, True) for k in range(self.random.randint(2, 5))]
        made = self.builder.op("stack", {(0, k): arm for k, arm in enumerate(arms)})
        self.known.append(made)
        return made

    def tap(self, address: str) -> Ref:
        """A module that returns its own op and then goes on with it."""
        b, x = self.builder, self.pick()
        self.left -= 3
        with b.module(address, "Tap") as opened:
            opened.returns = [b.op("add", [b.linear(f"{address}.fc", x, 8), x])]
            b.write(f"{address}.memory", b.linear(f"{address}.probe", opened.returns[0], 8))
        self.known.append(opened.returns[0])
        return opened.returns[0]

    def again(self) -> Ref:
        """A block called once more."""
        address, b = self.random.choice(self.shared), self.builder
        with b.module(address) as opened:
            h = b.op("relu", [b.linear(f"{address}.fc1", self.pick(), 8)])
            opened.returns = [h]
        self.known.append(h)
        return h


def random_trace(seed: int, size: int = 40) -> TraceData:
    """The same trace for the same seed, of about so many ops."""
    writer = _Writer(seed, size)
    while writer.left > 0:
        writer.body("", 0)
    b = writer.builder
    outputs = writer.random.sample(writer.known, min(len(writer.known), writer.random.randint(1, 4)))
    for k, ref in enumerate([writer.known[-1], *outputs]):
        b.output(ref, f"hidden.{k}" if len(outputs) > 2 else str(k))
    return b.build()
