"""Area by a value, never at the cost of a text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from statistics import median

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.drawings import draw_trace
from torchlens.scene.label_size import natural_size
from torchlens.scene.model import ChannelState, Scene, SceneNode, TextLine
from torchlens.scene.node_spec import NodeSpec
from torchlens.scene.sizes import CAP, DIMS_CAP

MakeScene = Callable[..., Scene]


def size(scene: Scene) -> ChannelState:
    assert scene.encoding is not None
    assert scene.encoding.size is not None
    return scene.encoding.size


def areas(scene: Scene) -> dict[str, float]:
    """Area of each sized node in areas of the box it starts from."""
    sized = [node for node in scene.nodes if node.style.width is not None]
    own = {node.name: natural_size(node, scene.page) for node in sized}
    usual = median(w for w, _ in own.values()), median(h for _, h in own.values())
    found: dict[str, float] = {}
    for node in sized:
        width, height = own[node.name]
        base = (width, height) if width > usual[0] or height > usual[1] else usual
        found[node.name] = 5184 * (node.style.width or 0) * (node.style.height or 0) / (base[0] * base[1])
    return found


def keys(scene: Scene) -> list[str]:
    return [line.text for line in scene.root if isinstance(line, TextLine) and line.kind == "key"]


@pytest.mark.parametrize(("source", "cap"), [("bytes", CAP), ("time", CAP), ("dims", DIMS_CAP)])
def test_areas_go_from_one_box_to_the_cap(scene: MakeScene, source: str, cap: float) -> None:
    found = areas(scene(builders.demo(), size_by=source))
    assert min(found.values()) == pytest.approx(1, rel=0.01)
    assert max(found.values()) == pytest.approx(cap, rel=0.01)


def test_area_is_linear_in_the_scaled_value(scene: MakeScene) -> None:
    data = builders.demo()
    made = scene(data, size_by="bytes", size_scale="linear", size_cap=5.0)
    found = areas(made)
    sizes = {name: data.nbytes[data.index_of[name]] or 0 for name in found}
    low, high = min(sizes.values()), max(sizes.values())
    for name, area in found.items():
        assert area == pytest.approx(1 + 4 * (sizes[name] - low) / (high - low), rel=0.01)


def test_a_larger_value_never_has_the_smaller_area(scene: MakeScene) -> None:
    data = builders.residual()
    found = areas(scene(data, size_by="bytes"))
    ordered = sorted(found, key=lambda name: data.nbytes[data.index_of[name]] or 0)
    assert [found[name] for name in ordered] == pytest.approx(sorted(found.values()), rel=0.01)


def test_a_long_text_starts_from_its_own_box_and_inflates_nobody_else(scene: MakeScene) -> None:
    def lengthen(record: object, spec: NodeSpec) -> None:
        if spec.lines[0].startswith("relu_1_4"):
            spec.lines.append("a row that is very much longer than whatever else there is on the page " * 2)

    data = builders.demo()
    plain, long = scene(data, size_by="bytes"), scene(data, size_by="bytes", node_spec_fn=lengthen)
    for before, after in zip(plain.nodes, long.nodes, strict=True):
        if before.name == "relu_1_4":
            width, height = natural_size(after, long.page)
            assert 72 * (after.style.width or 0) > width
            assert 72 * (after.style.height or 0) > height
        else:  # only the middle of the boxes moves, by one place
            assert after.style.width == pytest.approx(before.style.width, rel=0.3)
            assert after.style.height == before.style.height


def test_size_alone_changes_no_colour(scene: MakeScene) -> None:
    plain, sized = scene(builders.demo()), scene(builders.demo(), size_by="bytes")
    for before, after in zip(plain.nodes, sized.nodes, strict=True):
        assert (before.style.fill, before.style.stroke) == (after.style.fill, after.style.stroke)


def test_the_key_is_one_line_with_quantity_and_ends(scene: MakeScene) -> None:
    assert keys(scene(builders.demo(), size_by="bytes")) == ["size: output bytes, 40 B ... 4 KB"]
    assert keys(scene(builders.demo(), size_by="dims")) == ["size: elements per batch item, 10 ... 1.02K"]
    assert keys(scene(builders.demo(), size_by="bytes", show_legend=False)) == []


@pytest.mark.parametrize(("value", "text"), [(None, "size: time, no values"), (1e-4, "size: time, all 0.1 ms")])
def test_without_a_range_nothing_is_sized(scene: MakeScene, value: float | None, text: str) -> None:
    data = builders.demo()
    data.nodes.time_s = [value] * len(data.nodes)
    made = scene(data, size_by="time")
    assert [node.style for node in made.nodes] == [node.style for node in scene(data).nodes]
    assert keys(made) == [text]
    assert size(made).encoded == 0


def test_a_node_spec_that_sets_a_width_keeps_it_and_the_beaten_size_is_remembered(scene: MakeScene) -> None:
    def widen(record: object, spec: NodeSpec) -> None:
        spec.width = 9.0

    for node in scene(builders.demo(), size_by="bytes", node_spec_fn=widen).nodes:
        assert node.style.width == 9.0
        assert node.origin["width"].startswith("node_spec_fn")
        assert node.origin["height"] == "size_by bytes"
        assert node.trail["width"][0].source == "size_by bytes"


def test_a_rolled_node_without_one_value_is_refused(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match=r"size_by_rolled_varying.*func_duration.*3 passes"):
        scene(builders.loop(3), size_by="func_duration", rolled=True)
    scene(builders.loop(3), size_by="time", rolled=True)
    scene(builders.loop(3), size_by="dims", rolled=True)


def test_a_negative_value_is_refused(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_value_invalid\].*-1"):
        scene(builders.demo(), size_by=lambda record: -1)


def test_a_box_has_the_sum(scene: MakeScene) -> None:
    made = scene(builders.demo(), size_by="bytes", depth=1)
    assert size(made).domain == (40.0, 18448.0)
    assert size(made).aggregation == ("module boxes: sum over member ops",)


@pytest.mark.parametrize("name", ["demo", "residual", "multi_output", "loop", "awkward"])
@pytest.mark.parametrize("theme", ["torchlens", "high_contrast"])
def test_the_engine_draws_every_node_as_large_as_asked_so_areas_are_true(name: str, theme: str) -> None:
    drawing = draw_trace(
        getattr(builders, name)(), None, {"size_by": "time", "file_format": "svg", "theme": theme, "depth": 2}
    )
    drawn = _extents(drawing.data)
    scene = drawing._scene
    sized = [node for node in scene.nodes if node.style.width is not None]
    assert sized
    for node in sized:
        width, height = drawn[node.name]
        assert width == pytest.approx(72 * (node.style.width or 0), abs=2), node.name
        assert height == pytest.approx(72 * (node.style.height or 0), abs=2), node.name


def _extents(svg: bytes) -> dict[str, tuple[float, float]]:
    """Width and height of the outline of each node, in points."""
    found: dict[str, tuple[float, float]] = {}
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        if not (group.get("class") or "").startswith("node"):
            continue
        sides: list[tuple[float, float]] = []
        for shape in group.iter():
            if shape.tag.endswith("ellipse"):
                sides.append((2 * float(shape.get("rx") or 0), 2 * float(shape.get("ry") or 0)))
            elif shape.tag.endswith("polygon"):
                points = [tuple(map(float, pair.split(","))) for pair in (shape.get("points") or "").split()]
                sides.append(tuple(max(axis) - min(axis) for axis in zip(*points, strict=True)))  # type: ignore[arg-type]
        if sides:
            found[str(group.get("id"))] = max(sides)
    return found


def test_no_text_is_larger_than_the_estimate_of_its_box() -> None:
    for make in (builders.demo, builders.residual, builders.multi_output, builders.awkward):
        drawing = draw_trace(make(), None, {"file_format": "svg"})
        drawn = _extents(drawing.data)
        for node in drawing._scene.nodes:
            if node.name in drawn and not node.pictures:
                _near(node, drawing._scene, drawn[node.name])


def _near(node: SceneNode, scene: Scene, drawn: tuple[float, float]) -> None:
    width, height = natural_size(node, scene.page)
    assert width == pytest.approx(drawn[0], rel=0.08, abs=6), node.name
    assert height == pytest.approx(drawn[1], rel=0.08, abs=6), node.name


def test_sizes_are_least_sizes(scene: MakeScene) -> None:
    """Of a fixed size the engine would cut texts that are longer than it was told."""
    drawing = draw_trace(builders.demo(), None, {"size_by": "bytes", "file_format": "dot"})
    sized = [line for line in drawing.dot.splitlines() if " width=" in line]
    assert sized
    assert all("fixedsize=false" in line.replace('"', "") for line in sized)

    def fix(record: object, spec: NodeSpec) -> None:
        spec.width, spec.height, spec.fixedsize = 2.0, 1.0, True

    made = scene(builders.demo(), size_by="bytes", node_spec_fn=fix)
    assert {(node.style.width, node.style.height, node.style.fixed_size) for node in made.nodes} == {(2.0, 1.0, "true")}
