"""The figure of a schedule says what the schedule and the plans say, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.drawings import draw_trace
from torchlens.plan.collapse.report import CollapsePlan
from torchlens.plan.collapse.schedule import CollapseSchedule
from torchlens.records.trace_data import TraceData
from torchlens.scene.schedule_chart import MOST_STEPS, WIDTH, schedule_chart
from torchlens.scene.sheet import Line, Shape, Sheet, Words
from torchlens.settings.theme import load_theme

Parts = tuple[CollapseSchedule, CollapsePlan, CollapsePlan]


def _parts(data: TraceData, **options: object) -> Parts:
    auto = draw_trace(data, None, {**options, "collapse": "auto"})
    return (
        auto.collapse_schedule,
        auto.collapse_plan,
        draw_trace(data, None, {**options, "collapse": "max"}).collapse_plan,
    )


def _chart(parts: Parts, theme: str = "torchlens", *lines: str) -> Sheet:
    return schedule_chart("Net", *parts, load_theme(theme), lines)


def _texts(sheet: Sheet, start: str) -> list[str]:
    return [mark.text for mark in sheet.marks if isinstance(mark, Words) and mark.name.startswith(start)]


def _spots(sheet: Sheet) -> dict[str, tuple[float, float]]:
    shapes = [mark for mark in sheet.marks if isinstance(mark, Shape)]
    return {mark.name: (mark.area.left + mark.area.width / 2, mark.area.top + mark.area.height / 2) for mark in shapes}


def _scales(sheet: Sheet) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """From the page to a level and to a number of nodes, by the ticks of the two axes."""
    ticks = {mark.name: mark.points for mark in sheet.marks if isinstance(mark, Line) and "tick" in mark.name}
    x0, x1 = ticks["axis:tick:t0"][0][0], ticks["axis:tick:t1"][0][0]
    counts = {
        int(name.rpartition(":")[2]): points[0][1]
        for name, points in ticks.items()
        if name[-2] != "t" and "t0" not in name and "t1" not in name
    }
    top = max(counts)
    y0, y1 = counts[0], counts[top]
    return (lambda x: (x - x0) / (x1 - x0)), (lambda y: top * (y - y0) / (y1 - y0))


@pytest.fixture(scope="module")
def small() -> Parts:
    return _parts(builders.residual(8))


@pytest.fixture(scope="module")
def large() -> Parts:
    return _parts(builders.residual(30))


@pytest.mark.parametrize("which", ["small", "large"])
def test_every_step_stands_at_its_level_and_count(which: str, request: pytest.FixtureRequest) -> None:
    parts: Parts = request.getfixturevalue(which)
    sheet = _chart(parts)
    level, count = _scales(sheet)
    spots = _spots(sheet)
    for k, step in enumerate(parts[0].steps):
        x, y = spots[f"step:{k}"]
        assert level(x) == pytest.approx(step.t, abs=1e-6)
        assert count(y) == pytest.approx(step.visible_count)
    for plan in parts[1:]:
        assert count(spots[str(plan.mode)][1]) == pytest.approx(plan.nodes)
    (line,) = [mark for mark in sheet.marks if isinstance(mark, Line) and mark.name == "schedule"]
    heights = [count(y) for _, y in line.points]
    assert heights == sorted(heights, reverse=True)
    (band,) = [mark.area for mark in sheet.marks if isinstance(mark, Shape) and mark.name == "band"]
    highest = max(count(band.top), 0)
    assert highest == pytest.approx(parts[1].band) or parts[1].band > parts[0].steps[0].visible_count


def test_the_table_has_every_step(small: Parts) -> None:
    sheet = _chart(small)
    for k, step in enumerate(small[0].steps):
        row = _texts(sheet, f"step:{k}:")
        expected = [str(k), f"{step.t:.4f}", str(step.target_count), str(step.visible_count)]
        assert row == [*expected, str(len(step.collapsed_addresses)), step.event if k else "draws everything"]


def test_the_plans_are_told_with_what_they_join(small: Parts) -> None:
    sheet = _chart(small)
    assert _texts(sheet, "plan:0:")[:3] == ["auto", "44", "0"]
    assert _texts(sheet, "plan:1:") == ["max", "9", "8", "1", "the strongest legal fold"]
    assert _texts(sheet, "plan:2:") == ["joined: blocks.0-5"]
    names = [mark.name for mark in sheet.marks]
    assert len(set(names)) == len(names)


def test_auto_is_the_first_step_that_fits(large: Parts) -> None:
    schedule, auto, _ = large
    sheet = _chart(large)
    first = next(k for k, step in enumerate(schedule.steps) if step.visible_count <= auto.band)
    assert _spots(sheet)["auto"][0] == pytest.approx(_spots(sheet)[f"step:{first}"][0])
    assert [mark.name for mark in sheet.marks if isinstance(mark, Shape) and mark.name.endswith("shade")] == [
        f"step:{first}:shade"
    ]


def test_auto_stands_where_it_starts_though_outputs_alike_are_drawn_as_one() -> None:
    b = Builder()
    with b.module("decoder") as decoder:
        made = [b.input()]
        for _ in range(40):
            made.append(b.op("neg", [b.op("exp", [made[-1]])]))
        decoder.returns = made[1:]
    h = made[0]
    for k in range(12):
        h = b.op("exp" if k % 2 else "neg", [h])
    b.output(h, "logits")
    for k, ref in enumerate(made[1:]):
        b.output(ref, f"cache.keys.{k}")
    schedule, auto, strongest = _parts(b.build(), depth=1)
    assert auto.nodes <= auto.band < schedule.steps[0].visible_count
    assert len(schedule.steps) > 1
    spots = _spots(_chart((schedule, auto, strongest)))
    assert spots["auto"][0] == pytest.approx(spots["step:0"][0])


def test_a_long_table_says_what_it_leaves_out() -> None:
    parts = _parts(builders.residual(90))
    steps = parts[0].steps
    assert len(steps) > MOST_STEPS
    sheet = _chart(parts)
    (gap,) = [text for text in _texts(sheet, "step:") if "further steps" in text]
    assert int(gap.split()[1]) == len(steps) - MOST_STEPS
    assert len({mark.name for mark in sheet.marks if isinstance(mark, Shape) and ":" in mark.name}) >= len(steps)


def test_what_folds_not_at_all_is_drawn_too() -> None:
    sheet = _chart(_parts(builders.chain()))
    assert _texts(sheet, "step:0:")[-1] == "draws everything"


@pytest.mark.parametrize("theme", ["dark", "high_contrast", "paper"])
def test_themes_and_lines_of_ones_own(small: Parts, theme: str) -> None:
    sheet = _chart(small, theme, "a line")
    assert sheet.background == load_theme(theme).page.background
    assert "a line" in _texts(sheet, "caption")
    for mark in sheet.marks:
        if isinstance(mark, Words):
            assert mark.area.left + mark.area.width <= WIDTH + 12
