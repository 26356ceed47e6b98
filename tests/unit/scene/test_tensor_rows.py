"""The rows about what a node puts out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.records.trace_data import TraceData

Rows = Callable[..., list[str]]


def measured(data: TraceData, tensors: int | None = 2, nbytes: int | None = 1536) -> TraceData:
    """The trace as if every op had kept this much for the backward pass."""
    ops = [kind == "op" for kind in data.nodes.kind]
    data.nodes.num_autograd_tensors = [tensors if op else None for op in ops]
    data.nodes.autograd_memory = [nbytes if op else None for op in ops]
    data.saved_for_backward = sum(ops) * (nbytes or 0)
    return data


# -- saved for backward
def test_what_an_op_kept_stands_above_its_arguments(rows: Rows) -> None:
    lines = rows(measured(builders.demo()), "conv2d_1_1", show_saved_for_backward=True)
    assert lines[2:4] == ["saved for backward: 2 tensors, 1.5 KB", "kernel_size=(3, 3), padding=(1, 1)"]
    assert not any("saved" in line for line in rows(measured(builders.demo()), "conv2d_1_1"))


def test_one_tensor_is_no_plural(rows: Rows) -> None:
    lines = rows(measured(builders.chain(), 1, 128), "relu_1_2", show_saved_for_backward=True)
    assert "saved for backward: 1 tensor, 128 B" in lines


@pytest.mark.parametrize("tensors", [0, None])
def test_nothing_kept_and_nothing_known_are_no_row(rows: Rows, tensors: int | None) -> None:
    data = measured(builders.chain())
    counts = list(data.nodes.num_autograd_tensors)
    counts[data.index_of["relu_1_2"]] = tensors
    data.nodes.num_autograd_tensors = counts
    assert not any("saved" in line for line in rows(data, "relu_1_2", show_saved_for_backward=True))
    assert any("saved" in line for line in rows(data, "linear_1_1", show_saved_for_backward=True))


def test_inputs_and_outputs_keep_nothing(rows: Rows) -> None:
    data = measured(builders.chain())
    assert not any("saved" in line for line in rows(data, "input_1", show_saved_for_backward=True))
    assert not any("saved" in line for line in rows(data, "output_1", show_saved_for_backward=True))


def test_the_sum_over_passes_says_so_and_needs_them_all(rows: Rows) -> None:
    data = measured(builders.loop(3))
    lines = rows(data, "tanh_1_5", rolled=True, show_saved_for_backward=True)
    assert "saved for backward: 6 tensors, 4.5 KB (total across passes)" in lines
    sizes = list(data.nodes.autograd_memory)
    sizes[data.index_of["tanh_1_5:2"]] = None
    data.nodes.autograd_memory = sizes
    assert not any("saved" in line for line in rows(data, "tanh_1_5", rolled=True, show_saved_for_backward=True))


def test_a_box_says_that_it_adds_up_ops(rows: Rows) -> None:
    lines = rows(measured(builders.demo()), "module:features:1", depth=1, show_saved_for_backward=True)
    text = " ".join(lines)
    assert "saved for backward: 16 tensors, 12.0 KB (sum over 8 ops)" in text


# -- dtype and device
def test_the_dtype_row_names_what_the_op_returns(rows: Rows) -> None:
    b = Builder()
    x = b.input()
    b.output(b.op("to", [x], dtype="float16"))
    data = b.build()
    assert rows(data, "to_1_1", node_label_fields=["dtype", "device"]) == ["float16", "cpu"]


def test_dtypes_of_several_outputs_stand_on_one_line(rows: Rows) -> None:
    b = Builder()
    best = b.op("max", [b.input()], outs=[(2,), (2,)])
    outs = b.nodes[best.node].outs
    b.nodes[best.node] = replace(b.nodes[best.node], outs=(outs[0], replace(outs[1], dtype="int64")))
    b.output(Ref(best.node, 0))
    assert rows(b.build(), "max_1_1", node_label_fields=["name", "dtype"]) == ["max_1_1", "float32, int64"]


def test_passes_of_different_dtypes_have_no_dtype_in_common(rows: Rows) -> None:
    b = Builder()
    h = b.op("relu", [b.input()], layer="relu")
    b.output(b.op("relu", [h], layer="relu", dtype="float16"))
    data = b.build()
    assert rows(data, "relu_1_1", rolled=True, node_label_fields=["name", "dtype"]) == ["relu_1_1 (x2)"]
    assert rows(data, "relu_1_1:2", node_label_fields=["name", "dtype"]) == ["relu_1_1:2", "float16"]


def test_a_box_has_the_dtype_of_what_leaves_it(rows: Rows) -> None:
    assert rows(builders.demo(), "module:features:1", depth=1, node_label_fields=["dtype"]) == ["float32"]


def test_exceptions_are_what_most_ops_are_not(rows: Rows) -> None:
    b = Builder()
    h = b.input("ids", dtype="int64")
    for dtype in ("float32", "float32", "int64"):
        h = b.op("thing", [h], dtype=dtype)
    b.output(h)
    data = b.build()
    fields = ["name", "exceptions"]
    assert rows(data, "thing_1_1", node_label_fields=fields) == ["thing_1_1"]
    assert rows(data, "thing_3_3", node_label_fields=fields) == ["thing_3_3", "dtype int64"]
    assert rows(data, "input_1", node_label_fields=fields) == ["input_1", "dtype int64"]


def test_passes_that_differ_are_an_exception_too(rows: Rows) -> None:
    b = Builder()
    h = b.op("relu", [b.input()], layer="relu")
    b.output(b.op("tanh", [b.op("relu", [h], layer="relu", dtype="float16")]))
    fields = ["name", "exceptions"]
    assert rows(b.build(), "relu_1_1", rolled=True, node_label_fields=fields)[1:] == ["dtype float32 or float16"]


def test_the_row_of_exceptions_comes_with_its_option(rows: Rows) -> None:
    b = Builder()
    for dtype in ("float32", "float32", "int64"):
        b.output(b.op("thing", [b.input()], dtype=dtype))
    data = b.build()
    assert rows(data, "thing_3_3", show_exceptions=True)[-1] == "dtype int64"
    assert rows(data, "thing_1_1", show_exceptions=True) == rows(data, "thing_1_1")


# -- values
def test_complex_values_keep_both_parts(rows: Rows) -> None:
    b = Builder()
    b.output(b.op("sum", [b.input()], (), value=complex(1.23456, -2)))
    assert "= 1.23-2j" in rows(b.build(), "sum_1_1")
