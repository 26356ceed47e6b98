"""The schedule: its steps, their levels and events, against the examples of the reading guide."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.collapse.quality import choose
from torchlens.plan.collapse.schedule import CollapseSchedule, Step, level, make_fallback, make_path, one_step
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData


def test_the_stack_of_eight_folds_as_in_the_guide(units: Callable[..., Units]) -> None:
    schedule = make_path(units(builders.residual(8)), 50, None).schedule()
    assert [step.visible_count for step in schedule.steps] == [44, 41, 38, 35, 32, 29, 26, 23, 20, 9]
    assert [round(step.t, 4) for step in schedule.steps[1:9]] == [
        0.0445, 0.0924, 0.1442, 0.2007, 0.2627, 0.3315, 0.4088, 0.4968,
    ]  # fmt: skip
    assert [schedule.at(t).visible_count for t in (0, 0.25, 0.5, 1)] == [44, 32, 20, 9]
    assert [step.event for step in schedule.steps[::8]] == ["none", "box blocks.7"]
    assert schedule.steps[-1].event == "1 segment"
    assert schedule.at(0.25).collapsed_addresses == tuple(f"blocks.{k}" for k in range(4))
    assert [step.target_count for step in schedule.steps] == [step.visible_count for step in schedule.steps]


def test_equal_steps_of_the_level_fold_by_equal_ratios() -> None:
    assert level(44, 44, 9) == 0.0
    assert level(44, 9, 9) == 1.0
    assert level(100, 50, 25) == level(1000, 200, 40) == 0.5
    assert level(7, 7, 7) == 0.0
    assert level(44, 41, 9) == round(math.log(44 / 41) / math.log(44 / 9), 6)


def _blocks(count: int, *, tail: int = 0, before: int = 0) -> TraceData:
    """Blocks of four ops without an op of their own to keep; further ops after and before."""
    b = Builder("Stack")
    h = b.input()
    for _ in range(before):
        h = b.op("relu", [h])
    for k in range(count):
        with b.module(f"h.{k}", "Layer") as block:
            for name in ("relu", "tanh", "neg", "exp"):
                h = b.op(name, [h])
            block.returns = [h]
    for _ in range(tail):
        h = b.op("sin", [h])
    b.output(h)
    return b.build()


def _events(units: Units, fold_repeats: bool | None = None, band: int = 25) -> list[str]:
    return [step.event for step in make_path(units, band, fold_repeats).schedule().steps]


def test_a_run_of_half_the_drawing_folds_as_soon_as_it_is_boxed(units: Callable[..., Units]) -> None:
    assert _events(units(_blocks(4)))[:6] == ["none", "box h.0", "box h.1", "box h.2", "box h.3", "fold h.0 +3 more"]


def test_a_smaller_run_folds_only_above_the_band(units: Callable[..., Units]) -> None:
    data = _blocks(4, tail=30)
    assert "fold h.0 +3 more" not in _events(units(data), band=50)
    assert "fold h.0 +3 more" in _events(units(data), band=25)


def test_without_folding_no_run_folds(units: Callable[..., Units]) -> None:
    assert not [event for event in _events(units(_blocks(4)), False) if event.startswith("fold")]


def test_with_folding_every_run_is_folded_from_the_start(units: Callable[..., Units]) -> None:
    path = make_path(units(builders.residual(8)), 50, True)
    assert path.counts[0] == 6
    assert path.schedule().at(0).collapsed_addresses == tuple(f"blocks.{k}" for k in range(8))


def test_dominant_modules_are_boxed_last_and_only_while_needed(units: Callable[..., Units]) -> None:
    b = Builder("Stack")
    h = b.input()
    with b.module("blocks", "Sequential") as blocks:
        for k in range(40):
            with b.module(f"blocks.{k}", "Block") as block:
                h = b.op("add", [h, b.linear(f"blocks.{k}.fc2", b.linear(f"blocks.{k}.fc1", h, 8), 8)])
                block.returns = [h]
        blocks.returns = [h]
    b.output(h)
    found = units(b.build())
    assert _events(found)[-1] == "box blocks"
    assert make_path(found, 25, None).counts[-1] == 3
    assert "box blocks" not in _events(found, band=90)


def test_a_drawing_without_modules_has_one_step(units: Callable[..., Units]) -> None:
    b = Builder()
    x = b.input()
    b.output(b.op("add", [b.op("relu", [x]), b.op("tanh", [x])]))
    found = units(b.build())
    assert make_path(found, 50, None).schedule() == one_step(found)
    assert one_step(found).at(1.0).visible_count == 5


def test_the_simple_planner_boxes_the_largest_first_and_makes_no_segments(units: Callable[..., Units]) -> None:
    found = units(builders.residual(12))
    path = make_fallback(found, 50, None)
    assert path.counts == sorted(path.counts, reverse=True)
    assert path.counts[-1] <= 50 < path.counts[-2]
    assert all(event.startswith("box blocks.") for event, _ in path.acts)


def test_the_check_is_asked_before_each_step_and_may_stop_the_planner(units: Callable[..., Units]) -> None:
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        make_path(units(builders.residual(8)), 50, None, stop)
    assert len(asked) == 3


def test_max_evens_out_where_auto_would_leave_less(units: Callable[..., Units]) -> None:
    """Two blocks that each hide most of the drawing: one as a box is enough, and the other lies open beside it."""
    b = Builder("Net")
    h = b.input()
    for k in range(2):
        with b.module(f"h.{k}", "Layer") as layer:
            start = b.op("exp", [h])
            ends: list[Ref] = []
            for name, count in (("attn", 20), ("mlp", 10)):
                with b.module(f"h.{k}.{name}", "Part") as part:
                    part.returns = [start]
                    for _ in range(count):
                        part.returns = [b.op("relu", part.returns)]
                ends += part.returns
            h = b.op("add", [b.op("add", ends), h])
            layer.returns = [h]
    b.output(h)
    path = make_path(units(b.build()), 10, None)
    assert path.counts == [68, 49, 30, 21, 12, 8, 4]
    assert [event for event, _ in path.acts][-2:] == ["box h.1", "even"]
    for mode in ("auto", "max"):
        assert choose(path, mode, 10).board.count == 4


@pytest.mark.parametrize("levels", [(0.0, 0.1, 0.104, 0.1042, 0.5, 1.0), (0.0, 0.123457, 0.9999, 1.0)])
def test_a_level_is_written_with_as_few_digits_as_still_draw_its_step(levels: tuple[float, ...]) -> None:
    steps = tuple(Step(t, 0, 0, "", (), 0) for t in levels)
    schedule = CollapseSchedule(steps)
    written = [schedule.level_of(place) for place in range(len(steps))]
    assert [schedule.place(level) for level in written] == list(range(len(steps)))
    assert written[1] == min(k / 100 for k in range(101) if k / 100 >= levels[1])
    assert written[-1] == 1.0
