"""The steps of folding as a figure: how many nodes each level draws, where `auto` and `max` stand, and every step.

The numbers are those of the planner; nothing is counted here. Knows no trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from torchlens.base.text import truncate
from torchlens.base.units import ELLIPSIS
from torchlens.plan.collapse.guard import FALLBACK
from torchlens.plan.collapse.report import CollapsePlan
from torchlens.plan.collapse.schedule import CollapseSchedule, Step
from torchlens.scene.label_size import text_width
from torchlens.scene.model import NodeStyle
from torchlens.scene.sheet import CENTER, LEFT, RIGHT, Area, Line, Shape, Sheet, Words
from torchlens.settings.theme import Theme

# Points: the page, the chart's height, what its axis needs, a row of a table, and the distance between parts.
WIDTH, CHART, AXIS, ROW, GAP = 620.0, 190.0, 40.0, 16.0, 20.0
DOT, MARK = 4.0, 9.0
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Steps that a table lists, of which the last ones stand below the gap.
MOST_STEPS, LAST_STEPS = 60, 15
THIN, RULE = 0.5, 0.75
# Averages of the font: characters of this share of the size fill a line. Names are cut before they are too wide.
CHARACTER = 0.55


class _Column(NamedTuple):
    """A column of a table. width: points; the last one has what is left."""

    title: str
    width: float
    align: str = RIGHT


class _Row(NamedTuple):
    """A row of a table. group: the plan that stands here; shaded: whether it is set off."""

    cells: tuple[str, ...]
    group: str = ""
    shaded: bool = False


_PLANS = (
    _Column("", 19),
    _Column("plan", 34, LEFT),
    _Column("nodes", 40),
    _Column("modules folded", 88),
    _Column("joined", 44),
    _Column("", 12),
    _Column("why", 0, LEFT),
)
_STEPS = (
    _Column("step", 34),
    _Column("level t", 56),
    _Column("asked for", 62),
    _Column("nodes", 46),
    _Column("modules folded", 88),
    _Column("", 12),
    _Column("what the step does", 0, LEFT),
)


def schedule_chart(
    model: str,
    schedule: CollapseSchedule,
    auto: CollapsePlan,
    strongest: CollapsePlan,
    theme: Theme,
    lines: Sequence[str],
) -> Sheet:
    """The figure of one schedule. model: its name; lines: further ones below the title."""
    writer = _Writer(schedule, auto, strongest, theme)
    writer.title(model, lines)
    writer.chart()
    writer.plans()
    writer.steps()
    page = theme.page
    return Sheet(
        f"collapse schedule of {model}",
        WIDTH,
        writer.top,
        page.background,
        page.family,
        page.bold,
        72 * page.pad,
        tuple(writer.marks),
    )


class _Writer:
    """Writes the parts from top to bottom. top: where the next one begins."""

    def __init__(self, schedule: CollapseSchedule, auto: CollapsePlan, strongest: CollapsePlan, theme: Theme) -> None:
        self._steps, self._plans, self._theme = schedule.steps, (auto, strongest), theme
        self._band = auto.band
        self._size, self._text, self._quiet = theme.fonts.secondary, theme.page.text, theme.page.secondary
        self._tint = theme.roles["neutral"].fill or theme.page.background
        self.marks: list[Shape | Words | Line] = []
        self.top = 0.0

    # -- title
    def title(self, model: str, lines: Sequence[str]) -> None:
        base = self._theme.fonts.base
        self._words("title", f"{_fitting(model, base * 1.2)}: how it folds", base, bold=True)
        full, band = self._steps[0].visible_count, self._band
        facts = f"{full} nodes in the full drawing; a readable page has up to {band}; {len(self._steps) - 1} steps"
        for k, line in enumerate((facts, *lines)):
            self._words(f"caption:{k + 1}", _fitting(line, self._size), self._size, color=self._quiet)
        self.top += GAP / 2

    # -- chart
    def chart(self) -> None:
        ticks = _ticks(self._steps[0].visible_count)
        left, top, width = AXIS, self.top + 1.5 * ROW, WIDTH - AXIS - MARK
        bottom = top + CHART
        self._words("axis:nodes", "nodes drawn", self._size, color=self._quiet)

        def place(t: float, count: float) -> tuple[float, float]:
            return left + t * width, bottom - CHART * count / ticks[-1]

        _, edge = place(0, min(self._band, ticks[-1]))
        self.marks.append(Shape("band", Area(left, edge, width, bottom - edge), _plain(self._tint, None), ground=True))
        self._band_label(left, edge, bottom)
        self._axes(ticks, place)
        path: list[tuple[float, float]] = [place(0, self._steps[0].visible_count)]
        for step in self._steps[1:]:
            path += [(place(step.t, 0)[0], path[-1][1]), place(step.t, step.visible_count)]
        path.append((place(1, 0)[0], path[-1][1]))
        self.marks.append(Line("schedule", tuple(path), self._text, 1.25))
        for k, step in enumerate(self._steps):
            self._dot(f"step:{k}", place(step.t, step.visible_count), DOT, self._text)
        for plan in self._plans:
            step = self._start_of(plan)
            spot, start = place(step.t, plan.nodes), place(step.t, step.visible_count)
            if plan.nodes != step.visible_count:
                self.marks.append(Line(f"{plan.mode}:evened", (start, spot), self._text, THIN, dashed=True))
            self._dot(f"{plan.mode}", spot, MARK, self._fill(plan))
        self.top = bottom + ROW + self._size + GAP

    def _axes(self, ticks: Sequence[int], place: Callable[[float, float], tuple[float, float]]) -> None:
        left, bottom = place(0, 0)
        right, top = place(1, ticks[-1])
        self.marks.append(Line("axis", ((left, top), (left, bottom), (right, bottom)), self._quiet, RULE))
        for tick in ticks:
            _, y = place(0, tick)
            self.marks.append(Line(f"axis:tick:{tick}", ((left - 4, y), (left, y)), self._quiet, RULE))
            area = Area(0, y - ROW / 2, left - 7, ROW)
            self.marks.append(Words(f"axis:{tick}", str(tick), area, self._size, self._quiet, RIGHT))
        for t in LEVELS:
            x, _ = place(t, 0)
            self.marks.append(Line(f"axis:tick:t{t:g}", ((x, bottom), (x, bottom + 4)), self._quiet, RULE))
            area = Area(x - 20, bottom + 5, 40, ROW)
            self.marks.append(Words(f"axis:t{t:g}", f"{t:g}", area, self._size, self._quiet, CENTER))
        area = Area(left, bottom + ROW + 2, right - left, ROW)
        self.marks.append(Words("axis:t", "level t of collapse=t", area, self._size, self._quiet, CENTER))

    def _band_label(self, left: float, edge: float, bottom: float) -> None:
        """Inside the band, or above it where it is too low."""
        high = bottom - edge >= ROW
        top = bottom - ROW - 1 if high else edge - ROW
        text = f"readable: up to {self._band} nodes"
        area = Area(left + 6, top, text_width(text, self._size) * 1.3, ROW)
        self.marks.append(Words("band:words", text, area, self._size, self._quiet))

    def _start_of(self, plan: CollapsePlan) -> Step:
        """The step that a plan starts from, the first of those at its level."""
        level = plan.level or 0.0
        return max((step for step in self._steps if step.t <= level), key=lambda step: step.t)

    def _fill(self, plan: CollapsePlan) -> str:
        role = "branch_test" if plan is self._plans[0] else "frozen"
        return self._theme.roles[role].fill or self._text

    def _dot(self, name: str, spot: tuple[float, float], size: float, fill: str) -> None:
        area = Area(spot[0] - size / 2, spot[1] - size / 2, size, size)
        self.marks.append(Shape(name, area, _plain(fill, self._text, "circle")))

    # -- tables
    def plans(self) -> None:
        rows: list[_Row] = []
        for plan in self._plans:
            mode, joined = str(plan.mode), _joined(plan)
            why = plan.reason + (", by the simple planner" if plan.planner == FALLBACK else "")
            cells = ("", mode, str(plan.nodes), str(len(plan.collapsed)), str(len(joined)), "", why)
            rows.append(_Row(cells, mode))
            if joined:
                rows.append(_Row((*[""] * (len(cells) - 1), f"joined: {', '.join(joined)}")))
        self._table("plan", _PLANS, rows)

    def steps(self) -> None:
        auto = self._start_of(self._plans[0])
        rows = [
            _Row(
                (
                    str(k),
                    f"{step.t:.4f}",
                    str(step.target_count),
                    str(step.visible_count),
                    str(len(step.collapsed_addresses)),
                    "",
                    "draws everything" if k == 0 else step.event,
                ),
                shaded=step is auto,
            )
            for k, step in enumerate(self._steps)
        ]
        if len(rows) > MOST_STEPS:
            hidden = rows[MOST_STEPS - LAST_STEPS : -LAST_STEPS]
            gap = _Row(("", "", "", "", "", "", f"{ELLIPSIS} {len(hidden)} further steps"))
            rows = [*rows[: MOST_STEPS - LAST_STEPS], gap, *rows[-LAST_STEPS:]]
        self._table("step", _STEPS, rows)

    def _table(self, name: str, columns: Sequence[_Column], rows: Sequence[_Row]) -> None:
        lefts = _lefts(columns)
        self._cells(f"{name}:head", columns, lefts, [column.title for column in columns], self._quiet)
        self._rule(f"{name}:rule:1")
        for k, row in enumerate(rows):
            if row.shaded:
                look = _plain(self._tint, None)
                self.marks.append(Shape(f"{name}:{k}:shade", Area(0, self.top, WIDTH, ROW), look, ground=True))
            plan = next((plan for plan in self._plans if str(plan.mode) == row.group), None)
            if plan is not None:
                self._dot(f"{name}:{k}:mark", (lefts[0] + 8, self.top + ROW / 2), MARK, self._fill(plan))
            self._cells(f"{name}:{k}", columns, lefts, row.cells, self._text)
        self._rule(f"{name}:rule:2")
        self.top += GAP

    def _cells(
        self, name: str, columns: Sequence[_Column], lefts: Sequence[float], cells: Sequence[str], color: str
    ) -> None:
        for k, (column, left, text) in enumerate(zip(columns, lefts, cells, strict=True)):
            if text:
                width = column.width or WIDTH - left
                shown = _fitting(text, self._size, width)
                area = Area(left, self.top, width, ROW)
                self.marks.append(Words(f"{name}:{k}", shown, area, self._size, color, column.align))
        self.top += ROW

    def _rule(self, name: str) -> None:
        self.marks.append(Line(name, ((0.0, self.top), (WIDTH, self.top)), self._quiet, THIN))

    def _words(self, name: str, text: str, size: float, *, color: str = "", bold: bool = False) -> None:
        """One line over the whole width."""
        height = size * 1.4
        self.marks.append(Words(name, text, Area(0, self.top, WIDTH, height), size, color or self._text, bold=bold))
        self.top += height


def _joined(plan: CollapsePlan) -> list[str]:
    """The nodes that stand for several modules, ops or outputs, by name."""
    return [part.name.partition(":")[2] or part.name for part in (*plan.folds, *plan.segments, *plan.bundles)]


def _plain(fill: str, stroke: str | None, shape: str = "box") -> NodeStyle:
    return NodeStyle(shape=shape, peripheries=1, fill=fill, stroke=stroke, stroke_width=RULE if stroke else 0.0)


def _lefts(columns: Sequence[_Column]) -> list[float]:
    lefts = [0.0]
    for column in columns[:-1]:
        lefts.append(lefts[-1] + column.width)
    return lefts


def _fitting(text: str, size: float, width: float = WIDTH) -> str:
    return truncate(text, max(int(width / (size * CHARACTER)), 1))


def _ticks(highest: int) -> list[int]:
    """Round numbers from 0 to the first that is not below the highest, five steps at most."""
    step = next(size for size in _steps() if math.ceil(highest / size) <= 5)
    return [step * k for k in range(max(math.ceil(highest / step), 1) + 1)]


def _steps() -> Iterator[int]:
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10
