"""Whatever else a drawing does, a hook that sets width, height or the number of borders of a node has the last word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests import builders
from torchlens.drawings import draw_trace
from torchlens.scene.node_spec import NodeSpec

SETTINGS: list[dict[str, Any]] = [
    {},
    {"theme": "paper"},
    {"theme": "dark"},
    {"rolled": True},
    {"depth": 1},
    {"color_by": "time"},
    {"view": "speed"},
    {"show_buffers": "always"},
    {"font_size": 20},
    {"layout": "rank"},
]


def resize(record: Any, spec: NodeSpec) -> None:
    spec.width, spec.height = 8.5, 5.25
    spec.extra_attrs["peripheries"] = "3"


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", builders.SAMPLES)
def test_sizes_and_borders_of_a_hook_win(name: str, settings: dict[str, Any]) -> None:
    drawing = draw_trace(
        builders.SAMPLES[name](), None, {"node_spec_fn": resize, "collapsed_node_spec_fn": resize, **settings}
    )
    nodes = re.findall(r"^ *n\d+ \[id=.*$", drawing.dot, re.MULTILINE)
    assert len(nodes) >= len(drawing._scene.nodes) > 2
    for line in nodes:
        # The last one of a name counts.
        for attribute, value in (("width", 8.5), ("height", 5.25), ("peripheries", 3)):
            found = re.findall(rf' {attribute}="?([\d.]+)"?', line)
            assert found
            assert float(found[-1]) == value


@pytest.mark.parametrize("engine", [None, "system"])
def test_the_engine_draws_that_size(engine: str | None) -> None:
    def wide(record: Any, spec: NodeSpec) -> None:
        if getattr(record, "func_name", "") == "relu":
            spec.width, spec.height, spec.shape = 5.0, 2.0, "box"

    from torchlens.render.graphviz import SYSTEM

    if engine == "system" and SYSTEM.locate() is None:
        pytest.skip("needs an installed Graphviz")
    text = draw_trace(builders.chain(), None, {"node_spec_fn": wide, "engine": engine}).data.decode()
    (points,) = re.findall(r'id="relu_1_2".*?<polygon [^>]*points="([^"]*)"', text, re.DOTALL)
    xs, ys = zip(*(map(float, pair.split(",")) for pair in points.split()), strict=True)
    assert max(xs) - min(xs) == pytest.approx(360, abs=1)
    assert max(ys) - min(ys) == pytest.approx(144, abs=1)
