"""The whole plan: order, honesty, and the columns that it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.plan.graph import Plan
from torchlens.plan.select import select
from torchlens.records.trace_data import Deferred, TraceData

MakePlan = Callable[..., Plan]
OPTIONS: list[dict[str, object]] = [
    {},
    {"rolled": True},
    {"depth": 1},
    {"depth": 2, "rolled": True},
    {"show_buffers": "always"},
    {"show_buffers": "never", "depth": 1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", builders.SAMPLES)
def test_every_drawn_record_is_in_exactly_one_node(plan: MakePlan, name: str, options: dict[str, object]) -> None:
    data = builders.SAMPLES[name]()
    made = plan(data, **options)
    members = [i for node in made.nodes for i in node.members]
    assert len(members) == len(set(members))
    used = select(data, str(options.get("show_buffers", "meaningful"))).used
    hidden = {i for i in range(len(data.nodes)) if used[i]} - set(members)
    assert all(data.nodes.kind[i] == "buffer" or data.nodes.label[i].startswith("add") for i in hidden)
    firsts = [node.first for node in made.nodes]
    assert firsts == sorted(firsts)
    assert len({node.name for node in made.nodes}) == len(made.nodes)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", builders.SAMPLES)
def test_every_dependency_between_nodes_is_an_arrow(plan: MakePlan, name: str, options: dict[str, object]) -> None:
    data = builders.SAMPLES[name]()
    made = plan(data, **options)
    owner = {i: k for k, node in enumerate(made.nodes) for i in node.members}
    drawn = {(edge.source, edge.target) for edge in made.edges}
    for target, refs in enumerate(data.nodes.parents):
        for ref in refs:
            ends = (owner.get(ref.node), owner.get(target))
            buffers = "buffer" in (data.nodes.kind[ref.node], data.nodes.kind[target])
            if None not in ends and ends[0] != ends[1] and not (buffers and options.get("show_buffers") != "always"):
                assert ends in drawn


def test_columns_that_no_arrow_needs_stay_uncomputed(plan: MakePlan) -> None:
    data = builders.residual(1)

    def refuse(index: int) -> object:
        raise AssertionError(f"row {index} was computed")

    for column in ("flops", "macs", "site"):
        setattr(data.nodes, column, Deferred(len(data.nodes), refuse))
    plan(data)


def test_an_empty_model_is_a_plan_too(plan: MakePlan) -> None:
    b = builders.Builder()
    b.output(b.input())
    data: TraceData = b.build()
    made = plan(data)
    assert [node.name for node in made.nodes] == ["input_1", "output_1"]
    assert len(made.edges) == 1


def test_a_box_shows_what_its_module_returned_not_all_that_is_read(plan: Callable[..., Plan]) -> None:
    b = Builder()
    x = b.input()
    with b.module("s") as call:
        inner = b.op("neg", [x], (4, 4))
        outer = b.op("sum", [inner], (2,))
        call.returns = [outer]
    b.output(b.op("mul", [outer, inner], (4, 4)))
    (box,) = [node for node in plan(b.build(), depth=1).nodes if node.kind == "module"]
    assert box.outputs == (((outer.node, 0),),)
