"""Full drawings of hand-made traces, as the planner is told them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
def address() -> Callable[[TraceData, str], int]:
    """The first call of a module by its address."""
    return lambda data, name: data.modules[data.module_of[name]].calls[0]
