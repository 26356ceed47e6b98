"""Scenes of hand-made traces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.scene import build
from torchlens.scene.model import Scene
from torchlens.settings.compose import resolve


@pytest.fixture
def scene() -> Callable[..., Scene]:
    def make(data: TraceData, **options: object) -> Scene:
        request = resolve(data, options)
        return build(make_plan(data, request), data, request)

    return make


@pytest.fixture
def rows(scene: Callable[..., Scene]) -> Callable[..., list[str]]:
    """The lines of one node's rows."""

    def make(data: TraceData, name: str, **options: object) -> list[str]:
        found = next(node for node in scene(data, **options).nodes if node.name == name)
        return [line for row in found.rows for line in row.lines]

    return make
