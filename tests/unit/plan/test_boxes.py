"""Modules drawn as one node, and frames of open ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.plan.graph import MODULE, Plan, PlanNode
from torchlens.records.trace_data import TraceData

MakePlan = Callable[..., Plan]


def node(plan: Plan, name: str) -> PlanNode:
    return next(node for node in plan.nodes if node.name == name)


def frames(data: TraceData, plan: Plan) -> list[str]:
    return [data.modules[box.module].address for box in plan.boxes if box.module is not None]


def test_every_open_module_has_a_frame_and_a_rectangle_has_none(plan: MakePlan) -> None:
    data = builders.residual(1)
    made = plan(data)
    assert frames(data, made) == ["blocks.0", "blocks.0.mlp"]
    assert [box.parent for box in made.boxes] == [None, 0]
    assert [box.level for box in made.boxes] == [0, 1]


def test_depth_boxes_a_module_and_leaves_its_own_op_beside_the_box(plan: MakePlan) -> None:
    data = builders.residual(2)
    made = plan(data, depth=1)
    assert [n.name for n in made.nodes] == [
        "input_1", "linear_1_1", "module:blocks.0:1", "add_1_6", "module:blocks.1:1", "add_2_11", "linear_6_12",
        "output_1",
    ]  # fmt: skip
    box = node(made, "module:blocks.0:1")
    assert box.kind == MODULE
    assert [data.nodes.label[i] for i in box.members] == ["layernorm_1_2", "linear_2_3", "relu_1_4", "linear_3_5"]
    assert box.box == node(made, "add_1_6").box == 0
    assert frames(data, made) == ["blocks.0", "blocks.1"]


def test_a_module_of_one_op_stays_that_op_at_any_depth(plan: MakePlan) -> None:
    data = builders.residual(1)
    assert node(plan(data, depth=1), "linear_1_1").rectangle
    assert not any(n.kind == MODULE for n in plan(builders.chain(), depth=1).nodes)


def test_a_wrapper_of_one_op_is_no_box(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    with b.module("wrap") as call:
        call.returns = [b.linear("wrap.fc", x, 8)]
    b.output(call.returns[0])
    data = b.build()
    assert frames(data, plan(data)) == ["wrap"]
    boxed = plan(data, depth=1)
    assert [n.name for n in boxed.nodes] == ["input_1", "linear_1_1", "output_1"]
    assert boxed.boxes == ()


def test_hidden_buffers_and_counter_ops_count_in_a_box(plan: MakePlan) -> None:
    data = builders.demo()
    box = node(plan(data, depth=1), "module:features:1")
    kinds = [data.nodes.kind[i] for i in box.members]
    assert kinds.count("op") == 8
    assert kinds.count("buffer") == 12


def test_deeper_modules_are_inside_the_box_of_the_cut(plan: MakePlan) -> None:
    data = builders.tree(4)
    made = plan(data, depth=2)
    assert [n.name for n in made.nodes if n.kind == MODULE] == ["module:top.inner:1"]
    assert frames(data, made) == ["top"]
    assert len(node(made, "module:top.inner:1").members) == 9


def test_a_box_hands_on_what_its_module_returned_or_what_is_read_outside(plan: MakePlan) -> None:
    demo = builders.demo()
    box = node(plan(demo, depth=1), "module:features:1")
    assert [demo.nodes.label[n] for n, _ in box.outputs[0]] == ["relu_2_8"]
    data = builders.residual(1)
    box = node(plan(data, depth=1), "module:blocks.0:1")
    assert [data.nodes.label[n] for n, _ in box.outputs[0]] == ["linear_3_5"]


def test_drawn_buffers_open_a_frame_for_their_norm(plan: MakePlan) -> None:
    data = builders.demo()
    made = plan(data, show_buffers="always")
    norm = node(made, "batchnorm_1_3")
    assert frames(data, made)[norm.box or 0] == "features.0.norm"
    assert norm.rectangle
    assert norm.address == "features.0.norm"
    assert node(made, "buffer:features.0.norm.running_mean:2").box == norm.box


def test_hidden_buffers_are_known_to_their_rectangle(plan: MakePlan) -> None:
    data = builders.demo()
    norm = node(plan(data), "batchnorm_1_3")
    names = [data.buffers[b].address.rpartition(".")[2] for b in norm.hidden_buffers]
    assert names == ["num_batches_tracked", "running_mean", "running_var"]
    assert node(plan(data, show_buffers="always"), "batchnorm_1_3").hidden_buffers == ()
    assert node(plan(data), "conv2d_1_1").hidden_buffers == ()


@pytest.mark.parametrize("rolled", [False, True])
def test_a_module_called_twice_has_a_frame_per_call_or_one_for_both(plan: MakePlan, rolled: bool) -> None:
    b = Builder()
    h = b.input()
    for _ in range(2):
        with b.module("s") as call:
            h = b.op("relu", [b.linear("s.fc", h, 8, layer="fc")], layer="relu")
            h = b.op("neg", [h], layer="neg")
            call.returns = [h]
    b.output(h)
    made = plan(b.build(), rolled=rolled)
    assert [len(box.calls) for box in made.boxes] == ([2] if rolled else [1, 1])
    assert len(made.nodes) == (5 if rolled else 8)


def test_inputs_and_outputs_stand_outside_all_frames(plan: MakePlan) -> None:
    made = plan(builders.tree())
    assert all(n.box is None for n in made.nodes if n.kind in ("input", "output"))
