"""Sizes before the layout: as large as what the engine draws, and hardly larger."""

from __future__ import annotations

import re

import pytest

from tests import builders
from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.render import dot, measure
from torchlens.render.graphviz import EMBEDDED
from torchlens.scene import build, label_size
from torchlens.scene.model import BarLine, NodeStyle, Row, Scene, SceneNode, TextLine
from torchlens.settings.compose import resolve


def scene_of(data: TraceData, **options: object) -> Scene:
    request = resolve(data, options)
    return build(make_plan(data, request), data, request)


def sizes_drawn(scene: Scene) -> dict[str, tuple[float, float]]:
    """Size of each node by the engine, without further borders."""
    text = EMBEDDED.run(dot.write(scene), "plain").decode()
    found = re.findall(r"^node n(\d+) \S+ \S+ (\S+) (\S+)", text, re.MULTILINE)
    return {k: (72 * float(width), 72 * float(height)) for k, width, height in found}


@pytest.mark.parametrize("sample", ["demo", "state", "multi_output", "residual"])
def test_nodes_are_as_large_as_the_engine_draws_them(sample: str) -> None:
    scene = scene_of(builders.SAMPLES[sample](), show_buffers="always")
    drawn = sizes_drawn(scene)
    for k, node in enumerate(scene.nodes):
        width, height = measure.node_size(node, scene.page)
        border = label_size.outer_border(node.style)
        assert 0 <= width - border - drawn[str(k)][0] < 0.1 * width
        assert 0 <= height - border - drawn[str(k)][1] + 0.1 < 0.1 * height


def node(style: NodeStyle, *lines: str) -> SceneNode:
    return SceneNode("n", "op", "op", (Row("name", lines),), style, {}, "", None, ())


def test_a_wished_size_is_kept() -> None:
    page = scene_of(builders.chain()).page
    wide = measure.node_size(node(NodeStyle(shape="box", width=5.0, height=3.0), "a"), page)
    assert wide == (360, 216)
    fixed = NodeStyle(shape="box", width=0.5, height=0.5, fixed_size="true")
    assert measure.node_size(node(fixed, "a long line of text"), page) == (36, 36)


def test_text_grows_with_its_size_and_weight() -> None:
    assert measure.text_width("", 14) == 0
    assert measure.text_width("linear", 28) == pytest.approx(2 * measure.text_width("linear", 14))
    assert measure.text_width("linear", 14, bold=True) > measure.text_width("linear", 14)
    assert measure.text_width("\u6f22", 14) > 8


def test_the_root_label_is_as_wide_as_its_widest_line() -> None:
    page = scene_of(builders.chain()).page
    line = TextLine("header", "wide " * 20, 10, "#000000")
    bar = BarLine("low", "high", ("#000000",) * 48, 10, "#000000")
    width, height = measure.root_size((line, bar), page, 18, 2, 18)
    assert width >= measure.text_width(line.text, 10)
    assert height > 18 + 2 * 12
    assert measure.root_size((bar,), page, 0, 2, 18)[0] > 96
    assert measure.root_size((), page, 18, 2, 18) == (0, 0)


def test_the_smallest_text() -> None:
    scene = scene_of(builders.multi_output())
    assert measure.smallest_text(scene) == scene.page.edge_font_size
    assert measure.smallest_text(scene_of(builders.chain())) == scene.page.font_size
    assert measure.smallest_text(scene_of(builders.chain(), caption="small")) == 10
