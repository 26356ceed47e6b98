"""Full drawings of hand-made traces, as the planner is told them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlens.plan.collapse.quality import choose, readable_band
from torchlens.plan.collapse.schedule import make_path
from torchlens.plan.collapse.units import Units, count_units
from torchlens.plan.pipeline import full_drawing
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve


@pytest.fixture
def units() -> Callable[..., Units]:
    def make(data: TraceData, **options: object) -> Units:
        return count_units(full_drawing(data, resolve(data, options))[0])

    return make


@pytest.fixture
def auto() -> Callable[[Units], tuple[int, list[str], str]]:
    """What `collapse="auto"` draws: how many nodes, the modules that are boxes, and why."""

    def choose_auto(units: Units) -> tuple[int, list[str], str]:
        band = readable_band(units.data)
        choice = choose(make_path(units, band, None), "auto", band)
        data, cut = units.data, choice.board.cut()
        boxes = dict.fromkeys(data.modules[data.calls[c].module].address for c in cut.boxed if c is not None)
        return choice.board.count, list(boxes), choice.reason

    return choose_auto


@pytest.fixture
def address() -> Callable[[TraceData, str], int]:
    """The first call of a module by its address."""
    return lambda data, name: data.modules[data.module_of[name]].calls[0]
