"""One merge of style layers, and its explanation. Who wins over whom: `tests/contract/test_precedence.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.errors import UnknownNameError
from torchlens.plan import make_plan
from torchlens.scene import build
from torchlens.scene.layers import WORDS, Patch, StyleLayer, explain, merge, overlay, setting_layer
from torchlens.scene.model import NodeStyle, Scene, SceneNode
from torchlens.scene.node_spec import NodeSpec
from torchlens.settings.compose import DrawRequest, resolve

MakeScene = Callable[..., Scene]


def drawn(**options: object) -> tuple[Scene, DrawRequest]:
    data = builders.demo()
    request = resolve(data, options)
    return build(make_plan(data, request), data, request), request


def patch(layer: StyleLayer, attribute: str, value: object) -> Patch:
    return Patch(layer, layer.name.lower(), NodeStyle(**{attribute: value}))  # type: ignore[arg-type]


def bare(*patches: Patch) -> SceneNode:
    style, origin, trail = merge(patches)
    return SceneNode("x", "op", "op", (), style, origin, "", None, (), (), trail)


def test_all_layers_at_once_leave_the_highest() -> None:
    patches = [patch(layer, "fill", f"#00000{int(layer)}") for layer in StyleLayer]
    for order in (patches, patches[::-1], patches[3:] + patches[:3]):
        node = bare(*order)
        assert node.style.fill == f"#00000{int(StyleLayer.NODE_SPEC)}"
        assert [step.layer for step in node.trail["fill"]] == list(StyleLayer)


def test_within_a_layer_the_later_patch_wins_and_unset_attributes_change_nothing() -> None:
    first = Patch(StyleLayer.THEME, "first", NodeStyle(fill="#000000", dash="solid"))
    second = Patch(StyleLayer.THEME, "second", NodeStyle(dash="dashed"))
    for node in (bare(first, second), overlay(bare(first), second)):
        assert node.style == NodeStyle(fill="#000000", dash="dashed")
        assert node.origin == {"fill": "first", "dash": "second"}


def test_the_order_of_the_layers_is_fixed() -> None:
    names = ["THEME", "VIEW", "KEYWORD", "MARK", "CHANNEL", "VIEW_STYLE", "NODE_SPEC"]
    assert [layer.name for layer in sorted(StyleLayer)] == names
    assert [setting_layer(label) for label in ("theme:paper", "view:speed", "explicit", "figure:one")] == [
        StyleLayer.THEME, StyleLayer.VIEW, StyleLayer.KEYWORD, StyleLayer.KEYWORD,
    ]  # fmt: skip


def test_explain_names_who_set_what() -> None:
    scene, request = drawn(view="speed", theme="paper", color_scale="linear", font_size=11)
    text = explain(scene, "conv2d_1_1", request)
    assert "conv2d_1_1 (op, role trainable)" in text
    assert "color_by time" in text
    assert "theme paper, role trainable" in text
    assert "font_size from explicit" in text
    assert "theme < view < keyword < mark < channel < view's own styling < node_spec_fn" in text
    assert "theme < view < collapse < encoding < figure < explicit (keyword or command line)" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["color_scale"] == ["linear", "explicit", "view:speed", "=", "rank"]
    assert (rows["theme"], rows["view"]) == (["paper"], ["speed"])


def test_explain_finds_a_box_by_what_it_hides_and_by_address() -> None:
    scene, request = drawn(depth=1)
    text = explain(scene, "conv2d_1_1", request)
    assert text.startswith("module:features:1 (module")
    assert "conv2d_1_1 is drawn as part of it" in text
    assert explain(scene, "@features", request).startswith("module:features:1")
    assert explain(scene, "head", request).startswith("linear_1_12")


def test_explain_says_so_when_nothing_was_set() -> None:
    scene, request = drawn()
    text = explain(scene, "input_1", request)
    assert text.endswith("view     none\nall others are at their defaults")
    assert "over" not in text.split()


def test_every_layer_has_words() -> None:
    assert list(WORDS) == list(StyleLayer)


def test_explain_refuses_an_unknown_name_and_names_the_nearest() -> None:
    scene, request = drawn()
    with pytest.raises(UnknownNameError, match="conv2d_1_1") as caught:
        explain(scene, "conv2d_1_2", request)
    assert caught.value.code == "label_not_found"


def test_every_attribute_of_every_node_has_an_origin(scene: MakeScene) -> None:
    for node in scene(builders.state(), color_by="bytes", font_size=9).nodes:
        values = {name: getattr(node.style, name) for name in NodeStyle.__dataclass_fields__}
        assert {name for name, value in values.items() if value is not None} == set(node.origin)


def test_explain_finds_every_node_by_its_own_id() -> None:
    scene, request = drawn(depth=1, show_buffers="always")
    for node in scene.nodes:
        assert str(explain(scene, node.name, request)).startswith(f"{node.name} (")


def test_explain_names_the_beaten_layers_of_an_attribute() -> None:
    def redden(record: object, spec: NodeSpec) -> None:
        spec.fillcolor = "#ff0000"

    theme = {"extends": "paper", "draw": {"font_size": 8}}
    view = {"question": "q", "draw": {"font_size": 9}}
    scene, request = drawn(theme=theme, view=view, font_size=11, color_by="time", size_by="bytes", node_spec_fn=redden)
    style, settings = explain(scene, "conv2d_1_1", request).split("\nsetting")
    lines = {line.split()[0]: line.partition("  ")[2] for line in style.splitlines() if line.strip()}
    assert "node_spec_fn" in lines["fill"].partition("color_by")[0]
    assert lines["fill"].index("color_by time = ") < lines["fill"].index(
        "; theme paper (changed), role trainable = #d9d9d9"
    )
    assert "size_by bytes" in lines["width"]
    (size,) = [line for line in settings.splitlines() if line.startswith("font_size")]
    assert size.split(maxsplit=3)[1:] == ["11", "explicit", "view:given = 9; theme:paper (changed) = 8"]


def test_how_a_fill_is_laid_out_goes_with_the_fill() -> None:
    halves = Patch(StyleLayer.MARK, "mark", NodeStyle(fill="#000000:#ffffff", split=True))
    one = Patch(StyleLayer.CHANNEL, "channel", NodeStyle(fill="#ff0000"))
    assert bare(halves).style.split is True
    for node in (bare(halves, one), overlay(bare(halves), one), overlay(bare(one), halves)):
        assert (node.style.fill, node.style.split) == ("#ff0000", None)
        assert "split" not in node.origin
