"""Which op is a module call's whole work."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.graph import Plan
from torchlens.plan.rectangles import find_works
from torchlens.plan.select import select
from torchlens.records.trace_data import TraceData


def works_of(data: TraceData) -> dict[str, str]:
    """Call key -> label of the op that is its whole work."""
    works = find_works(data, select(data, "meaningful"))
    return {data.call_key(call): data.nodes.label[op] for call, op in enumerate(works.op) if op is not None}


def test_a_module_that_ran_one_op_and_an_op_that_closes_its_block() -> None:
    works = works_of(builders.residual(1))
    assert works["blocks.0.norm:1"] == "layernorm_1_2"
    assert works["blocks.0.mlp.fc1:1"] == "linear_2_3"
    assert works["blocks.0:1"] == "add_1_6"


def test_the_own_op_of_a_module_that_returns_something_else_is_none() -> None:
    assert "blocks.0.mlp:1" not in works_of(builders.residual(1))


def test_the_counter_of_a_norm_is_no_work() -> None:
    works = works_of(builders.demo())
    assert works["features.0.norm:1"] == "batchnorm_1_3"


def test_two_own_ops_make_no_rectangle() -> None:
    b = Builder()
    x = b.input()
    with b.module("twice") as call:
        call.returns = [b.op("relu", [b.op("sin", [x])])]
    b.output(call.returns[0])
    assert works_of(b.build()) == {}


def test_an_op_beside_other_results_is_not_the_output_of_its_module() -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        inner = b.linear("m.fc", x, 8)
        call.returns = [b.op("add", [inner, x]), inner]
    b.output(call.returns[0])
    assert set(works_of(b.build())) == {"m.fc:1"}


def test_several_outputs_of_one_call_are_one_op() -> None:
    assert works_of(builders.multi_output()) == {"lstm:1": "lstm_1_1"}


def test_the_root_is_a_rectangle_only_as_a_single_op() -> None:
    alone = Builder("Linear")
    alone.output(alone.op("linear", [alone.input()]))
    assert works_of(alone.build()) == {"self:1": "linear_1_1"}
    b = Builder()
    x = b.input()
    b.output(b.op("add", [x, b.linear("fc", x, 8)]))
    assert set(works_of(b.build())) == {"fc:1"}


def test_an_orphan_is_no_work() -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        b.op("rand", [], (8,))
        out: Ref = b.op("relu", [x])
        call.returns = [out]
    b.output(out)
    assert works_of(b.build()) == {"m:1": "relu_1_2"}


def test_an_op_that_its_module_goes_on_with_lies_in_the_box(plan: Callable[..., Plan]) -> None:
    b = Builder()
    x = b.input()
    with b.module("tap", "Tap") as tap:
        tap.returns = [b.op("add", [b.linear("tap.fc", x, 8), x])]
        probe = b.linear("tap.probe", tap.returns[0], 8)
    b.output(tap.returns[0], "main")
    b.output(probe, "probe")
    drawn = plan(b.build(), depth=1)
    assert [node.name for node in drawn.nodes] == ["input_1", "module:tap:1", "output_1", "output_2"]
    assert not any(edge.back for edge in drawn.edges)
