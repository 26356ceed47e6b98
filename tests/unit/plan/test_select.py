"""Which nodes are on the page."""

from __future__ import annotations

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.plan.select import select
from torchlens.records.flow import BranchTest
from torchlens.records.trace_data import TraceData


def drawn(data: TraceData, mode: str) -> list[str]:
    chosen = select(data, mode)
    flags = zip(data.nodes.label, chosen.used, chosen.hidden, strict=True)
    return [label for label, used, hidden in flags if used and not hidden]


def test_meaningful_hides_routine_buffers_and_the_counter_op() -> None:
    data = builders.demo()
    labels = drawn(data, "meaningful")
    assert "add_1_2" not in labels
    assert not any(label.startswith("buffer") for label in labels)
    assert "batchnorm_1_3" in labels


def test_always_shows_every_version_and_the_counter_op() -> None:
    labels = drawn(builders.demo(), "always")
    assert "add_1_2" in labels
    assert sum(label.startswith("buffer") for label in labels) == 12


def test_meaningful_keeps_buffers_that_are_no_bookkeeping() -> None:
    data = builders.state()
    assert "buffer_1" in drawn(data, "meaningful")
    assert not any(label.startswith("buffer") for label in drawn(data, "never"))


def test_never_hides_an_op_between_buffers_but_not_one_with_another_reader() -> None:
    b = Builder()
    x = b.input()
    step = b.op("add", [b.read("steps", ())], ())
    b.write("steps", step, (), "float32")
    scale = b.op("mul", [b.read("scale")], (8,))
    b.write("scale", scale)
    b.output(b.op("mul", [x, scale]))
    labels = drawn(b.build(), "never")
    assert "add_1_1" not in labels
    assert "mul_1_2" in labels


@pytest.mark.parametrize("mode", ["never", "meaningful", "always"])
def test_bookkeeping_is_the_same_whatever_is_drawn(mode: str) -> None:
    data = builders.demo()
    flags = select(data, mode).bookkeeping
    assert [data.nodes.label[i] for i, flag in enumerate(flags) if flag] == ["add_1_2", "add_2_6"]


def test_orphans_are_left_out_but_what_a_kept_node_reads_is_not() -> None:
    b = Builder()
    x = b.input()
    b.op("sin", [b.op("rand", [], (8,))], (8,))
    table = b.op("arange", [], (8,))
    b.op("mul", [x, table])
    b.output(b.op("relu", [x]))
    assert drawn(b.build(), "meaningful") == ["input_1", "arange_1_3", "mul_1_4", "relu_1_5", "output_1"]


def test_an_output_that_no_input_reaches_is_drawn() -> None:
    b = Builder()
    b.input()
    b.output(b.op("zeros", [], (8,)))
    assert drawn(b.build(), "meaningful") == ["input_1", "zeros_1_1", "output_1"]


def test_bookkeeping_that_decides_a_branch_is_drawn() -> None:
    data = builders.demo()
    data.branches.append(BranchTest(data.index_of["add_1_2"], "if", True, "net.py", 3))
    assert "add_1_2" in drawn(data, "meaningful")


@pytest.mark.parametrize("tested", [False, True])
def test_a_branch_test_and_what_leads_to_it_are_no_orphans(tested: bool) -> None:
    b = Builder()
    x = b.input()
    coin = b.op("gt", [b.op("rand", [], ())], ())
    b.output(b.op("relu", [x]))
    data = b.build()
    data.branches += [BranchTest(coin.node, "if", True, "net.py", 3)] * tested
    assert ("gt_1_2" in drawn(data, "meaningful"), "rand_1_1" in drawn(data, "meaningful")) == (tested, tested)
