"""Stub copies: which sources get them, where they stand, and that they stand for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.builders import Builder
from torchlens.plan.graph import COPY, Plan, tally
from torchlens.plan.stubs import FAR_RANKS, FAR_READERS
from torchlens.records.trace_data import TraceData

MakePlan = Callable[..., Plan]


def decoder(layers: int, *, reads: int = 1, steps: int = 3) -> TraceData:
    """Layers in frames that all read one mask, a few times each."""
    b = Builder("Decoder")
    h, mask = b.input("x", (2, 8)), b.input("mask", (2, 8))
    for k in range(layers):
        with b.module(f"layers.{k}", "Layer") as layer:
            for _ in range(steps):
                h = b.op("tanh", [h], (2, 8))
            masked = [b.op("sub", [h, mask], (2, 8)) for _ in range(reads)]
            h = b.op("cat", masked, (2, 8))
            layer.returns = [h]
    b.output(h)
    return b.build()


def copies(plan: Plan) -> list[int]:
    return [k for k, node in enumerate(plan.nodes) if node.kind == COPY]


def test_far_readers_get_a_stub(plan: MakePlan) -> None:
    data = decoder(20)
    made = plan(data)
    found = copies(made)
    mask = next(k for k, node in enumerate(made.nodes) if node.name == "input_2")
    assert len(found) > FAR_READERS
    assert all(made.nodes[k].name == "stub:from:input_2" and not made.nodes[k].members for k in found)
    readers = Counter(edge.source for edge in made.edges)
    assert all(readers[k] == 1 for k in found)
    assert readers[mask] + len(found) == 20
    # Each stands in its reader's frame and right before it.
    for edge in made.edges:
        if edge.source in found:
            assert edge.target == edge.source + 1
            assert made.nodes[edge.source].box == made.nodes[edge.target].box


def test_near_readers_keep_their_arrow(plan: MakePlan) -> None:
    made = plan(decoder(20))
    mask = next(k for k, node in enumerate(made.nodes) if node.name == "input_2")
    near = [edge.target for edge in made.edges if edge.source == mask]
    assert near
    assert max(near) < FAR_RANKS + 10


def test_few_far_readers_keep_their_arrows(plan: MakePlan) -> None:
    made = plan(decoder(12))
    assert copies(made) == []
    assert sum(made.nodes[edge.source].name == "input_2" for edge in made.edges) == 12


def test_neighbours_in_one_frame_share_a_stub(plan: MakePlan) -> None:
    made = plan(decoder(20, reads=2))
    readers = Counter(edge.source for edge in made.edges)
    assert copies(made)
    assert all(readers[k] == 2 for k in copies(made))


def test_every_arrow_and_every_count_stays(plan: MakePlan) -> None:
    data = decoder(20, reads=2)
    made = plan(data)
    members = [i for node in made.nodes for i in node.members]
    assert tally(data, members).ops == len(data.op_indexes)
    assert len(set(members)) == len(members)
    arrows = Counter(made.nodes[edge.target].name for edge in made.edges)
    assert all(arrows[data.nodes.label[i]] == len(data.nodes.parents[i]) for i in data.op_indexes)


def test_a_source_that_is_a_box_is_named_by_its_address(plan: MakePlan) -> None:
    b = Builder("Crossing")
    x = b.input("x", (2, 8))
    with b.module("encoder", "Encoder") as encoder:
        memory = b.op("relu", [b.op("tanh", [x], (2, 8))], (2, 8))
        encoder.returns = [memory]
    h = b.op("neg", [x], (2, 8))
    for _ in range(40):
        h = b.op("sub", [h, memory], (2, 8))
    b.output(h)
    made = plan(b.build(), depth=1)
    (name,) = {made.nodes[k].name for k in copies(made)}
    assert name == "stub:from:module:encoder:1"
    assert all(made.nodes[k].calls for k in copies(made))


def test_loops_of_a_rolled_figure_stay(plan: MakePlan) -> None:
    b = Builder("Loop")
    h, x = b.input("h", (2, 8)), b.input("x", (2, 8))
    for _ in range(60):
        h = b.op("sub", [b.op("tanh", [h], (2, 8), layer="t"), x], (2, 8), layer="s")
    b.output(h)
    data = b.build()
    assert copies(plan(data, rolled=True)) == []
    assert len(copies(plan(data))) > FAR_READERS
