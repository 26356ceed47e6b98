"""Which nodes are on the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.plan.graph import Plan
from torchlens.plan.select import select
from torchlens.records.flow import Branches, BranchTest
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
    data.branches = Branches([BranchTest(data.index_of["add_1_2"], "if", True, "net.py", 3)])
    assert "add_1_2" in drawn(data, "meaningful")


@pytest.mark.parametrize("tested", [False, True])
def test_a_branch_test_and_what_leads_to_it_are_no_orphans(tested: bool) -> None:
    b = Builder()
    x = b.input()
    coin = b.op("gt", [b.op("rand", [], ())], ())
    b.output(b.op("relu", [x]))
    data = b.build()
    data.branches = Branches([BranchTest(coin.node, "if", True, "net.py", 3)] * tested)
    assert ("gt_1_2" in drawn(data, "meaningful"), "rand_1_1" in drawn(data, "meaningful")) == (tested, tested)


def test_dead_ends_and_unused_inputs_are_drawn() -> None:
    assert drawn(builders.orphans(), "meaningful") == ["input_1", "input_2", "exp_1_6", "relu_1_7", "output_1"]


@pytest.mark.parametrize(("mode", "buffers"), [("never", []), ("meaningful", []), ("always", ["buffer_1"])])
def test_orphans_are_drawn_on_demand_without_what_the_buffer_mode_hides(mode: str, buffers: list[str]) -> None:
    data = builders.orphans()
    assert not any(select(data, mode).orphans)
    chosen = select(data, mode, show_orphans=True)
    labels = [label for label, flag in zip(data.nodes.label, chosen.orphans, strict=True) if flag]
    assert [label for label in labels if not label.startswith("buffer")] == [
        "arange_1_1", "constant_1", "mul_1_2", "rand_1_3", "linear_1_4", "sqrt_1_5",
    ]  # fmt: skip
    assert [label for label in labels if label.startswith("buffer")] == buffers
    assert chosen.used == select(data, mode).used


def test_orphans_stand_in_one_frame_and_look_as_they_would_elsewhere(plan: Callable[..., Plan]) -> None:
    data = builders.orphans()
    made = plan(data, show_orphans=True)
    (frame,) = made.boxes
    assert (frame.module, frame.calls, frame.from_input) == (None, (), False)
    inside = [node for node in made.nodes if node.box == 0]
    assert [node.name for node in inside] == [
        "arange_1_1", "constant_1", "mul_1_2", "rand_1_3", "linear_1_4", "sqrt_1_5",
    ]  # fmt: skip
    spare = next(node for node in inside if node.name == "linear_1_4")
    assert (spare.rectangle, spare.address) == (True, "spare")
    assert not any(node.from_input for node in inside)
    assert len(made.edges) == len(plan(data).edges) + 3
    others = [node.name for node in made.nodes if node.box is None]
    assert others == [node.name for node in plan(data).nodes]


def test_without_orphans_nothing_changes(plan: Callable[..., Plan]) -> None:
    data = builders.demo()
    assert plan(data, show_orphans=True) == plan(data)


@pytest.mark.parametrize("rolled", [False, True])
def test_orphans_change_neither_boxes_nor_rectangles(plan: Callable[..., Plan], rolled: bool) -> None:
    b = Builder()
    x = b.input()
    for _ in range(2):
        with b.module("m") as call:
            b.op("rand", [], (8,), layer="rand")
            x = b.op("neg", [b.linear("m.fc", x, 8, layer="fc")], layer="neg")
            call.returns = [x]
    b.output(x)
    data = b.build()
    plain, shown = (plan(data, depth=1, rolled=rolled, show_orphans=flag) for flag in (False, True))
    assert shown.nodes[: len(plain.nodes)] != plain.nodes
    apart = [node for node in shown.nodes if node.name.startswith("rand")]
    assert [len(node.members) for node in apart] == ([2] if rolled else [1, 1])
    assert [n.members for n in shown.nodes if n not in apart] == [n.members for n in plain.nodes]
    assert sum(box.module is None for box in shown.boxes) == 1


def test_in_focus_only_the_modules_own_orphans_are_drawn(plan: Callable[..., Plan]) -> None:
    b = Builder()
    x = b.input()
    b.op("rand", [], (8,))
    with b.module("m") as call:
        b.op("randn", [], (8,))
        call.returns = [b.op("neg", [b.op("exp", [x])])]
    b.output(call.returns[0])
    made = plan(b.build(), module="m", show_orphans=True)
    assert [node.name for node in made.nodes] == ["input_1", "randn_1_2", "exp_1_3", "neg_1_4", "output_1"]
