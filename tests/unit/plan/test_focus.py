"""The inside of one module, and the stubs of what it touches outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.base.errors import InvalidArgumentError, UnknownNameError
from torchlens.plan.focus import OUTSIDE, call_levels, find_focus
from torchlens.plan.graph import FROM, MODULE, STUBS, TO, Plan, PlanNode, tally_module
from torchlens.records.trace_data import TraceData

MakePlan = Callable[..., Plan]


def names(plan: Plan) -> list[str]:
    return [node.name for node in plan.nodes]


def arrows(plan: Plan) -> list[str]:
    return [f"{plan.nodes[e.source].name} -> {plan.nodes[e.target].name}" for e in plan.edges]


def node(plan: Plan, name: str) -> PlanNode:
    return next(node for node in plan.nodes if node.name == name)


def frames(data: TraceData, plan: Plan) -> list[str]:
    return [data.call_key(box.calls[0]) for box in plan.boxes]


# -- which module
@pytest.mark.parametrize("name", ["", "self", "@self", "self:1"])
def test_the_root_is_the_whole_drawing(plan: MakePlan, name: str) -> None:
    data = builders.residual(2)
    assert plan(data, module=name) == plan(data)


@pytest.mark.parametrize("name", ["blocks.1", "@blocks.1", "blocks.1:1"])
def test_a_module_is_named_by_its_address_or_a_call(name: str) -> None:
    data = builders.residual(2)
    focus = find_focus(data, name)
    assert focus is not None
    assert data.modules[focus.module].address == "blocks.1"
    assert [data.call_key(call) for call in focus.calls] == ["blocks.1:1"]
    assert [data.nodes.label[i] for i in focus.members] == [
        "layernorm_2_7", "linear_4_8", "relu_2_9", "linear_5_10", "add_2_11",
    ]  # fmt: skip


def test_an_alias_and_a_module_called_self_are_found() -> None:
    data = builders.residual(1)
    data.modules[data.module_of["blocks.0"]].aliases = ("twin",)
    del data.module_of
    assert find_focus(data, "twin") == find_focus(data, "blocks.0")
    b = Builder()
    b.output(b.linear("self", b.input(), 8))
    focus = find_focus(b.build(), "self")
    assert focus is not None
    assert focus.module == 1


@pytest.mark.parametrize(
    ("name", "words"), [("blocks.9", "'blocks.1'"), ("block.0", "'blocks.0'"), ("zzz:3", "trace.modules lists")]
)
def test_an_unknown_address_is_refused_with_the_nearest_names(name: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match="module_not_found") as caught:
        find_focus(builders.residual(2), name)
    assert words in str(caught.value)


def test_a_module_or_call_that_never_ran_is_refused() -> None:
    b = Builder()
    x = b.input()
    for k in range(2):
        x = b.linear(f"stack.{k}", x, 8)
    b.output(b.linear("stack.0", x, 8))
    data = b.build()
    unused = type(data.modules[0])(3, "spare", (), "Linear", 0, (), False, (), (), ())
    holder = type(data.modules[0])(4, "stack", (), "ModuleList", 0, (1, 2), False, (), (), ())
    data.modules += [unused, holder]
    with pytest.raises(InvalidArgumentError, match="module_not_called") as caught:
        find_focus(data, "spare")
    assert "'spare' was never called" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="module_not_called") as caught:
        find_focus(data, "stack")
    assert "focus on 'stack.0' or 'stack.1', which ran" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="module_not_called") as caught:
        find_focus(data, "stack.0:3")
    assert "was called 2 times: there is no call 3" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="module_not_called") as caught:
        find_focus(data, "stack.1:0")
    assert "was called once" in str(caught.value)


def test_levels_are_counted_from_the_module() -> None:
    data = builders.tree(3)
    (inner,) = [c for c, call in enumerate(data.calls) if data.call_key(call.index) == "top.inner:1"]
    levels = {data.call_key(c): level for c, level in enumerate(call_levels(data, (inner,)))}
    assert levels["self:1"] == levels["top:1"] == levels["top.b:1"] == OUTSIDE
    assert levels["top.inner:1"] == 0
    assert levels["top.inner.a:1"] == levels["top.inner.inner:1"] == 1
    assert levels["top.inner.inner.b:1"] == 2


# -- what is drawn
def test_only_the_module_and_one_stub_per_op_that_it_touches(plan: MakePlan) -> None:
    data = builders.residual(3)
    made = plan(data, module="blocks.1")
    assert names(made) == [
        "stub:from:add_1_6", "layernorm_2_7", "linear_4_8", "relu_2_9", "linear_5_10", "add_2_11",
        "stub:to:layernorm_3_12", "stub:to:add_3_16",
    ]  # fmt: skip
    assert arrows(made) == [
        "stub:from:add_1_6 -> layernorm_2_7", "layernorm_2_7 -> linear_4_8", "linear_4_8 -> relu_2_9",
        "relu_2_9 -> linear_5_10", "stub:from:add_1_6 -> add_2_11", "linear_5_10 -> add_2_11",
        "add_2_11 -> stub:to:layernorm_3_12", "add_2_11 -> stub:to:add_3_16",
    ]  # fmt: skip
    assert frames(data, made) == ["blocks.1.mlp:1"]


def test_a_stub_names_one_op_and_its_innermost_module_and_stands_for_nothing(plan: MakePlan) -> None:
    data = builders.residual(2)
    made = plan(data, module="blocks.0.mlp")
    source, reader = node(made, "stub:from:layernorm_1_2"), node(made, "stub:to:add_1_6")
    assert (source.kind, source.address) == (FROM, "blocks.0.norm")
    assert (reader.kind, reader.address) == (TO, "blocks.0")
    for stub in (source, reader):
        assert stub.members == ()
        assert stub.box is None
        assert data.nodes.label[stub.first] == stub.name.rpartition(":")[2]
    assert node(plan(builders.loop(1), module="rec"), "stub:from:zeroslike_1_1").address is None


def test_inputs_and_outputs_that_the_module_touches_keep_their_nodes(plan: MakePlan) -> None:
    b = Builder()
    x, y, z = b.input("x"), b.input("y"), b.input("z")
    with b.module("m") as call:
        h = b.op("add", [x, y])
        call.returns = [b.op("relu", [h])]
    b.output(call.returns[0], "0")
    b.output(b.op("mul", [z, x]), "1")
    b.output(h, "2")
    made = plan(b.build(), module="m")
    assert names(made) == ["input_1", "input_2", "add_1_1", "relu_1_2", "output_1", "output_3"]
    assert arrows(made) == [
        "input_1 -> add_1_1", "input_2 -> add_1_1", "add_1_1 -> relu_1_2", "relu_1_2 -> output_1",
        "add_1_1 -> output_3",
    ]  # fmt: skip


def test_what_passes_by_the_module_is_not_drawn(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    h = b.op("relu", [x])
    with b.module("m") as call:
        call.returns = [b.op("mul", [x, h])]
    b.output(b.op("add", [call.returns[0], x]))
    b.output(h, "h")
    made = plan(b.build(), module="m")
    assert names(made) == ["input_1", "stub:from:relu_1_1", "mul_1_2", "stub:to:add_1_3"]
    assert arrows(made) == ["input_1 -> mul_1_2", "stub:from:relu_1_1 -> mul_1_2", "mul_1_2 -> stub:to:add_1_3"]


def test_an_op_between_two_calls_of_the_module_is_a_reader_and_a_source(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for k in range(2):
        with b.module("m") as call:
            h = b.op("neg", [b.op("exp", [h], layer="exp")], layer="neg")
            call.returns = [h]
        h = b.op("relu", [h]) if k == 0 else h
    b.output(h)
    data = b.build()
    made = plan(data, module="m")
    assert names(made) == [
        "input_1", "exp_1_1:1", "neg_1_2:1", "stub:from:relu_1_3", "stub:to:relu_1_3", "exp_1_1:2", "neg_1_2:2",
        "output_1",
    ]  # fmt: skip
    assert "neg_1_2:1 -> stub:to:relu_1_3" in arrows(made)
    assert "stub:from:relu_1_3 -> exp_1_1:2" in arrows(made)
    assert frames(data, made) == ["m:1", "m:2"]
    assert plan(data, module="m", rolled=True).boxes == ()


def test_one_call_alone_has_the_other_calls_outside(plan: MakePlan) -> None:
    data = builders.loop(3)
    made = plan(data, module="rec:2")
    assert names(made) == ["stub:from:tanh_1_5:1", "linear_2_3:2", "stub:to:add_1_4:2"]
    assert made.boxes == ()


def test_buffers_and_constants_from_outside_keep_their_nodes_without_their_past(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    b.write("memory", b.op("tanh", [x]), (2, 8))
    offset = b.constant((8,), "offset")
    shifted = b.op("sub", [x, offset])
    with b.module("m") as call:
        h = b.op("mul", [b.read("memory", (2, 8)), offset])
        call.returns = [b.op("add", [h, shifted])]
    b.write("memory", call.returns[0], (2, 8))
    b.output(b.op("neg", [b.read("memory", (2, 8))]))
    data = b.build()
    made = plan(data, module="m")
    assert names(made) == [
        "buffer:memory:2", "constant_1", "stub:from:sub_1_2", "mul_1_3", "add_1_4", "buffer:memory:3",
    ]  # fmt: skip
    assert arrows(made) == [
        "buffer:memory:2 -> mul_1_3", "constant_1 -> mul_1_3", "mul_1_3 -> add_1_4",
        "stub:from:sub_1_2 -> add_1_4", "add_1_4 -> buffer:memory:3",
    ]  # fmt: skip
    unseen = plan(data, module="m", show_buffers="never")
    assert names(unseen) == [
        "stub:from:tanh_1_1", "constant_1", "stub:from:sub_1_2", "mul_1_3", "add_1_4", "stub:to:neg_1_5",
    ]  # fmt: skip


def test_depth_is_counted_from_the_module(plan: MakePlan) -> None:
    data = builders.residual(2)
    made = plan(data, module="blocks.0", depth=1)
    assert [n.name for n in made.nodes if n.kind == MODULE] == ["module:blocks.0.mlp:1"]
    assert node(made, "add_1_6").rectangle
    deep = plan(builders.tree(4), module="top.inner", depth=1)
    assert [n.name for n in deep.nodes if n.kind == MODULE] == ["module:top.inner.inner:1"]


def test_a_module_that_ran_as_one_op(plan: MakePlan) -> None:
    made = plan(builders.residual(1), module="head")
    assert names(made) == ["stub:from:add_1_6", "linear_4_7", "output_1"]
    assert node(made, "linear_4_7").address == "head"
    assert made.boxes == ()


def test_calls_within_another_modules_second_call(plan: MakePlan) -> None:
    b = Builder()
    h = b.input()
    for _ in range(2):
        with b.module("outer") as outer:
            with b.module("outer.m") as call:
                call.returns = [b.op("neg", [b.op("exp", [h], layer="exp")], layer="neg")]
            h = b.op("relu", call.returns, layer="relu")
            outer.returns = [h]
    b.output(h)
    data = b.build()
    assert names(plan(data, module="outer.m:2")) == [
        "stub:from:relu_1_3:1", "exp_1_1:2", "neg_1_2:2", "stub:to:relu_1_3:2",
    ]  # fmt: skip
    second = plan(data, module="outer:2")
    assert names(second) == ["stub:from:relu_1_3:1", "exp_1_1:2", "neg_1_2:2", "relu_1_3:2", "output_1"]
    assert frames(data, second) == ["outer.m:2"]


def test_a_module_that_calls_itself_is_shown_from_its_outermost_call(plan: MakePlan) -> None:
    b = Builder()
    with b.module("m") as outer:
        h = b.op("neg", [b.op("abs", [b.input()])])
        with b.module("m") as inner:
            h = b.op("exp", [b.op("sin", [h])])
            inner.returns = [h]
        outer.returns = [h]
    b.output(h)
    data = b.build()
    assert frames(data, plan(data, module="m")) == ["m:2"]
    assert names(plan(data, module="m", depth=1))[1:] == ["abs_1_1", "neg_1_2", "module:m:2", "output_1"]
    assert names(plan(data, module="m:2"))[0] == "stub:from:neg_1_2"


# -- rolled
def test_rolled_a_stub_is_a_layer_and_its_arrows_say_the_passes(plan: MakePlan) -> None:
    made = plan(builders.loop(3), module="rec", rolled=True)
    assert names(made) == ["stub:from:zeroslike_1_1", "linear_2_3", "stub:to:add_1_4", "stub:from:tanh_1_5"]
    assert node(made, "stub:from:tanh_1_5").passes == 3
    parts = {a: (e.in_passes, e.out_passes, e.back) for a, e in zip(arrows(made), made.edges, strict=True)}
    assert parts == {
        "stub:from:zeroslike_1_1 -> linear_2_3": ((1,), (), False),
        "stub:from:tanh_1_5 -> linear_2_3": ((2, 3), (1, 2), False),
        "linear_2_3 -> stub:to:add_1_4": ((), (), False),
    }


def test_rolled_a_single_pass_is_named_as_that_pass(plan: MakePlan) -> None:
    made = plan(builders.loop(3), module="rec:2", rolled=True)
    assert set(names(made)) == {"stub:from:tanh_1_5:1", "linear_2_3", "stub:to:add_1_4:2"}
    assert all(not edge.in_passes and not edge.out_passes for edge in made.edges)


# -- what it counts
def test_the_counts_are_the_modules_own_whatever_is_drawn() -> None:
    data = builders.demo()
    focus = find_focus(data, "features.1")
    assert focus is not None
    counts = tally_module(data, focus)
    assert (counts.ops, counts.buffers, counts.params) == (4, 6, 16 * 8 * 9 + 16 + 32)


def test_parameters_are_counted_by_any_of_the_names() -> None:
    data = builders.residual(1)
    record = data.params[data.nodes.params[data.index_of["linear_4_7"]][0]]
    record.aliases = ("blocks.0.tied",)
    focus = find_focus(data, "blocks.0")
    assert focus is not None
    assert tally_module(data, focus).params == 16 * 8 + 16 + 8 * 16 + 8 + record.numel


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("mode", ["never", "meaningful", "always"])
@pytest.mark.parametrize("depth", [1, 2, 1000])
def test_no_stub_is_a_member_and_every_op_of_the_module_is_one_of_something(
    plan: MakePlan, rolled: bool, mode: str, depth: int
) -> None:
    for make in builders.SAMPLES.values():
        data = make()
        for module in data.modules[1:]:
            focus = find_focus(data, module.address)
            made = plan(data, module=module.address, rolled=rolled, show_buffers=mode, depth=depth)
            assert made.focus == focus
            assert focus is not None
            members = [i for n in made.nodes for i in n.members if data.nodes.kind[i] == "op"]
            wanted = {i for i in focus.members if data.nodes.kind[i] == "op" and not data.orphan[i]}
            assert len(members) == len(set(members))
            assert set(members) <= wanted
            assert len(wanted) - len(members) <= 2  # counters of norms
            drawn = {e for edge in made.edges for e in (edge.source, edge.target)}
            assert all(k in drawn for k, n in enumerate(made.nodes) if n.kind in STUBS)
