"""Arrows around ops that a rule takes off the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.base.errors import InvalidArgumentError
from torchlens.plan import hide
from torchlens.plan.graph import Arm, Entry, Plan, PlanEdge
from torchlens.records.trace_data import TraceData

MakePlan = Callable[..., Plan]


def around(plan: Plan) -> dict[str, PlanEdge]:
    """`source->target` -> the arrow around hidden ops; there is at most one."""
    found: dict[str, PlanEdge] = {}
    for edge in plan.edges:
        name = f"{plan.nodes[edge.source].name}->{plan.nodes[edge.target].name}"
        assert not (edge.over and name in found)
        if edge.over:
            found[name] = edge
    return found


def counts(plan: Plan) -> dict[str, int]:
    return {name: edge.over for name, edge in around(plan).items()}


def hides(*patterns: str) -> dict[str, object]:
    return {"collapse_rules": [{"op": pattern, "do": "hide"} for pattern in patterns]}


def _diamond() -> TraceData:
    """x -> tanh -> (sin, neg) -> add -> relu, and x -> relu2."""
    b = Builder()
    x = b.input()
    h = b.op("tanh", [x])
    b.output(b.op("relu", [b.op("add", [b.op("sin", [h]), b.op("neg", [h])])]))
    b.output(b.op("relu", [x]), "1")
    return b.build()


def test_each_op_on_the_ways_between_two_nodes_counts_once(plan: MakePlan) -> None:
    drawn = plan(_diamond(), **hides("tanh", "sin", "neg", "add"))
    assert counts(drawn) == {"input_1->relu_1_5": 4}
    assert drawn.left_out == (1, 2, 3, 4)
    assert counts(plan(_diamond(), **hides("sin", "neg"))) == {"tanh_1_1->add_1_4": 2}
    assert counts(plan(_diamond(), **hides("tanh", "sin", "neg"))) == {"input_1->add_1_4": 3}


def test_an_arrow_of_the_trace_stays_beside_the_one_around(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    b.output(b.op("add", [x, b.op("view", [x])]))
    drawn = plan(b.build(), **hides("view"))
    assert [(edge.over, edge.dashed, edge.tensors) for edge in drawn.edges if edge.target == 1] == [
        (0, False, 1),
        (1, True, 1),
    ]


def test_only_nodes_that_a_hidden_way_joins_are_joined(plan: MakePlan) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    one, two = b.op("view", [x]), b.op("view", [y])
    b.output(b.op("sin", [one]), "0")
    b.output(b.op("cos", [two]), "1")
    b.op("neg", [b.op("view", [one])])
    drawn = plan(b.build(), **hides("view"))
    assert counts(drawn) == {"input_1->sin_1_3": 1, "input_2->cos_1_4": 1, "input_1->neg_1_6": 2}


def test_a_dead_end_and_a_source_are_counted_and_leave_no_arrow(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    b.op("view", [x])
    b.output(b.op("add", [x, b.op("zeros", [])]))
    drawn = plan(b.build(), **hides("view", "zeros"))
    assert counts(drawn) == {}
    assert len(drawn.left_out) == 2


def test_all_arguments_that_one_way_feeds_are_one_arrow(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    parts = b.op("split", [x], outs=[(2, 4), (2, 4), (2, 4)])
    views = [b.op("view", [Ref(parts.node, k)]) for k in range(3)]
    b.output(b.op("sdpa", views))
    b.output(b.op("sub", [b.op("view", [Ref(parts.node, 1)]), x]), "1")
    found = around(plan(b.build(), **hides("view")))
    edge = found["split_1_1->sdpa_1_5"]
    assert (edge.over, edge.tensors, edge.position, edge.output) == (3, 3, None, None)
    edge = found["split_1_1->sub_1_7"]
    assert (edge.over, edge.tensors, edge.position, edge.output) == (1, 1, (0,), 1)


def test_shapes_at_both_ends(plan: MakePlan) -> None:
    b = Builder()
    b.output(b.op("relu", [b.op("view", [b.input(shape=(2, 8))], (4, 4))], (4, 4)))
    (edge,) = around(plan(b.build(), **hides("view"))).values()
    assert (edge.shapes, edge.arriving) == (((2, 8),), ((4, 4),))


def test_a_box_holds_what_is_hidden_in_it(plan: MakePlan) -> None:
    data = builders.residual(3)
    full = plan(data, **hides("relu"))
    assert len(full.left_out) == 3
    for options in ({"depth": 1}, {"collapse": "max"}, {"collapse": 1.0}):
        folded = plan(data, **hides("relu"), **options)
        assert folded.left_out == ()
        assert counts(folded) == {}


def test_an_op_whose_neighbours_are_hidden_is_its_modules_rectangle(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    with b.module("conv", "Conv1D") as call:
        weight = b.param("conv.weight", (8, 8))
        call.returns = [b.op("view", [b.op("addmm", [b.op("view", [x])], params=[weight])])]
    b.output(call.returns[0])
    drawn = plan(b.build(), **hides("view"))
    (node,) = (node for node in drawn.nodes if node.kind == "op")
    assert (node.rectangle, node.address, drawn.boxes) == (True, "conv", ())


def test_a_way_into_an_arm_says_so(plan: MakePlan) -> None:
    b = Builder()
    x = b.linear("fc", b.input(), 8)
    test = b.test(b.op("gt", [x], (), dtype="bool"), line=7)
    first = b.enter(test, b.op("view", [x]))
    b.output(b.op("relu", [b.op("reshape", [first])]))
    (edge,) = around(plan(b.build(), **hides("view", "reshape"))).values()
    assert (edge.over, edge.arms) == (2, (Entry((Arm("THEN", 0, 7),), ()),))


def test_rolled_a_way_counts_layers_and_names_its_passes(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for _ in range(3):
        h = b.op("tanh", [b.op("view", [h], layer="view")], layer="tanh")
    b.output(h)
    data = b.build()
    drawn = plan(data, rolled=True, **hides("view"))
    found = around(drawn)
    assert counts(drawn) == {"input_1->tanh_1_2": 1, "tanh_1_2->tanh_1_2": 1}
    assert (found["tanh_1_2->tanh_1_2"].in_passes, found["tanh_1_2->tanh_1_2"].out_passes) == ((2, 3), (1, 2))
    assert len(drawn.left_out) == 3
    assert set(counts(plan(data, **hides("view"))).values()) == {1}


def test_a_focused_module_is_bridged_from_stub_to_stub(plan: MakePlan) -> None:
    b = Builder()
    h = b.op("sin", [b.input()])
    with b.module("body", "Body") as call:
        b.op("cos", [h])
        call.returns = [b.op("view", [h])]
    b.output(b.op("neg", [call.returns[0]]))
    data = b.build()
    assert counts(plan(data, module="body", **hides("view"))) == {"stub:from:sin_1_1->stub:to:neg_1_4": 1}
    # What lies outside is named as it is, whatever a rule says.
    outside = plan(data, module="body", **hides("sin", "neg"))
    assert outside.left_out == ()
    assert {node.name for node in outside.nodes} >= {"stub:from:sin_1_1", "stub:to:neg_1_4"}


def test_buffers_that_are_not_drawn_lie_on_the_way(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    b.write("memory", b.op("view", [x]))
    b.output(b.op("neg", [b.read("memory")]))
    data = b.build()
    assert counts(plan(data, show_buffers="never", **hides("view"))) == {"input_1->neg_1_2": 1}
    assert counts(plan(data, **hides("view"))) == {"input_1->buffer:memory:2": 1}


def test_orphans_leave_the_page_like_others(plan: MakePlan) -> None:
    data = builders.orphans()
    funcs = {data.nodes.func[i] for i in data.op_indexes if data.orphan[i]}
    drawn = plan(data, show_orphans=True, **hides(*sorted(funcs)))
    assert not any(data.orphan[i] for node in drawn.nodes for i in node.members if data.nodes.kind[i] == "op")


def test_too_many_arrows_are_refused(plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    total = b.input()
    for _ in range(40):
        total = b.op("add", [total, b.op("sin", [total])])
        b.op("neg", [total])
    b.output(total)
    monkeypatch.setattr(hide, "MOST_STEPS", 200)
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_bridges_excessive\] 40 hidden ops"):
        plan(b.build(), **hides("add"))
