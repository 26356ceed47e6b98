"""Plans of hand-made traces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlens.plan import make_plan
from torchlens.plan.graph import Plan
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve


@pytest.fixture
def plan() -> Callable[..., Plan]:
    def make(data: TraceData, **options: object) -> Plan:
        return make_plan(data, resolve(data, options))

    return make
