"""Passes as one node, and what stands behind the @ of a node."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder
from torchlens.plan.graph import MODULE, Plan

MakePlan = Callable[..., Plan]


def addresses(plan: Plan) -> dict[str, str | None]:
    return {node.name: node.address for node in plan.nodes}


def test_unrolled_each_pass_is_a_node_of_its_own_call(plan: MakePlan) -> None:
    made = plan(builders.loop(3))
    assert len(made.nodes) == 15
    assert addresses(made)["linear_2_3:2"] == "rec:2"
    assert addresses(made)["tanh_1_5:2"] is None


def test_rolled_each_layer_is_one_node(plan: MakePlan) -> None:
    made = plan(builders.loop(3), rolled=True)
    assert [node.name for node in made.nodes] == [
        "input_1", "zeroslike_1_1", "linear_1_2", "linear_2_3", "add_1_4", "tanh_1_5", "output_1",
    ]  # fmt: skip
    assert [node.passes for node in made.nodes] == [1, 1, 3, 3, 3, 3, 1]


def test_chained_passes_share_the_bare_address_independent_ones_are_listed(plan: MakePlan) -> None:
    found = addresses(plan(builders.loop(3), rolled=True))
    assert found["linear_2_3"] == "rec"
    assert found["linear_1_2"] == "inp:1,2,3"


def test_a_chained_group_among_independent_ones_is_a_range(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    h = x
    for _ in range(2):
        h = b.linear("fc", h, 8, layer="fc")
    b.output(b.op("add", [h, b.linear("fc", x, 8, layer="fc")]))
    assert addresses(plan(b.build(), rolled=True))["linear_1_1"] == "fc:1-2,3"


def test_a_layer_that_is_not_always_whole_work_is_a_plain_op(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        call.returns = [b.op("relu", [x], layer="relu")]
    b.output(b.op("relu", [call.returns[0]], layer="relu"))
    node = plan(b.build(), rolled=True).nodes[1]
    assert node.passes == 2
    assert (node.rectangle, node.address) == (False, None)


def test_addresses_of_inputs_outputs_buffers_and_constants(plan: MakePlan) -> None:
    found = addresses(plan(builders.state()))
    assert found["input_1"] == "input.x"
    assert found["output_1"] == "output"
    assert found["buffer:cell.decay:1"] == "cell.decay"
    assert found["buffer:cell.memory:2"] == "cell.memory:2"
    assert found["constant_1"] == "offset"
    assert addresses(plan(builders.multi_output()))["output_3"] == "output.state.0"


def test_a_root_that_is_one_op_is_self(plan: MakePlan) -> None:
    b = Builder("Linear")
    b.output(b.op("linear", [b.input()]))
    assert addresses(plan(b.build()))["linear_1_1"] == "self"


def test_a_rolled_box_stands_for_all_calls_of_its_module(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for _ in range(3):
        with b.module("cell") as call:
            h = b.op("tanh", [b.linear("cell.fc", h, 8, layer="fc")], layer="tanh")
            h = b.op("neg", [h], layer="neg")
            call.returns = [h]
    b.output(h)
    data = b.build()
    rolled = plan(data, rolled=True, depth=1)
    (box,) = [node for node in rolled.nodes if node.kind == MODULE]
    assert (box.passes, [len(group) for group in box.groups]) == (3, [3, 3, 3])
    unrolled = plan(data, depth=1)
    assert [n.name for n in unrolled.nodes if n.kind == MODULE] == ["module:cell:1", "module:cell:2", "module:cell:3"]


def test_rolled_the_versions_that_one_layer_writes_are_one_node(plan: MakePlan) -> None:
    made = plan(builders.memory(), rolled=True)
    found = {node.name: (node.address, node.passes) for node in made.nodes if node.kind == "buffer"}
    assert found == {"buffer:memory:1": ("memory:1", 1), "buffer:memory:2": ("memory:2-4", 3)}
    parts = {
        (made.nodes[e.source].name, made.nodes[e.target].name): (e.in_passes, e.out_passes, e.back) for e in made.edges
    }
    assert parts["buffer:memory:1", "sub_1_2"] == ((1,), (), False)
    assert parts["tanh_1_3", "buffer:memory:2"] == ((), (), False)
    assert parts["buffer:memory:2", "sub_1_2"] == ((2, 3), (1, 2), True)
    assert parts["buffer:memory:2", "neg_1_4"] == ((), (3,), False)


def test_unrolled_every_version_is_a_node(plan: MakePlan) -> None:
    found = [node.address for node in plan(builders.memory()).nodes if node.kind == "buffer"]
    assert found == ["memory:1", "memory:2", "memory:3", "memory:4"]


def test_what_a_hidden_buffer_carries_from_pass_to_pass_stays_an_arrow(plan: MakePlan) -> None:
    made = plan(builders.memory(), rolled=True, show_buffers="never")
    parts = {(made.nodes[e.source].name, made.nodes[e.target].name): (e.in_passes, e.out_passes) for e in made.edges}
    assert parts["tanh_1_3", "sub_1_2"] == ((2, 3), (1, 2))
    assert parts["tanh_1_3", "neg_1_4"] == ((), (3,))


def test_a_long_list_of_calls_is_cut(plan: MakePlan) -> None:
    found = addresses(plan(builders.loop(60), rolled=True))
    assert found["linear_1_2"] == "inp:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,…,60"
