"""What rules come to: names, precedence, the modules around what is kept, and what a user is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import Builder
from torchlens.base.errors import TorchLensWarning
from torchlens.plan.focus import call_levels
from torchlens.plan.graph import Plan
from torchlens.plan.rules import Verdicts, judge
from torchlens.plan.select import select
from torchlens.records.trace_data import TraceData
from torchlens.settings.rules import check_rules, read_rules

MakePlan = Callable[..., Plan]
Rules = list[dict[str, Any]]


def _model() -> TraceData:
    """Two stages of a block each; a block is linear, relu, view, dropout in evaluation mode."""
    b = Builder("Net")
    h = b.input()
    for k in range(2):
        with b.module(f"stages.{k}", "Stage") as stage:
            with b.module(f"stages.{k}.block", "Block") as block:
                h = b.op("relu_", [b.linear(f"stages.{k}.block.fc", h, 8)])
                h = b.op("view", [h])
                h = b.op("dropout", [h], config=(("p", 0.1), ("training", False)))
                block.returns = [h]
            h = b.op("neg", [h])
            stage.returns = [h]
    b.output(b.linear("head", b.op("dropout", [h], config=(("p", 0.1),)), 4))
    return b.build()


def _verdicts(data: TraceData, rules: Rules, module: str = "") -> Verdicts:
    calls = data.modules[data.module_of[module]].calls
    selection = select(data, "meaningful")
    return judge(data, read_rules(check_rules(rules)), call_levels(data, calls), selection)


def _folds(rules: Rules) -> list[str]:
    data = _model()
    return [data.modules[m].address for m in sorted(_verdicts(data, rules).folds)]


def _hides(rules: Rules, module: str = "") -> list[str]:
    data = _model()
    return [data.nodes.label[i] for i in sorted(_verdicts(data, rules, module).hides)]


@pytest.mark.parametrize(
    ("rule", "folded"),
    [
        ({"class": "Block"}, ["stages.0.block", "stages.1.block"]),
        ({"class": "S*"}, ["stages.0", "stages.1"]),
        ({"class": "block"}, []),
        ({"address": "stages.1"}, ["stages.1"]),
        ({"address": "@stages.?"}, ["stages.0", "stages.1"]),
        ({"address": "*.block"}, ["stages.0.block", "stages.1.block"]),
        ({"class": "Net"}, []),
    ],
)
def test_patterns_of_modules(rule: dict[str, str], folded: list[str]) -> None:
    assert _folds([{**rule, "do": "fold"}]) == folded


def test_a_class_may_be_named_with_its_python_module() -> None:
    data = _model()
    for module in data.modules[1:]:
        module.qualified_name = f"package.net.{module.class_name}"
    assert len(_verdicts(data, [{"class": "package.*.Block", "do": "fold"}]).folds) == 2


@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("relu", ["relu_1_2", "relu_2_7"]),
        ("relu_", ["relu_1_2", "relu_2_7"]),
        ("view", ["view_1_3", "view_2_8"]),
        ("reshape", ["view_1_3", "view_2_8"]),
        ("dropout", ["dropout_1_4", "dropout_2_9", "dropout_3_11"]),
        ("inactive dropout", ["dropout_1_4", "dropout_2_9"]),
        ("ne?", ["neg_1_5", "neg_2_10"]),
    ],
)
def test_ops_go_by_function_label_and_family(pattern: str, hidden: list[str]) -> None:
    assert _hides([{"op": pattern, "do": "hide"}]) == hidden


def test_keep_beats_fold_and_hide_wherever_it_stands() -> None:
    fold, keep = {"class": "Block", "do": "fold"}, {"address": "stages.0.block", "do": "keep"}
    assert _folds([fold, keep]) == _folds([keep, fold]) == ["stages.1.block"]
    hide, stay = {"op": "*", "do": "hide"}, {"op": "linear", "do": "keep"}
    assert _hides([hide, stay]) == _hides([stay, hide])
    assert not any(label.startswith("linear") for label in _hides([hide, stay]))


def test_of_fold_and_hide_the_later_one_decides() -> None:
    fold, hide = {"class": "Block", "do": "fold"}, {"address": "stages.0.*", "do": "hide"}
    assert _folds([fold, hide]) == ["stages.1.block"]
    assert _folds([hide, fold]) == ["stages.0.block", "stages.1.block"]
    assert _hides([fold, hide]) == ["linear_1_1", "relu_1_2", "view_1_3", "dropout_1_4"]


def test_what_is_kept_keeps_open_what_is_around_it() -> None:
    data = _model()
    for rule in ({"address": "stages.0.block", "do": "keep"}, {"op": "view", "do": "keep"}):
        verdicts = _verdicts(data, [{"class": "*", "do": "fold"}, rule])
        stays = {data.modules[m].address for m in verdicts.stays}
        assert {"stages.0", "stages.0.block"} <= stays
        assert verdicts.stays.isdisjoint(verdicts.folds)


def test_the_innermost_module_with_a_rule_decides_and_a_rule_about_the_op_before_it() -> None:
    rules = [{"class": "Stage", "do": "hide"}, {"class": "Block", "do": "keep"}]
    assert _hides(rules) == ["neg_1_5", "neg_2_10"]
    assert "view_1_3" in _hides([*rules, {"op": "view", "do": "hide"}])
    assert "neg_1_5" not in _hides([{"class": "Stage", "do": "hide"}, {"op": "neg", "do": "keep"}])


def test_a_module_in_focus_is_the_page() -> None:
    rules = [{"address": "stages.0", "do": "hide"}, {"op": "neg", "do": "hide"}]
    assert _hides(rules, "stages.0") == ["neg_1_5"]
    assert "linear_1_1" in _hides(rules)


# -- what a user is told
def _told(plan: MakePlan, data: TraceData, rules: Rules) -> list[TorchLensWarning]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan(data, collapse_rules=rules)
    return [item.message for item in caught if isinstance(item.message, TorchLensWarning)]


@pytest.mark.parametrize(
    ("rule", "near"),
    [
        ({"class": "Blok", "do": "fold"}, "'Block'"),
        ({"address": "stage.0", "do": "keep"}, "'stages.0'"),
        ({"op": "inear", "do": "hide"}, "'linear'"),
        ({"class": "Net", "do": "fold"}, "the classes of the trace: Stage,Block,Linear"),
    ],
)
def test_a_rule_that_matches_nothing_names_what_is_near(plan: MakePlan, rule: dict[str, str], near: str) -> None:
    (told,) = _told(plan, _model(), [{"op": "relu", "do": "hide"}, rule])
    assert told.code == "collapse_rule_unused"
    assert "collapse_rules[1]" in str(told)
    assert near in str(told)
    with pytest.warns(TorchLensWarning, match="collapse_rule_unused"):
        plan(_model(), collapse_rules=[rule])


def test_a_rule_outside_the_focus_matches_something(plan: MakePlan) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan(_model(), module="stages.0", collapse_rules=[{"address": "stages.1.*", "do": "hide"}])


def test_a_branch_test_stays_and_the_user_is_told(plan: MakePlan) -> None:
    b = Builder()
    x = b.input()
    test = b.test(b.op("gt", [x], (), dtype="bool"))
    b.output(b.enter(test, b.op("relu", [x])))
    data = b.build()
    with pytest.warns(TorchLensWarning, match=r"collapse_rule_test_kept\].*gt_1_1 decides a branch and stays"):
        drawn = plan(data, collapse_rules=[{"op": "*", "do": "hide"}])
    assert [node.name for node in drawn.nodes] == ["input_1", "gt_1_1", "output_1"]
