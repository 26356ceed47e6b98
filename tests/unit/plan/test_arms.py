"""Which arrows lead into an arm, in which passes, and which of them say so."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder
from torchlens.plan.arms import summarize
from torchlens.plan.graph import Arm, Entry, Plan

MakePlan = Callable[..., Plan]
THEN, ELSE = Arm("THEN", 0, 5), Arm("ELSE", 0, 5)


def arms(plan: Plan) -> dict[str, tuple[Entry, ...]]:
    """Arrows that lead into an arm."""
    return {f"{plan.nodes[e.source].name}->{plan.nodes[e.target].name}": e.arms for e in plan.edges if e.arms}


def test_only_the_arrow_into_the_arm_is_marked(plan: MakePlan) -> None:
    assert arms(plan(builders.branch())) == {"input_1->linear_1_3": (Entry((THEN,), ()),)}


def test_a_trace_without_tests_has_no_arms(plan: MakePlan) -> None:
    assert not arms(plan(builders.chain()))


def test_only_the_first_ops_of_an_arm_are_marked(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    test = b.test(b.op("gt", [b.op("sum", [x], ())], ()))
    first = b.enter(test, b.op("relu", [x]))
    fresh = b.op("ones", [], (8,))
    # x is read again by an op that what is in the arm leads to; ones has not entered it from anywhere.
    skip = b.enter(test, b.op("sub", [first, x]), sources=[x])
    other = b.enter(test, b.op("mul", [x, fresh]), sources=[x])
    b.output(b.op("sub", [skip, other]))
    assert list(arms(plan(b.build()))) == ["input_1->relu_1_3", "input_1->mul_1_6"]


def test_arms_in_arms_come_outermost_first(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    outer, inner = b.test(b.op("any", [x], ()), line=5), b.test(b.op("all", [x], ()), line=6)
    b.output(b.enter(inner, b.enter(outer, b.op("relu", [x])), "ELSE"))
    (entry,) = arms(plan(b.build()))["input_1->relu_1_3"]
    assert entry == Entry((THEN, Arm("ELSE", 0, 6)), ())


def test_passes_that_take_different_arms_are_told_apart(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    kept = []
    for value in (True, False, True):
        test = b.test(b.op("gt", [b.op("sum", [x], (), layer="sum")], (), layer="gt"), value=value)
        kept.append(b.enter(test, b.linear("fc", x, 8, layer="fc"), "THEN" if value else "ELSE"))
    b.output(b.op("stack", {(0, k): ref for k, ref in enumerate(kept)}))
    data = b.build()
    assert arms(plan(data, rolled=True))["input_1->linear_1_3"] == (Entry((THEN,), (1, 3)), Entry((ELSE,), (2,)))
    assert arms(plan(data))["input_1->linear_1_3:2"] == (Entry((ELSE,), ()),)


def test_passes_outside_the_arm_are_not_claimed(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    test = b.test(b.op("gt", [x], ()))
    inside = b.enter(test, b.linear("fc", x, 8, layer="fc"))
    b.output(b.op("sub", [inside, b.linear("fc", x, 8, layer="fc")]))
    assert arms(plan(b.build(), rolled=True))["input_1->linear_1_2"] == (Entry((THEN,), (1,)),)


def test_an_arrow_of_some_passes_needs_no_list_if_all_of_them_enter(plan: MakePlan) -> None:
    found = arms(plan(builders.branches_in_loop(), rolled=True))
    assert found["input_1->linear_1_3"] == (Entry((THEN,), ()),)
    assert found["sub_1_4->linear_1_3"] == (Entry((ELSE,), ()),)


def test_an_arrow_into_a_box_keeps_the_arm_that_the_box_is_in(plan: MakePlan) -> None:
    found = arms(plan(builders.branches_in_loop(), depth=1))
    assert found["sub_1_4:2->module:body:1"] == (Entry((Arm("THEN", 0, 9), Arm("THEN", 0, 10)), ()),)


def test_all_that_flows_into_a_box_in_an_arm_is_marked(plan: MakePlan) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    test = b.test(b.op("gt", [x], ()))
    with b.module("body") as call:
        first = b.enter(test, b.op("relu", [x]))
        call.returns = [b.enter(test, b.op("sub", [first, y]), sources=[y])]
    b.output(call.returns[0])
    assert list(arms(plan(b.build(), depth=1))) == ["input_1->module:body:1", "input_2->module:body:1"]


def test_a_branch_within_a_box_is_not_seen(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        test = b.test(b.op("gt", [x], ()))
        call.returns = [b.op("neg", [b.enter(test, b.op("relu", [x]))])]
    b.output(call.returns[0])
    data = b.build()
    assert not arms(plan(data, depth=1))
    assert list(arms(plan(data))) == ["input_1->relu_1_2"]


def test_arms_of_passes_are_grouped() -> None:
    both = {1: {THEN: None}, 2: {ELSE: None}, 3: {THEN: None}}
    assert summarize(both, [1, 2, 3]) == (Entry((THEN,), (1, 3)), Entry((ELSE,), (2,)))
    assert summarize({2: {THEN: None}}, [2]) == (Entry((THEN,), ()),)
    assert summarize({2: {THEN: None}}, [1, 2]) == (Entry((THEN,), (2,)),)
