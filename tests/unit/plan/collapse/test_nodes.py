"""Names of capsules, and the frame that they stand in."""

from __future__ import annotations

import pytest

from tests.builders import Builder
from tests.honesty import make
from torchlens.plan.collapse.nodes import op_ends, span_text
from torchlens.plan.graph import CAPSULES, Plan
from torchlens.records.trace_data import TraceData


def _row(names: list[str]) -> TraceData:
    b = Builder("Row")
    h = b.input()
    for name in names:
        with b.module(name) as block:
            h = b.op("neg", [b.op("relu", [h])])
            block.returns = [h]
    b.output(h)
    return b.build()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["blocks.0", "blocks.1", "blocks.2"], "blocks.0-2"),
        (["layer1", "layer2", "layer3"], "layer1-layer3"),
        (["net.part_0", "net.part_1"], "net.part_0-part_1"),
        (["cell"], "cell"),
        (["cell", "cell", "cell"], "cell:1-3"),
    ],
)
def test_a_row_is_named_by_its_ends(names: list[str], text: str) -> None:
    data = _row(names)
    assert span_text(data, range(1, len(names) + 1), rolled=False) == text
    assert span_text(data, (), rolled=False) == ""


def test_rolled_a_row_has_no_call_numbers() -> None:
    assert span_text(_row(["a", "b", "a", "b"]), (1, 2, 3, 4), rolled=True) == "a-b"


def test_a_chain_is_named_by_its_first_and_last_op() -> None:
    assert op_ends(_row(["a", "b"]), range(5)) == ("relu_1_1", "neg_2_4")


def _frames(plan: Plan) -> dict[str, int | None]:
    modules = {number: frame.module for number, frame in enumerate(plan.boxes)}
    return {node.name: modules.get(node.box if node.box is not None else -1) for node in plan.nodes}


def test_a_capsule_stands_in_the_frame_around_all_of_it() -> None:
    b = Builder("Tower")
    h = b.linear("stem", b.input(), 8)
    with b.module("tower", "Tower") as tower:
        for k in range(4):
            with b.module(f"tower.{k}") as block:
                h = b.op("neg", [b.op("relu", [h])])
                block.returns = [h]
        tower.returns = [h]
    b.output(h)
    data = b.build()
    plan = make(data, fold_repeats=True)
    frames = _frames(plan)
    assert frames["fold:tower.0"] == frames["module:tower.0:1"] == data.module_of["tower"]
    assert frames["linear_1_1"] is None
    assert all(len(set(node.members)) == len(node.members) for node in plan.nodes if node.kind in CAPSULES)
