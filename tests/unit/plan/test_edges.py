"""The arrows and their labels."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.graph import Plan, PlanEdge

MakePlan = Callable[..., Plan]


def arrows(plan: Plan) -> dict[str, list[PlanEdge]]:
    found: dict[str, list[PlanEdge]] = {}
    for edge in plan.edges:
        found.setdefault(f"{plan.nodes[edge.source].name}->{plan.nodes[edge.target].name}", []).append(edge)
    return found


def test_arguments_are_named_only_where_order_matters(plan: MakePlan) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    b.output(b.op("sub", [x, b.op("add", [x, y])]))
    found = arrows(plan(b.build()))
    assert found["input_1->sub_1_2"][0].position == (0,)
    assert found["add_1_1->sub_1_2"][0].position == (1,)
    assert found["input_2->add_1_1"][0].position is None


def test_add_with_a_factor_does_not_commute(plan: MakePlan) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    b.output(b.op("add", [x, y], config=(("alpha", 2),)))
    assert arrows(plan(b.build()))["input_2->add_1_1"][0].position == (1,)


def test_a_single_argument_is_not_named(plan: MakePlan) -> None:
    assert all(edge.position is None for edge in plan(builders.chain()).edges)


def test_one_tensor_in_two_slots_is_one_arrow_if_the_slots_are_alike(plan: MakePlan) -> None:
    found = arrows(plan(builders.awkward()))
    (twice,) = found["stack_1_1->mul_1_2"]
    assert (twice.tensors, twice.position) == (2, None)
    assert [edge.position for edge in found["mul_1_2->matmul_1_3"]] == [(0,), (1,)]
    assert [edge.position for edge in found["input_1->stack_1_1"]] == [(0, 0), (0, 1)]


def test_an_arrow_from_several_outputs_says_which(plan: MakePlan) -> None:
    found = arrows(plan(builders.multi_output()))
    assert found["max_1_2->output_1"][0].output == 0
    assert found["max_1_2->output_2"][0].output == 1
    assert found["mean_1_3->output_4"][0].output is None


def test_an_input_may_be_an_output_and_a_dead_end_is_drawn(plan: MakePlan) -> None:
    found = arrows(plan(builders.awkward()))
    assert "input_2->output_2" in found
    assert "where_1_6->sin_1_7" in found


def test_a_late_write_is_an_arrow_unless_there_is_one_already(plan: MakePlan) -> None:
    assert "fill_1_5->where_1_6" in arrows(plan(builders.awkward()))
    b = Builder()
    h = b.op("relu", [b.input()])
    b.output(b.op("neg", [h], late=[h]))
    assert len(arrows(plan(b.build()))["relu_1_1->neg_1_2"]) == 1


def test_an_arrow_from_what_no_input_reaches_is_dashed(plan: MakePlan) -> None:
    found = arrows(plan(builders.state()))
    assert found["constant_1->sub_1_4"][0].dashed
    assert found["buffer:cell.decay:1->mul_1_2"][0].dashed
    assert not found["buffer:cell.memory:2->linear_2_3"][0].dashed


def test_a_hidden_buffer_still_passes_on_what_an_op_wrote(plan: MakePlan) -> None:
    found = arrows(plan(builders.state(), show_buffers="never"))
    assert "mul_1_2->linear_2_3" in found


def test_hidden_routine_buffers_connect_nothing(plan: MakePlan) -> None:
    b = Builder(training=True)
    x = b.input("x", (4, 8))
    first = b.batch_norm("norm", x, 8)
    second = b.batch_norm("norm", x, 8)
    b.output(b.op("add", [first, second]))
    found = arrows(plan(b.build()))
    assert set(found) == {
        "input_1->batchnorm_1_2", "input_1->batchnorm_2_4", "batchnorm_1_2->add_3_5", "batchnorm_2_4->add_3_5",
        "add_3_5->output_1",
    }  # fmt: skip


def test_no_arrow_into_a_box_for_a_buffer_that_it_hides(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    mean = b.op("mean", [x], (8,))
    with b.module("m") as call:
        b.write("m.running_mean", mean)
        call.returns = [b.op("relu", [b.op("sin", [x])])]
    b.output(call.returns[0])
    assert "mean_1_1->module:m:1" not in arrows(plan(b.build(), depth=1))


@pytest.mark.parametrize("depth", [1, 1000])
def test_no_arrow_between_norms_that_share_a_counter(plan: MakePlan, depth: int) -> None:
    b = Builder(training=True)
    x = b.input("x", (4, 8))
    for _ in range(2):
        with b.module("block") as call:
            call.returns = [b.op("relu", [b.op("sin", [b.batch_norm("block.norm", x, 8)])])]
        b.output(call.returns[0])
    found = arrows(plan(b.build(), depth=depth))
    between = {"module:block:1->module:block:2", "batchnorm_1_2->batchnorm_2_6"}
    assert not between & set(found)
    assert len([name for name in found if name.startswith("input_1->")]) == 2


def test_arrows_into_a_box_merge_and_are_counted(plan: MakePlan) -> None:
    b = Builder()
    h = b.linear("embed", b.input(), 8)
    with b.module("block") as call:
        inner = b.op("relu", [b.op("sin", [h])])
        inner = b.op("mul", [b.op("sub", [inner, h]), h])
        call.returns = [inner]
    b.output(inner)
    (edge,) = arrows(plan(b.build(), depth=1))["linear_1_1->module:block:1"]
    assert (edge.tensors, edge.position) == (3, None)


def test_rolled_arrows_say_which_passes_used_them(plan: MakePlan) -> None:
    found = arrows(plan(builders.loop(3), rolled=True))
    (start,) = found["zeroslike_1_1->linear_2_3"]
    assert (start.in_passes, start.out_passes, start.back) == ((1,), (), False)
    (back,) = found["tanh_1_5->linear_2_3"]
    assert (back.in_passes, back.out_passes, back.back) == ((2, 3), (1, 2), True)
    (end,) = found["tanh_1_5->output_1"]
    assert (end.in_passes, end.out_passes) == ((), (3,))
    (always,) = found["input_1->linear_1_2"]
    assert (always.in_passes, always.out_passes, always.tensors) == ((), (), 1)


def test_a_self_loop_is_kept(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for _ in range(3):
        h = b.linear("fc", h, 8, layer="fc")
    b.output(h)
    (loop,) = arrows(plan(b.build(), rolled=True))["linear_1_1->linear_1_1"]
    assert (loop.in_passes, loop.out_passes, loop.back) == ((2, 3), (1, 2), True)


def test_calls_of_a_rolled_box_that_feed_each_other_are_a_loop(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for _ in range(3):
        with b.module("cell") as call:
            h = b.op("neg", [b.op("tanh", [h], layer="tanh")], layer="neg")
            call.returns = [h]
    b.output(h)
    found = arrows(plan(b.build(), rolled=True, depth=1))
    (loop,) = found["module:cell:1->module:cell:1"]
    assert (loop.in_passes, loop.out_passes) == ((2, 3), (1, 2))
    assert found["input_1->module:cell:1"][0].in_passes == (1,)


def test_passes_collected_in_a_list_are_one_arrow(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    h, kept = x, []
    for _ in range(4):
        h = b.linear("fc", h, 8, layer="fc")
        kept.append(h)
    b.output(b.op("stack", {(0, k): ref for k, ref in enumerate(kept)}, (4, 2, 8)))
    data = b.build()
    (edge,) = arrows(plan(data, rolled=True))["linear_1_1->stack_1_2"]
    assert (edge.position, edge.tensors, edge.out_passes) == ((0, "0-3"), 4, ())
    assert len(plan(data).edges) == 4 + 4 + 1


def test_a_box_that_feeds_a_list_is_one_arrow(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        call.returns = [b.op("sin", [x]), b.op("cos", [x]), b.op("tan", [x])]
    b.output(b.op("cat", {(0, k): ref for k, ref in enumerate(call.returns)}))
    (edge,) = arrows(plan(b.build(), depth=1))["module:m:1->cat_1_4"]
    assert (edge.position, edge.tensors) == ((0, "0-2"), 3)


def test_arrows_come_by_target_in_trace_order(plan: MakePlan) -> None:
    made = plan(builders.residual(2))
    targets = [edge.target for edge in made.edges]
    assert targets == sorted(targets)


def test_the_output_of_a_box_needs_no_index(plan: MakePlan) -> None:
    b = Builder()
    with b.module("m") as call:
        both = b.op("max", [b.op("sin", [b.input()])], outs=[(2,), (2,)])
        call.returns = [Ref(both.node, 0), Ref(both.node, 1)]
    b.output(b.op("add", call.returns))
    (edge,) = arrows(plan(b.build(), depth=1))["module:m:1->add_1_3"]
    assert (edge.output, edge.tensors) == (None, 2)


@pytest.mark.parametrize("dashed_first", [True, False])
def test_a_merged_arrow_is_dashed_only_if_all_its_tensors_are(plan: Callable[..., Plan], dashed_first: bool) -> None:
    b = Builder()
    x = b.input()
    with b.module("source") as call:
        made, fresh = b.op("neg", [x]), b.op("ones", [])
        call.returns = [made, fresh]
    order = [fresh, made] if dashed_first else [made, fresh]
    with b.module("reader") as call:
        out = b.op("sin", [b.op("sub", order)])
        call.returns = [out]
    b.output(out)
    figure = plan(b.build(), depth=1)
    between = [e for e in figure.edges if {figure.nodes[e.source].kind, figure.nodes[e.target].kind} == {"module"}]
    assert [(e.tensors, e.dashed) for e in between] == [(2, False)]
