"""The words on a node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.base.errors import UnknownNameError
from torchlens.records.ops import CallSite
from torchlens.scene.model import Scene
from torchlens.scene.rows import DEFAULT_ROWS, PROFILING_ROWS, ROWS, call_title
from torchlens.settings.options import options

Rows = Callable[..., list[str]]


def test_the_rows_of_a_module_that_ran_as_one_op(rows: Rows) -> None:
    assert rows(builders.demo(), "conv2d_1_1") == [
        "conv2d_1_1", "(1, 8, 8, 8), 2.0 KB", "kernel_size=(3, 3), padding=(1, 1)",
        "params: weight (8, 3, 3, 3) · bias (8,)", "@features.0.conv",
    ]  # fmt: skip


def test_a_plain_op_has_no_address(rows: Rows) -> None:
    assert rows(builders.demo(), "mean_1_11") == ["mean_1_11", "(1, 16), 64 B", "dim=(2, 3)"]


def test_inputs_outputs_constants_and_buffers(rows: Rows) -> None:
    data = builders.state()
    assert rows(data, "input_1") == ["input_1", "(2, 8), 64 B", "@input.x"]
    assert rows(data, "output_1") == ["output_1", "(2, 8), 64 B", "@output"]
    assert rows(data, "constant_1") == ["constant_1", "(8,), 32 B", "@offset"]
    assert rows(data, "buffer:cell.memory:2") == ["buffer_3", "(2, 8), 64 B", "@cell.memory:2"]


def test_frozen_parameters_stand_in_square_brackets(rows: Rows) -> None:
    data = builders.state()
    assert "params: weight [8, 8] · bias [8]" in rows(data, "linear_1_1")
    assert "params: weight (8, 8) · bias [8]" in rows(data, "linear_2_3")


def test_parameters_of_one_name_are_told_apart(rows: Rows) -> None:
    b = Builder()
    used = (b.param("a.weight", (8,)), b.param("b.weight", ()))
    b.output(b.op("add", [b.input()], params=used))
    assert "params: a.weight (8,) · b.weight ()" in rows(b.build(), "add_1_1")


def test_an_element_of_a_parameter_list_has_the_name_of_its_list(rows: Rows) -> None:
    b = Builder()
    b.output(b.op("mul", [b.input()], params=(b.param("block.scales.0", (8,)),)))
    assert "params: scales.0 (8,)" in rows(b.build(), "mul_1_1")


def test_a_scalar_shows_its_value_but_no_bool(rows: Rows) -> None:
    assert rows(builders.multi_output(), "mean_1_3") == ["mean_1_3", "scalar, 4 B", "= -0.492"]
    b = Builder()
    b.output(b.op("gt", [b.input()], (), dtype="bool", value=True))
    assert rows(b.build(), "gt_1_1") == ["gt_1_1", "scalar, 1 B", "@self"]


def test_several_outputs_have_a_line_each_up_to_three(rows: Rows) -> None:
    assert rows(builders.multi_output(), "max_1_2")[1:3] == ["[0] (2, 16), 128 B", "[1] (2, 16), 128 B"]
    b = Builder()
    parts = b.op("split", [b.input()], outs=[(2, 2)] * 5)
    b.output(Ref(parts.node, 4))
    assert rows(b.build(), "split_1_1")[3:5] == ["[2] (2, 2), 16 B", "+2 more"]


def test_a_tensor_without_a_shape(rows: Rows) -> None:
    assert rows(builders.awkward(), "stack_1_1") == ["stack_1_1", "irregular"]


# -- arguments
def test_arguments_that_the_shapes_say_are_left_out(rows: Rows) -> None:
    data = builders.chain()
    assert not any("features" in line for line in rows(data, "linear_1_1"))
    assert "in_features=8, out_features=16" in rows(data, "linear_1_1", show_redundant_args=True)


def test_a_mismatch_keeps_the_argument(rows: Rows) -> None:
    b = Builder()
    b.output(b.op("linear", [b.input("x", (2, 8))], (2, 4), config=(("in_features", 9), ("out_features", 4))))
    assert "in_features=9" in rows(b.build(), "linear_1_1")


def test_state_and_alias_writes_are_no_second_source(rows: Rows) -> None:
    b = Builder()
    x = b.input()
    other = b.op("mean", [x], ())
    args = {0: x, 1: b.read("scale", (3,))}
    b.output(b.op("linear", args, (2, 4), late=[other], config=(("in_features", 8), ("out_features", 4))))
    assert not any("features" in line for line in rows(b.build(), "linear_1_2"))


def test_two_tensors_that_flow_in_keep_the_argument_even_if_both_have_its_size(rows: Rows) -> None:
    b = Builder()
    x = b.input("x", (8, 8))
    b.output(b.op("linear", [x, b.op("tanh", [x], (8, 8))], (8, 8), config=(("in_features", 8), ("out_features", 8))))
    assert "in_features=8" in rows(b.build(), "linear_1_2")


def test_passes_of_different_shapes_keep_the_argument(rows: Rows) -> None:
    b = Builder()
    for size in (4, 2):
        x = b.input(f"x{size}", (size, 8))
        b.output(b.op("linear", [x], (size, 8), layer="fc", config=(("in_features", 8),)))
    data = b.build()
    assert "in_features=8" in rows(data, "linear_1_1", rolled=True)
    assert not any("in_features" in line for line in rows(data, "linear_1_1:1"))


def test_an_argument_that_changes_over_the_passes_is_not_shown_as_if_it_did_not(rows: Rows) -> None:
    b = Builder()
    h = b.input()
    for k in range(2):
        h = b.op("softmax", [h], layer="softmax", config=(("dim", k), ("dtype", "float16")))
    b.output(h)
    assert "dim=varies, dtype=float16" in rows(b.build(), "softmax_1_1", rolled=True)


def test_long_rows_wrap_between_arguments(rows: Rows) -> None:
    b = Builder()
    config = tuple((f"argument_{k}", k) for k in range(6))
    b.output(b.op("thing", [b.input()], config=config))
    lines = rows(b.build(), "thing_1_1")[2:-1]
    assert len(lines) == 2
    assert all(len(line) <= 60 for line in lines)


# -- rolled
def test_a_rolled_layer_says_how_often_it_ran(rows: Rows) -> None:
    data = builders.loop(3)
    assert rows(data, "tanh_1_5", rolled=True)[0] == "tanh_1_5 (x3)"
    assert rows(data, "tanh_1_5:2")[0] == "tanh_1_5:2"
    assert rows(data, "zeroslike_1_1", rolled=True)[0] == "zeroslike_1_1"
    assert rows(data, "linear_1_2", rolled=True)[-1] == "@inp:1,2,3"


@pytest.mark.parametrize(
    ("shapes", "summary"),
    [
        ([(4, 8), (3, 8), (2, 8)], "4->2"),
        ([(4, 8), (2, 8), (3, 8)], "2-4"),
        ([(2, 4), (3, 2)], "(2, 4)->(3, 2)"),
        ([(2, 4), (2, 4, 1)], "(2, 4)->(2, 4, 1)"),
    ],
)
def test_shapes_that_change_over_the_passes(rows: Rows, shapes: list[tuple[int, ...]], summary: str) -> None:
    b = Builder()
    h = b.input()
    for shape in shapes:
        h = b.op("relu", [h], shape, layer="relu")
    b.output(h)
    data = b.build()
    size = sum(data.nbytes[i] or 0 for i in data.op_indexes)
    assert rows(data, "relu_1_1", rolled=True) == [
        f"relu_1_1 (x{len(shapes)})", summary, f"{size} B (total across {len(shapes)} passes)",
    ]  # fmt: skip


def test_scalar_values_of_passes_show_only_if_equal(rows: Rows) -> None:
    b = Builder()
    h = b.input("x", ())
    for value in (1.0, 2.0):
        h = b.op("exp", [h], (), layer="exp", value=value)
        h = b.op("floor", [h], (), layer="floor", value=3)
    b.output(h)
    data = b.build()
    assert not any(line.startswith("=") for line in rows(data, "exp_1_1", rolled=True))
    assert "= 3" in rows(data, "floor_1_2", rolled=True)


# -- boxes
def test_the_rows_of_a_box(rows: Rows) -> None:
    assert rows(builders.demo(), "module:features:1", depth=1) == [
        "@features", "Sequential", "(1, 16, 8, 8), 4.0 KB", "8 ops + 12 buffers", "1.44K params (all trainable)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "summary"),
    [
        ((4, 2), ["shapes (4, 8)->(2, 8)"]),
        ((4, 2, 4, 3), ["shapes (4, 8)->(2, 8)->(3, 8)"]),
        ((1, 2, 3, 4, 5), ["shapes (1, 8)->(2, 8)->(3, 8), +2 more"]),
        ((4, 4), []),
    ],
)
def test_a_box_whose_calls_differ_in_shape_says_so(rows: Rows, lengths: tuple[int, ...], summary: list[str]) -> None:
    b = Builder()
    x = b.input()
    for length in lengths:
        with b.module("cell", "Cell") as call:
            call.returns = [b.op("tanh", [b.op("sin", [x], (length, 8), layer="sin")], (length, 8), layer="tanh")]
        b.output(call.returns[0], str(length))
    found = rows(b.build(), "module:cell:1", depth=1, rolled=True)
    assert found[:2] == [f"@cell (x{len(lengths)})", "Cell"]
    assert [line for line in found if line.startswith("shapes")] == summary
    assert any(line.startswith("(4, 8)") for line in found) == (not summary)


def test_the_first_of_a_folded_run_says_that_shapes_differ_between_the_calls(rows: Rows) -> None:
    b = Builder()
    for name, length in (("x", 4), ("y", 2)):
        h = b.input(name, (length, 8))
        for k in range(3):
            with b.module(f"blocks.{k}", "Block") as call:
                h = b.op("tanh", [b.op("sin", [h], (length, 8), layer=f"sin{k}")], (length, 8), layer=f"tanh{k}")
                call.returns = [h]
        b.output(h, name)
    data = b.build()
    assert "shapes (4, 8)->(2, 8)" in rows(data, "module:blocks.0:1", fold_repeats=True, rolled=True)
    assert rows(data, "fold:blocks.0", fold_repeats=True, rolled=True) == ["... +2 more Block (4 calls)"]


def test_one_drawn_call_of_several_keeps_its_number_when_rolled(rows: Rows) -> None:
    b = Builder()
    h = b.input()
    for func in ("sin", "cos"):
        with b.module("cell") as call:
            h = b.op("tanh", [b.op(func, [h])])
            call.returns = [h]
    b.output(h)
    data = b.build()
    assert call_title(data, (1,)) == "@cell:1"
    assert call_title(data, (2,)) == "@cell:2"
    assert call_title(data, (1, 2)) == "@cell (x2)"
    assert call_title(data, (0,)) == "@self"


def test_a_box_of_several_calls_counts_one_if_they_are_equal(rows: Rows) -> None:
    def calls(sizes: tuple[int, ...]) -> list[str]:
        b = Builder()
        h = b.input()
        for size in sizes:
            with b.module("cell", "Cell") as call:
                for _ in range(size):
                    h = b.op("tanh", [h])
                call.returns = [h]
        b.output(h)
        return rows(b.build(), "module:cell:1", depth=1, rolled=True)

    assert calls((2, 2)) == ["@cell (x2)", "Cell", "(2, 8), 64 B", "2 ops", "0 params"]
    assert calls((2, 3))[3] == "5 ops total"


def test_a_box_with_several_results_names_the_first(rows: Rows) -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        call.returns = [b.op("sin", [x]), b.op("cos", [x]), b.op("tan", [x])]
    for ref in call.returns:
        b.output(ref)
    assert rows(b.build(), "module:m:1", depth=1)[2] == "(2, 8), 64 B, +2 outputs"


def test_mixed_parameters_of_a_box(rows: Rows) -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        call.returns = [b.linear("m.b", b.linear("m.a", x, 8, trainable=False), 8)]
    b.output(call.returns[0])
    assert rows(b.build(), "module:m:1", depth=1)[-1] == "144 params (72 trainable, 72 frozen)"


# -- profile
def test_profile_rows(rows: Rows) -> None:
    data = builders.demo()
    site = data.nodes.site[1]
    assert site is not None
    lines = rows(data, "conv2d_1_1", node_style="profiling")
    assert lines[-4:] == ["t=30.0 us", "out=2.0 KB", f"call=net.py:{site.line}", "fn=TinyCnn.forward"]
    assert rows(data, "input_1", node_style="profiling")[-1] == "out=768 B"
    assert rows(data, "module:features:1", node_style="profiling", depth=1)[-2:] == ["t=220 us", "out=18.0 KB"]


def test_profile_rows_of_passes_are_marked_totals(rows: Rows) -> None:
    data = builders.loop(3)
    lines = rows(data, "linear_1_2", node_style="profiling", rolled=True)
    assert lines[-3] == "out=192 B (total across 3 passes)"
    assert lines[-2] == "call=varies across passes"
    data.nodes.site = [CallSite("C:\\net.py", 7, "f")] * len(data.nodes)
    assert rows(data, "linear_1_2", node_style="profiling", rolled=True)[-2:] == ["call=net.py:7", "fn=f"]


def test_a_value_that_a_pass_lacks_is_no_row(rows: Rows) -> None:
    data = builders.loop(3)
    times = list(data.nodes.time_s)
    times[data.index_of["tanh_1_5:2"]] = None
    data.nodes.time_s = times
    assert not any(line.startswith("t=") for line in rows(data, "tanh_1_5", node_style="profiling", rolled=True))


# -- the list
def test_the_first_row_is_bold(scene: Callable[..., Scene]) -> None:
    for node in scene(builders.demo(), view="speed").nodes:
        assert [row.bold for row in node.rows] == [True] + [False] * (len(node.rows) - 1)


def test_a_very_long_line_is_cut(rows: Rows) -> None:
    b = Builder()
    with b.module("m" * 200) as call:
        call.returns = [b.op("relu", [b.input()])]
    b.output(call.returns[0])
    line = rows(b.build(), "relu_1_1")[-1]
    assert len(line) == 160
    assert line.endswith("m…")


def test_a_long_address_is_broken_between_its_parts(rows: Rows) -> None:
    b = Builder()
    address = "transformer.encoder.layers.11.attention.self_attention.query.projection"
    with b.module(address) as call:
        call.returns = [b.op("relu", [b.input()])]
    b.output(call.returns[0])
    lines = rows(b.build(), "relu_1_1")[2:]
    assert len(lines) == 2
    assert "".join(lines) == f"@{address}"


def test_line_breaks_in_values_are_lines_and_are_counted(rows: Rows) -> None:
    b = Builder()
    b.output(b.op("thing", [b.input()], config=(("pattern", "\n".join("abcdefghijkl")),)))
    lines = rows(b.build(), "thing_1_1")
    assert lines[2:4] == ["pattern=a", "b"]
    assert lines[-2] == "… +5 lines"


def test_every_token_is_registered_and_an_unknown_one_is_refused() -> None:
    assert set(DEFAULT_ROWS + PROFILING_ROWS) <= set(ROWS.names())
    assert set(options()["node_label_fields"].choices) <= set(ROWS.names())
    with pytest.raises(UnknownNameError):
        ROWS.get("colour")


def test_names_of_inputs_do_not_depend_on_rolled(rows: Rows) -> None:
    data = builders.awkward()
    assert rows(data, "input_2", rolled=True) == rows(data, "input_2")


# -- rows asked for by name
def test_the_rows_asked_for_stand_in_their_order_and_nothing_else_does(rows: Rows) -> None:
    fields = ["shape", "name", "dtype", "params"]
    assert rows(builders.chain(), "linear_1_1", node_label_fields=fields) == [
        "(2, 16), 128 B", "linear_1_1", "float32", "params: weight (16, 8) · bias (16,)",
    ]  # fmt: skip
    assert rows(builders.chain(), "relu_1_2", node_label_fields=["name", "params"]) == ["relu_1_2"]


def test_other_words_for_the_same_rows(rows: Rows) -> None:
    data = builders.chain()
    assert rows(data, "relu_1_2", node_label_fields=["label"]) == rows(data, "relu_1_2", node_label_fields=["name"])
    assert rows(data, "relu_1_2", node_label_fields=["memory"]) == ["out=128 B"]


def test_without_a_value_for_any_field_a_node_has_its_usual_rows(rows: Rows) -> None:
    data = builders.chain()
    assert rows(data, "input_1", node_label_fields=["params"]) == rows(data, "input_1")
    assert rows(data, "input_1", node_label_fields=[]) == rows(data, "input_1")


def test_no_other_row_is_put_among_those_asked_for(rows: Rows) -> None:
    given = {"node_style": "profiling", "node_label_fields": ["name", "type"]}
    assert rows(builders.chain(), "relu_1_2", **given) == ["relu_1_2", "relu"]


def test_the_module_row_names_the_innermost_module(rows: Rows) -> None:
    data = builders.demo()
    assert rows(data, "conv2d_1_1", node_label_fields=["module"]) == ["@features.0.conv"]
    assert rows(data, "mean_1_11", node_label_fields=["module"]) == ["@self"]
    assert rows(data, "module:features:1", depth=1, node_label_fields=["module"]) == ["@self"]
    loop = builders.loop(3)
    assert rows(loop, "linear_1_2:2", node_label_fields=["module"]) == ["@inp:2"]
    assert rows(loop, "linear_1_2", rolled=True, node_label_fields=["module"]) == ["@inp"]


def test_the_pass_row(rows: Rows) -> None:
    loop = builders.loop(3)
    assert rows(loop, "tanh_1_5:2", node_label_fields=["pass"]) == ["pass 2 of 3"]
    assert rows(loop, "tanh_1_5", rolled=True, node_label_fields=["pass"]) == ["3 passes"]
    assert rows(builders.demo(), "module:features:1", depth=1, node_label_fields=["type", "pass"]) == [
        "Sequential", "call 1 of 1",
    ]  # fmt: skip
    assert rows(loop, "input_1", node_label_fields=["name", "pass"]) == ["input_1"]


def test_flops_of_several_passes_are_a_marked_total(rows: Rows) -> None:
    loop = builders.loop(3)
    assert rows(loop, "tanh_1_5:2", node_label_fields=["flops"]) == ["32 FLOPs"]
    assert rows(loop, "tanh_1_5", rolled=True, node_label_fields=["flops"]) == ["96 FLOPs (total across 3 passes)"]


# -- room
def test_a_row_of_very_many_lines_is_cut_and_says_so(rows: Rows) -> None:
    b = Builder()
    used = [b.param(f"weight_of_the_layer_with_number_{k}", (8, 8)) for k in range(40)]
    b.output(b.op("lstm", [b.input()], params=used))
    lines = rows(b.build(), "lstm_1_1")[2:]
    assert len([line for line in lines if "weight" in line]) == 7
    assert lines[7] == "… +33 lines"


def test_more_than_twelve_rows_are_counted(monkeypatch: pytest.MonkeyPatch, scene: Callable[..., Scene]) -> None:
    monkeypatch.setattr("torchlens.scene.rows.ROW_LIMIT", 4)
    node = next(node for node in scene(builders.demo()).nodes if node.name == "conv2d_1_1")
    assert [row.token for row in node.rows] == ["name", "shape", "args", "more"]
    assert node.rows[-1].lines == ("… +2 rows",)
    fields = ["name", "shape", "args", "params", "address", "type"]
    node = next(n for n in scene(builders.demo(), node_label_fields=fields).nodes if n.name == "conv2d_1_1")
    assert [row.token for row in node.rows] == fields


def test_a_stub_says_which_op_it_is_and_where(rows: Rows) -> None:
    data = builders.residual(3)
    assert rows(data, "stub:from:add_1_6", module="blocks.1") == ["from add_1_6", "@blocks.0"]
    assert rows(data, "stub:to:layernorm_3_12", module="blocks.1") == ["to layernorm_3_12", "@blocks.2.norm"]
    assert rows(builders.loop(1), "stub:from:zeroslike_1_1", module="rec") == ["from zeroslike_1_1"]
    for other in ({"node_style": "profiling"}, {"node_label_fields": ["shape"]}, {"show_redundant_args": True}):
        assert rows(data, "stub:from:add_1_6", module="blocks.1", **other) == ["from add_1_6", "@blocks.0"]


def test_rolled_a_stub_counts_the_passes_of_its_layer_or_names_the_one(rows: Rows) -> None:
    data = builders.loop(3)
    assert rows(data, "stub:from:tanh_1_5", module="rec", rolled=True) == ["from tanh_1_5 (x3)"]
    assert rows(data, "stub:from:tanh_1_5:1", module="rec:2", rolled=True) == ["from tanh_1_5:1"]


def test_rolled_a_single_pass_of_several_keeps_its_number(rows: Rows) -> None:
    assert rows(builders.loop(3), "linear_2_3", module="rec:2", rolled=True)[0] == "linear_2_3:2"
    assert rows(builders.loop(3), "linear_2_3", rolled=True)[0] == "linear_2_3 (x3)"


def test_in_focus_arguments_are_checked_against_the_true_shapes(rows: Rows) -> None:
    b = Builder()
    wide = b.op("cat", [b.input(shape=(2, 5))], (2, 10))
    b.output(b.op("neg", [b.linear("fc", wide, 3)], (2, 3)))
    data = b.build()
    assert rows(data, "linear_1_2", module="fc") == rows(data, "linear_1_2")
    assert "in_features=10, out_features=3" in rows(data, "linear_1_2", module="fc", show_redundant_args=True)
    record = data.index_of["linear_1_2"]
    data.nodes.config[record] = (("in_features", 12), ("out_features", 3))  # type: ignore[index]
    assert "in_features=12" in rows(data, "linear_1_2", module="fc")


def test_rolled_the_versions_of_a_buffer_are_counted(rows: Rows) -> None:
    assert rows(builders.memory(), "buffer:memory:2", rolled=True) == ["buffer_2 (x3)", "(2, 8), 64 B", "@memory:2-4"]


def test_long_and_complex_arguments_stay_short_and_readable(rows: Rows) -> None:
    b = Builder()
    config = (("sizes", tuple(range(50))), ("value", 1 + 2j), ("mode", "m" * 99))
    b.output(b.op("thing", [b.input()], config=config))
    lines = rows(b.build(), "thing_1_1")
    assert "sizes=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,…), value=(1+2j)," in " ".join(lines)
    assert f"mode={'m' * 39}…" in " ".join(lines)
