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
    with b.module("m." * 100 + "x") as call:
        call.returns = [b.op("relu", [b.input()])]
    b.output(call.returns[0])
    assert len(rows(b.build(), "relu_1_1")[-1]) == 160


def test_every_token_is_registered_and_an_unknown_one_is_refused() -> None:
    assert set(DEFAULT_ROWS + PROFILING_ROWS) == set(ROWS.names())
    with pytest.raises(UnknownNameError):
        ROWS.get("colour")


def test_names_of_inputs_do_not_depend_on_rolled(rows: Rows) -> None:
    data = builders.awkward()
    assert rows(data, "input_2", rolled=True) == rows(data, "input_2")
