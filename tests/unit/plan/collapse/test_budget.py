"""The page of a view that wants a number of nodes: which step or level, whose colours stay, and what is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.base.errors import TorchLensWarning
from torchlens.plan.collapse import budget
from torchlens.plan.collapse.budget import Fit, Values, fit
from torchlens.plan.collapse.schedule import Path, make_path
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData
from torchlens.settings.deferred import Band

MakeUnits = Callable[..., Units]
READABLE = 25


def uneven(count: int) -> TraceData:
    """Blocks of 3, 4, 5 ... ops in a row, none like another."""
    b = Builder("Uneven")
    h = b.input()
    for k in range(count):
        with b.module(f"blocks.{k}") as block:
            for _ in range(3 + k):
                h = b.op("tanh", [h])
            block.returns = [h]
    b.output(h)
    return b.build()


def fitted(units: Units, band: Band, *, folds: bool | None = None, values: Values | None = None, **more: bool) -> Fit:
    def plan(folds: bool | None) -> Path | None:
        return make_path(units, READABLE, folds)

    return fit(units, band, folds, values, plan, **more)


def test_what_fits_is_left_alone(units: MakeUnits) -> None:
    full = units(uneven(4))
    found = fitted(full, Band(10, full.total, 15))
    assert (found.board.count, found.step, found.depth) == (full.total, 0, None)
    assert found.reason == f"{full.total} nodes are no more than {full.total}"


@pytest.mark.parametrize(("low", "high"), [(20, 40), (31, 60), (10, 20)])
def test_the_coarsest_step_inside_the_band(units: MakeUnits, low: int, high: int) -> None:
    full = units(uneven(10))
    counts = make_path(full, READABLE, None).counts
    found = fitted(full, Band(low, high, (low + high) // 2))
    assert found.board.count == min(count for count in counts if low <= count <= high)
    assert found.path is not None
    assert found.path.counts[found.step] == found.board.count
    assert "the coarsest within" in found.reason


def test_the_nearest_step_where_none_is_inside(units: MakeUnits) -> None:
    full = units(uneven(10))
    counts = [count for k, count in enumerate(make_path(full, READABLE, None).counts) if k]
    low = next(n for n in range(min(counts), full.total) if n not in counts)
    with pytest.warns(
        TorchLensWarning, match=rf"\[view_budget_band_missed\].*{low} to {low} nodes: \d+ of {full.total}"
    ):
        found = fitted(full, Band(low, low, low))
    assert abs(found.board.count - low) == min(abs(count - low) for count in counts)
    assert "the nearest to" in found.reason


def test_a_model_without_modules_stays_as_it_is(units: MakeUnits) -> None:
    b = Builder()
    h = b.input()
    for k in range(40):
        h = b.op("tanh" if k % 2 else "add", [h, h])
    b.output(h)
    full = units(b.build())
    with pytest.warns(TorchLensWarning, match="view_budget_band_missed"):
        found = fitted(full, Band(10, 20, 15))
    assert found.board.count <= full.total


def test_repeats_fold_first_and_may_be_enough(units: MakeUnits) -> None:
    found = fitted(units(builders.residual(8)), Band(5, 20, 10), folds=True)
    assert (found.board.count, found.step) == (6, 0)


def _time(data: TraceData) -> list[float | None]:
    return list(data.nodes.time_s)


def test_folds_that_hide_colours_go_if_nobody_insists(units: MakeUnits) -> None:
    full = units(builders.residual(8))
    values = Values(full, _time, sums=True)
    kept = fitted(full, Band(5, 20, 10), folds=True, values=values, optional=True)
    assert values.share(kept.board) >= budget.SHARE
    assert not [capsule for capsule in kept.board.cut().capsules if capsule.kind == "fold"]
    insisted = fitted(full, Band(5, 20, 10), folds=True, values=values)
    assert insisted.board.count == 6


def test_values_that_a_box_cannot_sum_are_hidden_by_it(units: MakeUnits) -> None:
    full = units(uneven(10))
    with pytest.warns(TorchLensWarning, match="keeps 80% of the coloured values"):
        fitted(full, Band(20, 40, 30), values=Values(full, None, sums=False))
    assert fitted(full, Band(20, 40, 30), values=Values(full, None, sums=True)).board.count <= 40


def test_the_share_is_counted_over_ops(units: MakeUnits) -> None:
    data = uneven(3)  # 3 + 4 + 5 ops
    full = units(data)
    path = make_path(full, READABLE, None)
    one = path.board(1)  # the largest block is a box
    assert Values(full, None, sums=True).share(one) == 1
    assert Values(full, None, sums=False).share(one) == 7 / 12
    # One op without a value takes the sum of its box along.
    data.nodes.time_s = [None if i == data.op_indexes[-1] else t for i, t in enumerate(data.nodes.time_s)]
    assert Values(full, _time, sums=True).share(one) == 7 / 11
    assert Values(full, lambda data: [None] * len(data.nodes), sums=True).share(one) == 1


def nested(count: int) -> TraceData:
    """Stages of different numbers of blocks of three ops."""
    b = Builder("Nested")
    h = b.input()
    for k in range(count):
        with b.module(f"stages.{k}", "Stage") as stage:
            for j in range(k + 1):
                with b.module(f"stages.{k}.{j}") as block:
                    for _ in range(3):
                        h = b.op("tanh", [h])
                    block.returns = [h]
            stage.returns = [h]
    b.output(h)
    return b.build()


@pytest.mark.parametrize(("low", "high", "depth"), [(5, 12, 1), (13, 40, 2)])
def test_with_too_much_to_plan_a_level_of_the_tree_is_chosen(
    units: MakeUnits, monkeypatch: pytest.MonkeyPatch, low: int, high: int, depth: int
) -> None:
    monkeypatch.setattr(budget, "PLANNED_UNITS", 50)
    data = nested(6)
    full = units(data)
    assert full.total == 3 * 21 + 2
    found = fitted(full, Band(low, high, low))
    assert (found.depth, found.path) == (depth, None)
    assert found.board.count == units(data, depth=depth).total
    assert found.reason.startswith(f"depth {depth}, the coarsest")


def test_a_planner_that_declines_means_a_level_too(units: MakeUnits) -> None:
    found = fit(units(nested(6)), Band(5, 12, 8), None, None, lambda folds: None)
    assert found.depth == 1
