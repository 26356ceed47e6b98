"""The key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.scene.model import BarLine, Scene, SwatchLine, TextLine

MakeScene = Callable[..., Scene]


def key(scene: Scene) -> list[object]:
    return [line for line in scene.root if not isinstance(line, TextLine) or line.kind == "key"]


def words(scene: Scene) -> list[str]:
    return [line.low if isinstance(line, BarLine) else line.text for line in key(scene)]  # type: ignore[attr-defined]


def test_a_plain_drawing_has_no_key(scene: MakeScene) -> None:
    assert key(scene(builders.demo())) == []
    assert key(scene(builders.demo(), color_by="time", show_legend=False)) == []


def test_a_channel_brings_a_bar_with_both_ends_and_the_rings(scene: MakeScene) -> None:
    bar, *rings = key(scene(builders.demo(), color_by="time"))
    assert isinstance(bar, BarLine)
    assert (bar.low, bar.high) == ("time: 10 us", "50 us")
    assert len(bar.cells) == 48
    assert [(ring.text, ring.stroke_width) for ring in rings] == [("input", 3.0), ("output", 3.0)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("time", "text"), [(None, "time: no values"), (1e-4, "time: all 0.1 ms")])
def test_without_a_range_the_key_is_one_line(scene: MakeScene, time: float | None, text: str) -> None:
    data = builders.demo()
    data.nodes.time_s = [time] * len(data.nodes)
    assert words(scene(data, color_by="time")) == [text]


def test_the_legend_lists_the_fills_and_shapes_in_use(scene: MakeScene) -> None:
    assert words(scene(builders.demo(), show_legend=True)) == [
        "input", "output", "trainable parameters", "other operation", "ellipse: operation",
        "rectangle: a module's one operation", "double border: uses hidden buffers",
    ]  # fmt: skip
    assert words(scene(builders.state(), show_legend=True)) == [
        "input", "output", "frozen parameters", "trainable and frozen", "other operation", "ellipse: operation",
        "rectangle: a module's one operation", "cylinder: buffer version", "dashed: not computed from the input",
    ]  # fmt: skip
    assert "3-D box: module drawn as one node" in words(scene(builders.demo(), show_legend=True, depth=1))


def test_a_sample_has_the_fill_of_the_nodes_it_explains(scene: MakeScene) -> None:
    made = scene(builders.demo(), show_legend=True, theme="dark")
    node = next(node for node in made.nodes if node.role == "trainable")
    swatch = next(line for line in key(made) if isinstance(line, SwatchLine) and line.text == "trainable parameters")
    assert (swatch.fill, swatch.stroke) == (node.style.fill, node.style.stroke)


def test_under_a_channel_the_legend_explains_no_fill_that_is_not_there(scene: MakeScene) -> None:
    found = words(scene(builders.demo(), show_legend=True, color_by="time"))
    assert found[:3] == ["time: 10 us", "input", "output"]
    assert "trainable parameters" not in found


def test_a_focused_module_brings_a_reading_key(scene: MakeScene) -> None:
    data = builders.residual(3)
    lines = key(scene(data, module="blocks.1"))
    assert [(line.text, line.fill) for line in lines] == [  # type: ignore[attr-defined]
        ("from: feeds this module", "#98fb98"), ("to: reads from it", "#ff9999"),
    ]  # fmt: skip
    assert words(scene(data, module="head")) == ["from: feeds this module"]
    assert words(scene(data, module="embed")) == ["to: reads from it"]
    assert words(scene(data, module="self")) == []
    assert words(scene(data, module="blocks.1", show_legend=False)) == []


def test_a_stub_is_no_input_or_output_of_the_key(scene: MakeScene) -> None:
    found = words(scene(builders.residual(3), module="blocks.1", show_legend=True))
    assert "input" not in found
    assert "output" not in found
    assert found.count("from: feeds this module") == found.count("to: reads from it") == 1
    assert "output" in words(scene(builders.residual(3), module="head", show_legend=True))


def test_under_a_channel_stubs_are_rings_in_the_key(scene: MakeScene) -> None:
    bar, *rings = key(scene(builders.residual(3), module="blocks.1", color_by="bytes"))
    assert isinstance(bar, BarLine)
    assert [(ring.text, ring.fill, ring.stroke, ring.stroke_width) for ring in rings] == [  # type: ignore[attr-defined]
        ("from: feeds this module", "#ffffff", "#98fb98", 3.0), ("to: reads from it", "#ffffff", "#ff9999", 3.0),
    ]  # fmt: skip


def test_a_theme_that_fills_buffers_has_them_in_the_key(scene: MakeScene) -> None:
    theme = {"extends": "torchlens", "roles": {"buffer": {"fill": "#aaccee"}, "box": {"fill": "#eeccaa"}}}
    lines = key(scene(builders.state(), theme=theme, show_legend=True))
    found = {line.text: line.fill for line in lines if isinstance(line, SwatchLine)}
    assert found["buffer version"] == "#aaccee"
    assert "constant" not in found
    assert "module without parameters" not in found


def test_the_key_of_a_branch_names_its_test(scene: MakeScene) -> None:
    assert "branch test" in words(scene(builders.branch(), show_legend=True))
    assert "branch test" not in words(scene(builders.chain(), show_legend=True))
