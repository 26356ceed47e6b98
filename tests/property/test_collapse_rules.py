"""Drawings of random traces under random rules: exactly what the rules say, with exactly the arrows of the trace."""

from __future__ import annotations

import random
import warnings
from itertools import pairwise
from typing import Any

import pytest

from tests import builders
from tests.bridged import bridges, check_arrows, check_rules
from tests.honesty import home, is_coarser, make
from tests.random_traces import random_trace
from torchlens.plan.graph import Plan
from torchlens.plan.pipeline import plan_schedule
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve

# Functions that are no family of their own name and have one spelling.
OPS = ("relu", "tanh", "sin", "neg", "ad*", "sub", "zeros", "mul", "linear", "*")
CLASSES = ("Block", "Net", "Seq*", "Linear", "Tap", "?et")
CONTEXTS: list[dict[str, Any]] = [
    {},
    {"show_buffers": "always"},
    {"show_buffers": "never", "fold_repeats": True},
    {"show_orphans": True, "fold_repeats": False},
]


def _rules(data: TraceData, seed: int) -> list[dict[str, str]]:
    """One to four rules, most of which match something."""
    chance = random.Random(seed)
    addresses = [module.address for module in data.modules[1:]]
    found: list[dict[str, str]] = []
    for _ in range(chance.randint(1, 4)):
        kind = chance.choice(("op", "op", "class", "address"))
        if kind == "op":
            found.append({"op": chance.choice(OPS), "do": chance.choice(("hide", "hide", "hide", "keep"))})
        elif kind == "class" or not addresses:
            found.append({"class": chance.choice(CLASSES), "do": chance.choice(("fold", "keep", "hide"))})
        else:
            address = chance.choice(addresses)
            pattern = f"{address[:-1]}?" if chance.random() < 0.3 else address
            found.append({"address": pattern, "do": chance.choice(("fold", "keep", "hide"))})
    return found


def _levels(data: TraceData, **options: Any) -> list[float]:
    levels = [step.t for step in plan_schedule(data, resolve(data, options)).steps]
    return [*levels[: -1 : len(levels) // 6 + 1], levels[-1]]


def _plans(data: TraceData, context: dict[str, Any]) -> list[Plan]:
    return [make(data, collapse=level, **context) for level in _levels(data, **context)]


@pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")
@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("start", range(0, 90, 30))
def test_random_rules_do_what_they_say_at_every_level(start: int, context: dict[str, Any]) -> None:
    hidden = bridged = 0
    for seed in range(start, start + 30):
        data = random_trace(seed, size=20 + seed)
        rules = _rules(data, seed)
        plain = make(data, **{**context, "fold_repeats": None})
        ruled = {**context, "collapse_rules": rules}
        plans = _plans(data, ruled)
        for plan in (*plans, make(data, collapse="auto", **ruled), make(data, collapse="max", **ruled)):
            check_rules(data, plain, plan, rules)
            check_arrows(data, plain, plan)
            assert not any(edge.back for edge in plan.edges)
        for fine, coarse in pairwise(plans):
            assert len(coarse.nodes) <= len(fine.nodes)
            assert is_coarser(fine, coarse)
            assert set(coarse.left_out) <= set(fine.left_out)
        hidden += len(plans[0].left_out)
        bridged += sum(edge.over > 0 for edge in plans[0].edges)
    assert hidden > 30
    assert bridged > 30


@pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")
@pytest.mark.parametrize("start", range(0, 60, 30))
def test_rules_hold_below_a_depth(start: int) -> None:
    for seed in range(start, start + 30):
        data, context = random_trace(seed, size=40), {"depth": 1 + seed % 3}
        rules = _rules(data, seed)
        plain, plan = make(data), make(data, collapse_rules=rules, **context)
        check_rules(data, plain, plan, rules)
        check_arrows(data, plain, plan)


@pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")
@pytest.mark.parametrize("start", range(0, 60, 30))
def test_rolled_drawings_join_what_hidden_paths_join(start: int) -> None:
    for seed in range(start, start + 30):
        data = random_trace(seed, size=40)
        rules = _rules(data, seed)
        plain, context = make(data, rolled=True), {"rolled": True, "collapse_rules": rules}
        plans = _plans(data, context)
        for plan in plans:
            check_rules(data, plain, plan, rules)
            ends = {(edge.source, edge.target) for edge in plan.edges if edge.over and edge.source != edge.target}
            assert ends == set(bridges(data, plan, home(plain)))
        for fine, coarse in pairwise(plans):
            assert len(coarse.nodes) <= len(fine.nodes)


@pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")
@pytest.mark.parametrize("start", range(0, 60, 30))
def test_focused_drawings_are_bridged_inside_alone(start: int) -> None:
    bridged = 0
    for seed in range(start, start + 30):
        data = random_trace(seed, size=60)
        rules = _rules(data, seed)
        for module in [m for m in data.modules[1:] if m.calls and len(data.calls[m.calls[0]].ops) > 2][:3]:
            context = {"module": module.address, "collapse_rules": rules}
            plain = make(data, module=module.address)
            for mode in ("none", 0.5, "max"):
                plan = make(data, collapse=mode, **context)
                check_arrows(data, plain, plan)
                inside = set(plan.focus.members) if plan.focus else set[int]()
                assert set(plan.left_out) <= inside
            bridged += len(bridges(data, make(data, **context), home(plain)))
    assert bridged > 10


def test_rules_without_effect_change_no_byte_of_the_plan() -> None:
    for seed in range(10):
        data = random_trace(seed, size=40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for mode in ("none", "auto", "max"):
                plain = make(data, collapse=mode)
                for rules in ([], [{"class": "Nothing", "do": "fold"}], [{"op": "Nothing", "do": "hide"}]):
                    other = make(data, collapse=mode, collapse_rules=rules)
                    assert (other.nodes, other.edges, other.boxes) == (plain.nodes, plain.edges, plain.boxes)


def test_the_check_itself_finds_a_lie() -> None:
    data = builders.residual(6)
    rules = [{"op": "relu", "do": "hide"}]
    plain, ruled = make(data), make(data, collapse_rules=rules)
    check_arrows(data, plain, ruled)
    number = next(k for k, edge in enumerate(ruled.edges) if edge.over)
    for wrong in (ruled.edges[number]._replace(over=2), ruled.edges[number]._replace(tensors=2), None):
        edges = [edge if k != number else wrong for k, edge in enumerate(ruled.edges)]
        lie = Plan(False, ruled.nodes, tuple(edge for edge in edges if edge), ruled.boxes, left_out=ruled.left_out)
        with pytest.raises(AssertionError):
            check_arrows(data, plain, lie)
    with pytest.raises(AssertionError):
        check_rules(data, plain, make(data), rules)
