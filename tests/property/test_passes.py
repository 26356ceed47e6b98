"""Random programs of nested loops whose layers follow from their text, against the layers that recording finds."""

from __future__ import annotations

from collections import Counter
from math import prod

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import torchlens as tl

OP, LAYER, LOOP, WHILE, BLOCKS, HELPER = "op", "layer", "loop", "while", "blocks", "helper"
leaf = st.sampled_from([(OP,), (LAYER,), (HELPER,)])
bodies = st.recursive(
    st.lists(leaf, min_size=1, max_size=3),
    lambda inner: st.lists(
        leaf
        | st.tuples(st.sampled_from([LOOP, WHILE]), st.integers(1, 3), inner)
        | st.tuples(st.just(BLOCKS), st.integers(2, 3), inner, inner),
        min_size=1,
        max_size=3,
    ),
    max_leaves=8,
)


class Program:
    """Source of a forward, the modules it needs, and how many passes each of its layers must have.

    A statement in loops of a, b, ... turns runs a * b * ... times and is one layer; each loop over distinct blocks
    around an op without parameters multiplies its layers instead. What has parameters is one layer in any loop.
    """

    def __init__(self, body):
        self.lines = ["def forward(self, x):", " for _ in range(2):"]
        self.names = 0
        self.model = nn.Module()
        self.expected = Counter()
        self.helped = 0
        self.model.shared = nn.Linear(2, 2)
        self.write(body, 2, (2,), ())
        self.lines.append(" return x")
        if self.helped:
            self.expected["linear", self.helped] += 1

    def name(self):
        self.names += 1
        return f"n{self.names}"

    def say(self, depth, text):
        self.lines.append(" " * depth + text)

    def free(self, kind, loops, blocks, times=1):
        self.expected[kind, prod(loops) * times] += prod(blocks)

    def write(self, body, depth, loops, blocks):
        for kind, *rest in body:
            getattr(self, kind)(depth, loops, blocks, *rest)

    def op(self, depth, loops, blocks):
        self.say(depth, "x = torch.sin(x)")
        self.free("sin", loops, blocks)

    def layer(self, depth, loops, blocks):
        name = self.name()
        self.model.add_module(name, nn.Linear(2, 2))
        self.say(depth, f"x = self.{name}(x)")
        self.expected["linear", prod(loops) * prod(blocks)] += 1

    def helper(self, depth, loops, blocks):
        self.say(depth, "x = helped(self, x)")
        self.helped += prod(loops) * prod(blocks)

    def loop(self, depth, loops, blocks, turns, body):
        self.say(depth, f"for _ in range({turns}):")
        self.write(body, depth + 1, (*loops, turns), blocks)

    def blocks(self, depth, loops, blocks, size, before, after):
        name = self.name()
        self.model.add_module(name, nn.ModuleList(nn.Linear(2, 2) for _ in range(size)))
        self.say(depth, f"for {name} in self.{name}:")
        self.write(before, depth + 1, loops, (*blocks, size))
        self.say(depth + 1, f"x = {name}(x)")
        self.expected["linear", prod(loops) * prod(blocks)] += size
        self.write(after, depth + 1, loops, (*blocks, size))

    def run(self):
        space = {"torch": torch}
        exec(compile("\n".join([*HELPED, *self.lines]), "<program>", "exec"), space)
        kind = type("Generated", (nn.Module,), {"forward": space["forward"]})
        self.model.__class__ = kind
        return tl.trace(self.model, torch.ones(1, 2), save="none")


HELPED = ["def helped(self, x):", " return torch.tanh(self.shared(x))"]


def with_while(program, depth, loops, blocks, turns, body):
    """A `while` whose test is a tensor; over distinct blocks its test belongs to no turn, so those are left out."""
    if blocks or any(part[0] == BLOCKS for part in flat(body)):
        return program.loop(depth, loops, blocks, turns, body)
    name = program.name()
    program.say(depth, f"{name} = torch.zeros(())")
    program.say(depth, f"while {name} < {turns}:")
    program.free("zeros", loops, blocks)
    program.free("lt", loops, blocks, turns + 1)
    program.write(body, depth + 1, (*loops, turns), blocks)
    program.say(depth + 1, f"{name} = {name} + 1")
    program.free("add", loops, blocks, turns)
    return None


def flat(body):
    for part in body:
        yield part
        for inner in part[2:]:
            yield from flat(inner)


setattr(Program, WHILE, with_while)


@settings(max_examples=60, deadline=None)
@given(bodies)
def test_layers_of_random_programs(body):
    program = Program(body)
    trace = program.run()
    trace.check()
    found = Counter((layer.type, layer.num_passes) for layer in trace.layers if layer.record.step is not None)
    if program.helped:
        program.expected["tanh", program.helped] += 1
    assert found == program.expected, "\n".join(program.lines)
