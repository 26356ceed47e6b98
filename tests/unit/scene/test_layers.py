"""One merge of style layers, and its explanation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.errors import UnknownNameError
from torchlens.plan import make_plan
from torchlens.scene import build
from torchlens.scene.layers import Patch, StyleLayer, explain, merge, overlay, setting_layer
from torchlens.scene.model import NodeStyle, Scene, SceneNode
from torchlens.scene.node_spec import NodeSpec
from torchlens.settings.compose import DrawRequest, resolve

MakeScene = Callable[..., Scene]


def drawn(**options: object) -> tuple[Scene, DrawRequest]:
    data = builders.demo()
    request = resolve(data, options)
    return build(make_plan(data, request), data, request), request


PAIRS = [(low, high) for low in StyleLayer for high in StyleLayer if low < high]
# Per attribute of a style two values that differ.
VALUES: dict[str, tuple[object, object]] = {
    "shape": ("box", "oval"),
    "peripheries": (1, 2),
    "fill": ("#000000", "#ffffff"),
    "stroke": ("#111111", "#eeeeee"),
    "stroke_width": (1.0, 3.0),
    "dash": ("solid", "dashed"),
    "font_color": ("#222222", "#dddddd"),
    "font_size": (9.0, 14.0),
    "rounded": (False, True),
    "width": (1.0, 2.0),
    "height": (0.5, 0.7),
    "fixed_size": ("false", "true"),
    "attributes": ((("sides", 4),), (("sides", 6),)),
}


def patch(layer: StyleLayer, attribute: str, value: object) -> Patch:
    return Patch(layer, layer.name.lower(), NodeStyle(**{attribute: value}))  # type: ignore[arg-type]


def bare(*patches: Patch) -> SceneNode:
    style, origin, trail = merge(patches)
    return SceneNode("x", "op", "op", (), style, origin, "", None, (), (), trail)


def test_the_table_has_every_attribute() -> None:
    assert set(VALUES) == set(NodeStyle.__dataclass_fields__)
    assert all(low != high for low, high in VALUES.values())


@pytest.mark.parametrize("attribute", VALUES)
@pytest.mark.parametrize(("low", "high"), PAIRS, ids=lambda layer: layer.name)
def test_of_any_two_layers_the_higher_wins_and_the_other_is_remembered(
    low: StyleLayer, high: StyleLayer, attribute: str
) -> None:
    beaten, winning = VALUES[attribute]
    under, over = patch(low, attribute, beaten), patch(high, attribute, winning)
    for node in (bare(under, over), bare(over, under), overlay(bare(under), over), overlay(bare(over), under)):
        assert getattr(node.style, attribute) == winning
        assert node.origin[attribute] == high.name.lower()
        assert [(step.source, step.value) for step in node.trail[attribute]] == [
            (low.name.lower(), beaten),
            (high.name.lower(), winning),
        ]
        assert {name for name in VALUES if getattr(node.style, name) is not None} == {attribute}


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
    (line,) = [line for line in text.splitlines() if line.split()[:1] == ["color_scale"]]
    assert line.split()[1:] == ["linear", "explicit", "over", "view:speed=rank"]


def test_explain_finds_a_box_by_what_it_hides_and_by_address() -> None:
    scene, request = drawn(depth=1)
    text = explain(scene, "conv2d_1_1", request)
    assert text.startswith("module:features:1 (module")
    assert "conv2d_1_1 is drawn as part of it" in text
    assert explain(scene, "@features", request).startswith("module:features:1")
    assert explain(scene, "head", request).startswith("linear_1_12")


def test_explain_says_so_when_nothing_was_set() -> None:
    scene, request = drawn()
    assert "all at their defaults" in explain(scene, "input_1", request)


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
    lines = {line.split()[0]: line for line in explain(scene, "conv2d_1_1", request).splitlines() if line.strip()}
    assert "node_spec_fn" in lines["fill"].partition(" over ")[0]
    beaten = lines["fill"].partition(" over ")[2]
    assert beaten.index("color_by time=") < beaten.index("role trainable=#d9d9d9")
    assert "size_by bytes" in lines["width"]
    settings = [
        line for line in explain(scene, "conv2d_1_1", request).splitlines() if line.split()[:2] == ["font_size", "11"]
    ]
    assert settings[-1].endswith("explicit over view:given=9, theme:paper (changed)=8")


@pytest.mark.parametrize(
    ("given", "attribute", "winner", "beaten"),
    [
        ({"view": {"question": "q", "draw": {"font_size": 9}}}, "font_size", "font_size from view:given", "theme"),
        ({"font_size": 9}, "font_size", "font_size from explicit", "theme"),
        ({"color_by": "time"}, "fill", "color_by time", "theme"),
        ({"size_by": "time", "node_spec_fn": "wide"}, "width", "node_spec_fn", "size_by time"),
        ({"color_by": "time", "node_spec_fn": "red"}, "fill", "node_spec_fn", "color_by time"),
        ({"node_spec_fn": "red"}, "fill", "node_spec_fn", "theme"),
    ],
)
def test_the_real_sources_keep_the_order(given: dict[str, object], attribute: str, winner: str, beaten: str) -> None:
    def change(record: object, spec: NodeSpec) -> None:
        spec.width, spec.fillcolor = 9.0, "#ff0000"

    options = {name: change if name == "node_spec_fn" else value for name, value in given.items()}
    scene, _ = drawn(**options)
    node = next(node for node in scene.nodes if node.name == "conv2d_1_1")
    assert node.origin[attribute].startswith(winner)
    assert node.trail[attribute][-2].source.startswith(beaten)
