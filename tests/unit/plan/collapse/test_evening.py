"""Evening: what is boxed beside boxes, what stays open, and which boxes become one segment."""

from __future__ import annotations

from collections.abc import Callable

from tests.builders import Builder, Ref
from torchlens.plan.collapse.schedule import make_path
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData

Auto = Callable[[Units], tuple[int, list[str], str]]


def _net(*, stem: int) -> TraceData:
    """A stem of so many ops, 8 stages of 20, and bare ops in between so that no stages are neighbours."""
    b = Builder("Net")

    def run(place: str, h: Ref, count: int) -> Ref:
        with b.module(place, "Part") as part:
            for k in range(count):
                h = b.op("relu" if k % 2 else "tanh", [h])
            part.returns = [h]
        return h

    h = run("stem", b.input(), stem)
    for k in range(8):
        h = run(f"stage{k}", b.op("neg", [h]), 20)
    b.output(h)
    return b.build()


def test_a_small_module_beside_boxes_is_boxed_too(units: Callable[..., Units], auto: Auto) -> None:
    count, boxes, reason = auto(units(_net(stem=5)))
    assert "stem" in boxes
    assert count == 2 + 1 + 2 * 8
    assert "evened from 23 nodes" in reason


def test_a_module_that_hides_more_than_the_boxes_beside_it_stays_open(units: Callable[..., Units]) -> None:
    data = _net(stem=5)
    found = units(data)
    path = make_path(found, 25, None)
    stages = [k for k, (event, _) in enumerate(path.acts, 1) if event.startswith("box stage")]
    board = path.board(stages[0])
    assert found.candidates[data.module_of["stem"]].hides == 5
    assert not board.covered[data.modules[data.module_of["stem"]].calls[0]]


def test_a_box_nested_deeper_leaves_its_neighbours_open(units: Callable[..., Units], auto: Auto) -> None:
    b = Builder("Net")
    b.modules.append(b.modules[0].__class__(1, "body", (), "Body", 0, (), False, (), (), ()))
    b._module_of["body"] = 1
    b.modules.append(b.modules[0].__class__(2, "body.list", (), "ModuleList", 1, (), False, (), (), ()))
    b._module_of["body.list"] = 2
    h = b.input()
    with b.module("stem", "Stem") as stem:
        for _ in range(5):
            h = b.op("relu", [h])
        stem.returns = [h]
    for k in range(8):
        h = b.op("neg", [h])
        with b.module(f"body.list.{k}", "Stage") as stage:
            for _ in range(20):
                h = b.op("tanh", [h])
            stage.returns = [h]
    b.output(h)
    _, boxes, _ = auto(units(b.build()))
    assert "body.list.0" in boxes
    assert "stem" not in boxes


def test_three_boxes_alike_in_a_row_become_a_segment(units: Callable[..., Units], auto: Auto) -> None:
    b = Builder("Net")
    h = b.input()
    for k in range(6):
        with b.module(f"blocks.{k}", "Block") as block:
            for name in ("relu", "tanh", "neg") * 6:
                h = b.op(name, [h])
            block.returns = [b.op("add", [h, h])]
            h = block.returns[0]
        h = b.op("exp", [h]) if k == 2 else h
    b.output(h)
    count, boxes, reason = auto(units(b.build()))
    assert len(boxes) == 6
    assert count == 2 + 2 + 1
    assert "evened" in reason
