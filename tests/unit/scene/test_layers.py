"""One merge of style layers, and its explanation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.errors import UnknownNameError
from torchlens.plan import make_plan
from torchlens.scene import build
from torchlens.scene.layers import Patch, StyleLayer, explain, merge, setting_layer
from torchlens.scene.model import NodeStyle, Scene
from torchlens.settings.compose import DrawRequest, resolve

MakeScene = Callable[..., Scene]


def drawn(**options: object) -> tuple[Scene, DrawRequest]:
    data = builders.demo()
    request = resolve(data, options)
    return build(make_plan(data, request), data, request), request


@pytest.mark.parametrize("low", list(StyleLayer)[:-1])
def test_the_higher_layer_wins_in_either_order(low: StyleLayer) -> None:
    high = StyleLayer(low + 1)
    patches = [Patch(low, "low", NodeStyle(fill="#000000")), Patch(high, "high", NodeStyle(fill="#ffffff"))]
    for order in (patches, patches[::-1]):
        style, origin = merge(order)
        assert (style.fill, origin["fill"]) == ("#ffffff", "high")


def test_within_a_layer_the_later_patch_wins_and_unset_attributes_change_nothing() -> None:
    first = Patch(StyleLayer.THEME, "first", NodeStyle(fill="#000000", dash="solid"))
    second = Patch(StyleLayer.THEME, "second", NodeStyle(dash="dashed"))
    style, origin = merge([first, second])
    assert style == NodeStyle(fill="#000000", dash="dashed")
    assert origin == {"fill": "first", "dash": "second"}


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
