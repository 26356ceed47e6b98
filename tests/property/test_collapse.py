"""Folded drawings of random traces and of the hand-written models: monotone, honest, the same in every context."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests import builders
from tests.honesty import check_rolled, check_unrolled, drawn, home, is_coarser, make
from tests.random_traces import random_trace
from torchlens.plan.pipeline import plan_schedule
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve

LEVELS = [k / 100 for k in range(101)]
CONTEXTS: list[dict[str, Any]] = [
    {},
    {"show_buffers": "always"},
    {"show_buffers": "never", "depth": 2},
    {"fold_repeats": True, "show_orphans": True},
    {"fold_repeats": False},
]


def _levels(data: TraceData, **options: Any) -> list[float]:
    """Levels of steps, at most a dozen with both ends: between two steps nothing changes."""
    levels = [step.t for step in plan_schedule(data, resolve(data, options)).steps]
    return [*levels[: -1 : len(levels) // 12 + 1], levels[-1]]


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_traces_fold_honestly_and_monotonely(start: int, context: dict[str, Any]) -> None:
    for seed in range(start, start + 20):
        data = random_trace(seed, size=20 + seed)
        _check(data, context)


@pytest.mark.parametrize("start", range(0, 60, 30))
def test_rolled_and_focused_drawings_fold_monotonely(start: int) -> None:
    for seed in range(start, start + 30):
        data = random_trace(seed, size=40)
        module = next((m.address for m in data.modules[1:] if m.calls and len(data.calls[m.calls[0]].ops) > 1), None)
        for context in [{"rolled": True}, *([{"module": module}] if module else [])]:
            plans = [make(data, collapse=level, **context) for level in _levels(data, **context)]
            for fine, coarse in pairwise(plans):
                assert len(coarse.nodes) <= len(fine.nodes)
                assert is_coarser(fine, coarse)
            for plan in plans if "rolled" in context else ():
                check_rolled(data, plans[0], plan)
            assert is_coarser(plans[0], make(data, collapse="auto", **context))


@pytest.mark.parametrize(("seed", "depth"), [(1045, 2), (1080, 2), (1195, 1000), (1195, 2)])
def test_a_module_that_runs_in_several_places_is_counted_once(seed: int, depth: int) -> None:
    """Rolled, a box of `depth=` and one of a step are one node, and no step shows more than the one before."""
    data = random_trace(seed, size=20 + seed % 150)
    context = {"rolled": True, "depth": depth}
    full = make(data, rolled=True)
    steps = plan_schedule(data, resolve(data, context)).steps
    counts = [step.visible_count for step in steps]
    assert counts == sorted(counts, reverse=True)
    for step in steps[1:]:
        plan = make(data, collapse=step.t, **context)
        check_rolled(data, full, plan)
        assert plan.collapse is not None
        assert plan.collapse.nodes == step.visible_count


@pytest.mark.parametrize("sample", builders.SAMPLES)
def test_samples_fold_honestly_and_monotonely(sample: str) -> None:
    for context in CONTEXTS:
        _check(builders.SAMPLES[sample](), context)


def _check(data: TraceData, context: dict[str, Any]) -> None:
    full = make(data, **{**context, "fold_repeats": None, "depth": 1000})
    plans = [make(data, collapse=level, **context) for level in _levels(data, **context)]
    for plan in (*plans, make(data, collapse="auto", **context), make(data, collapse="max", **context)):
        check_unrolled(data, full, plan)
    for fine, coarse in pairwise(plans):
        assert len(coarse.nodes) <= len(fine.nodes)
        assert is_coarser(fine, coarse)
    assert plans[-1].nodes == make(data, collapse=1.0, **context).nodes == make(data, collapse="max", **context).nodes
    none = make(data, collapse="none", **context)
    assert (none.nodes, none.edges, none.boxes) == (plans[0].nodes, plans[0].edges, plans[0].boxes)


def test_levels_between_steps_draw_the_lower_step() -> None:
    data = random_trace(7, size=80)
    schedule = plan_schedule(data, resolve(data, {}))
    counts = [schedule.at(level).visible_count for level in LEVELS]
    hidden = [set(schedule.at(level).collapsed_addresses) for level in LEVELS]
    assert counts == sorted(counts, reverse=True)
    assert all(a <= b for a, b in pairwise(hidden))
    assert [len(make(data, collapse=level).nodes) for level in LEVELS] == counts


def test_the_check_itself_finds_a_lie() -> None:
    data = builders.residual(6)
    full, folded = make(data), make(data, collapse="max")
    wrong = folded.__class__(folded.rolled, folded.nodes, folded.edges[1:], folded.boxes, None, folded.collapse)
    with pytest.raises(AssertionError):
        check_unrolled(data, full, wrong)
    assert drawn(full) != drawn(folded)
    assert home(full).keys() <= home(folded).keys()
