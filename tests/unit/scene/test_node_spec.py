"""The user's own word on a node: what a hook may change, how it wins, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from tests import builders
from tests.unit.scene.test_images import png
from torchlens.base.colors import contrast
from torchlens.base.errors import InvalidArgumentError
from torchlens.records.modules import ModuleRecord
from torchlens.records.notes import attach
from torchlens.records.ops import LayerRecord, OpRecord
from torchlens.render import dot
from torchlens.scene.layers import explain
from torchlens.scene.model import Scene, SceneNode
from torchlens.scene.node_spec import NodeSpec
from torchlens.settings.compose import resolve

MakeScene = Callable[..., Scene]


def hook(**changes: Any) -> Callable[[Any, NodeSpec], NodeSpec]:
    def restyle(record: Any, spec: NodeSpec) -> NodeSpec:
        return spec.replace(**changes) if getattr(record, "func_name", "") == "relu" else spec

    return restyle


def relu(scene: Scene) -> SceneNode:
    return next(node for node in scene.nodes if node.name == "relu_1_2")


def test_the_fields_are_the_documented_ones() -> None:
    assert [item.name for item in fields(NodeSpec)] == [
        "lines", "shape", "fillcolor", "fontcolor", "style", "color", "penwidth", "tooltip", "image", "width", "height",
        "fixedsize", "extra_attrs",
    ]  # fmt: skip


def test_a_hook_that_changes_nothing_changes_nothing(scene: MakeScene) -> None:
    data = builders.demo()
    for result in (None, "spec"):
        kept = scene(data, node_spec_fn=lambda record, spec, result=result: spec if result else None)
        assert dot.write(kept) == dot.write(scene(data))


def test_returning_none_keeps_what_was_changed_in_place(scene: MakeScene) -> None:
    def restyle(record: Any, spec: NodeSpec) -> None:
        spec.lines.append("mine")
        spec.penwidth = 4

    node = relu(scene(builders.chain(), node_spec_fn=restyle))
    assert node.rows[-1].lines == ("mine",)
    assert node.style.stroke_width == 4


def test_replace_copies_and_refuses_unknown_fields() -> None:
    spec = NodeSpec(lines=["a"])
    assert spec.replace(shape="box") == NodeSpec(lines=["a"], shape="box")
    assert spec.shape == "oval"
    with pytest.raises(TypeError):
        spec.replace(colour="red")


def test_it_sees_the_node_as_it_would_be_drawn(scene: MakeScene) -> None:
    seen: dict[str, NodeSpec] = {}
    given = {"theme": "dark", "color_by": "bytes"}
    plain = scene(builders.chain(), **given)
    scene(builders.chain(), node_spec_fn=lambda record, spec: seen.update({record.label: spec}), **given)
    for node in plain.nodes:
        spec = seen[node.name]
        assert (spec.fillcolor, spec.color, spec.shape) == (node.style.fill, node.style.stroke, node.style.shape)
        assert spec.lines == ["\n".join(row.lines) for row in node.rows]
        assert spec.tooltip == node.tooltip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"width": 3, "height": 1.5}, ["width=3", "height=1.5"]),
        ({"extra_attrs": {"peripheries": "3"}}, ['peripheries="3"']),
        ({"extra_attrs": {"peripheries": 2, "URL": "http://a/?b&c"}}, ['peripheries="2"', 'URL="http://a/?b&c"']),
        ({"extra_attrs": {"width": 7}, "width": 2}, ['width="7"']),
        ({"fixedsize": True, "width": 1, "height": 1}, ['fixedsize="true"']),
        ({"fixedsize": "shape"}, ['fixedsize="shape"']),
        ({"shape": "hexagon"}, ['shape="hexagon"']),
        ({"fillcolor": "#102030"}, ['fillcolor="#102030"', 'fontcolor="#ffffff"']),
        ({"fillcolor": "#102030", "fontcolor": "red"}, ['fontcolor="red"']),
        ({"fillcolor": "red:blue"}, ['fillcolor="red:blue"']),
        ({"fillcolor": None}, ['fillcolor="none"']),
        ({"color": "teal", "penwidth": 0}, ['color="teal"', "penwidth=0"]),
        ({"style": "rounded,filled,dotted", "shape": "box"}, ['style="filled,rounded,dotted"']),
        ({"style": "dashed"}, ['style="dashed"']),
        ({"style": "filled,diagonals"}, ['style="filled,diagonals"']),
        ({"tooltip": 'say "hi"'}, ['tooltip="say \\"hi\\""']),
        ({"lines": ["a <b>", "two\nlines"]}, ["<B>a &lt;b&gt;</B>", "two<BR/>lines"]),
        ({"lines": []}, ['label=""']),
    ],
    ids=str,
)
def test_what_a_hook_sets_is_in_the_document_and_wins(
    scene: MakeScene, changes: dict[str, Any], expected: list[str]
) -> None:
    document = dot.write(scene(builders.chain(), node_spec_fn=hook(**changes), color_by="bytes"))
    (line,) = [line for line in document.splitlines() if 'id="relu_1_2"' in line]
    for text in expected:
        assert text in line
    others = [line for line in document.splitlines() if " [id=" in line and "relu_1_2" not in line]
    assert others
    assert not [line for line in others if expected[0] in line]


def test_what_most_nodes_set_is_not_handed_to_the_others(scene: MakeScene) -> None:
    def restyle(record: Any, spec: NodeSpec) -> None:
        if record.kind == "op":
            spec.width = 4.25
            spec.extra_attrs["URL"] = "x"

    document = dot.write(scene(builders.residual(), node_spec_fn=restyle))
    (defaults,) = [line for line in document.splitlines() if line.startswith(" node ")]
    assert "width=4.25" not in defaults
    assert "URL" not in defaults
    (line,) = [line for line in document.splitlines() if 'id="input_1"' in line]
    assert "4.25" not in line
    assert document.count("width=4.25") == len(builders.residual().op_indexes)


def test_a_double_border_can_be_dropped(scene: MakeScene) -> None:
    def single(record: Any, spec: NodeSpec) -> None:
        spec.extra_attrs["peripheries"] = "1"

    usual, changed = scene(builders.demo()), scene(builders.demo(), node_spec_fn=single, show_legend=True)
    assert 2 in {node.style.peripheries for node in usual.nodes}
    assert {node.style.peripheries for node in changed.nodes} == {1}
    assert not [line for line in changed.root if "double border" in getattr(line, "text", "")]


def test_text_stays_readable_on_a_fill_of_the_user(scene: MakeScene) -> None:
    for fill in ("#000000", "#ffff00", "navy", "#777777"):
        style = relu(scene(builders.chain(), node_spec_fn=hook(fillcolor=fill), theme="dark")).style
        assert contrast(style.fill or "", style.font_color or "") >= 4.5


def test_explain_names_the_hook_as_the_last_layer() -> None:
    data = builders.chain()
    request = resolve(data, {"node_spec_fn": hook(fillcolor="#102030", width=2.0, lines=["x"]), "color_by": "bytes"})
    from torchlens.plan import make_plan
    from torchlens.scene import build

    text = explain(build(make_plan(data, request), data, request), "relu_1_2", request)
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert "node_spec_fn hook.<locals>.restyle" in lines["fill"]
    assert "node_spec_fn" in lines["width"]
    assert "theme" in lines["stroke"]
    assert "node_spec_fn" in lines["lines"]
    assert "tooltip" not in lines


def test_the_key_never_explains_what_a_hook_made(scene: MakeScene) -> None:
    def paint(record: Any, spec: NodeSpec) -> None:
        if record.kind == "op":
            spec.fillcolor, spec.shape, spec.style = "#123456", "hexagon", "filled,dashed"

    root = scene(builders.chain(), node_spec_fn=paint, show_legend=True).root
    texts = [getattr(line, "text", "") for line in root]
    assert "#123456" not in [getattr(line, "fill", "") for line in root]
    assert "other operation" not in texts
    assert not [text for text in texts if "rectangle" in text or "dashed" in text]
    assert "input" in texts


# -- who is called with what
def test_boxes_have_a_hook_of_their_own(scene: MakeScene) -> None:
    def both(data: Any, **options: Any) -> tuple[list[object], list[object]]:
        plain: list[object] = []
        boxes: list[object] = []
        scene(
            data,
            node_spec_fn=lambda record, spec: plain.append(record),
            collapsed_node_spec_fn=lambda record, spec: boxes.append(record),
            **options,
        )
        return plain, boxes

    plain, boxes = both(builders.residual(), depth=1)
    assert {type(record) for record in plain} == {OpRecord}
    assert [type(record) for record in boxes] == [ModuleRecord, ModuleRecord]
    plain, boxes = both(builders.loop(3), rolled=True)
    assert not boxes
    assert [record.num_passes for record in plain if isinstance(record, LayerRecord)] == [1, 3, 3, 3, 3]


def test_only_the_hook_that_is_given_is_called(scene: MakeScene) -> None:
    def paint(record: Any, spec: NodeSpec) -> None:
        spec.fillcolor = "#123456"

    boxed = scene(builders.residual(), collapsed_node_spec_fn=paint, depth=1)
    assert [node.kind for node in boxed.nodes if node.style.fill == "#123456"] == ["module", "module"]
    plain = scene(builders.residual(), node_spec_fn=paint, depth=1)
    assert not [node for node in plain.nodes if node.kind == "module" and node.style.fill == "#123456"]


def test_stubs_are_left_alone(scene: MakeScene) -> None:
    seen: list[str] = []
    focused = scene(builders.residual(), node_spec_fn=lambda record, spec: seen.append(record.label), module="blocks.1")
    names = [node.name for node in focused.nodes if not node.name.startswith("stub:")]
    assert seen == names
    assert len(names) < len(focused.nodes)


# -- pictures
def test_a_hook_sets_and_removes_pictures(scene: MakeScene) -> None:
    node = relu(scene(builders.chain(), node_spec_fn=hook(image=png())))
    assert [picture.png for picture in node.pictures] == [png()]
    assert (node.style.shape, node.style.rounded) == ("box", True)
    kept = relu(scene(builders.chain(), node_spec_fn=hook(image=png(), shape="oval")))
    assert kept.style.shape == "oval" or kept.style.rounded
    data = builders.chain()
    attach(data, [data.index_of["relu_1_2"]], image=png())
    assert relu(scene(data, node_spec_fn=hook(lines=["x"]))).pictures
    assert not relu(scene(data, node_spec_fn=hook(image=None))).pictures


# -- failures
def test_an_exception_names_the_callback_and_the_node(scene: MakeScene) -> None:
    def broken(record: Any, spec: NodeSpec) -> None:
        if record.kind == "output":
            raise KeyError("no such thing")

    with pytest.raises(InvalidArgumentError, match=r"broken at output_1 raised KeyError: 'no such thing'") as caught:
        scene(builders.chain(), node_spec_fn=broken)
    assert caught.value.code == "node_spec_failed"
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.fields["node"] == "output_1"


@pytest.mark.parametrize(
    "changes",
    [
        {"fillcolor": "lite blue"},
        {"color": "#12"},
        {"fontcolor": 3},
        {"penwidth": -1},
        {"penwidth": True},
        {"width": 0},
        {"height": float("nan")},
        {"width": "wide"},
        {"fixedsize": "yes"},
        {"lines": "text"},
        {"lines": ["a", 3]},
        {"tooltip": 3},
        {"shape": None},
        {"extra_attrs": ["peripheries"]},
        {"extra_attrs": {"peripheries": "many"}},
        {"extra_attrs": {"id": "mine"}},
        {"extra_attrs": {"label": "mine"}},
        {"extra_attrs": {1: "x"}},
        {"extra_attrs": {"x": [1]}},
        {"image": b"no picture"},
        {"image": 3},
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused_with_the_node(scene: MakeScene, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="relu_1_2") as caught:
        scene(builders.chain(), node_spec_fn=hook(**changes))
    assert caught.value.code == "node_spec_invalid"


def test_something_else_than_a_spec_is_refused(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match="it returned dict") as caught:
        scene(builders.chain(), node_spec_fn=lambda record, spec: {"shape": "box"})
    assert caught.value.code == "node_spec_invalid"


def test_what_is_set_by_the_engines_names_is_known_to_the_style(scene: MakeScene) -> None:
    """So `explain`, the key and the text colour go by what is drawn."""
    extra = {"fillcolor": "#102030", "fontsize": 9, "penwidth": "2.5", "color": "no colour", "sides": 5}
    node = relu(scene(builders.chain(), node_spec_fn=hook(extra_attrs=extra)))
    assert (node.style.fill, node.style.font_size, node.style.stroke_width) == ("#102030", 9.0, 2.5)
    assert node.style.stroke == "#000000"
    assert node.origin["font_size"].startswith("node_spec_fn")
    assert contrast(node.style.font_color or "", "#102030") >= 4.5
    assert dict(node.style.attributes or ()) == extra
