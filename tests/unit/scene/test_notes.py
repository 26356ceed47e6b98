"""Attached data and pictures on a node, and what a node shows that stands for several."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.unit.scene.test_images import png
from torchlens.records.notes import BATCH_RENDER, attach
from torchlens.records.selectors import select
from torchlens.scene.model import Scene, SceneNode
from torchlens.settings.compose import resolve
from torchlens.settings.theme import load_theme

MakeScene = Callable[..., Scene]
MakeRows = Callable[..., list[str]]


def node_of(scene: Scene, name: str) -> SceneNode:
    return next(node for node in scene.nodes if node.name == name)


def test_data_stands_in_rows_below_the_usual_ones(rows: MakeRows) -> None:
    data = builders.chain()
    before = rows(data, "relu_1_2")
    attach(data, select(data, "relu_1_2"), rows={"score": 0.123456, "tags": ["a", "b"], "why": "é <b>", "more": 1})
    assert rows(data, "relu_1_2") == [*before, "score: 0.123", 'tags: ["a", "b"]', "why: é <b>", "+1 more"]


def test_a_lone_value_has_no_key(rows: MakeRows) -> None:
    data = builders.chain()
    attach(data, select(data, "relu_1_2"), rows={"": "seen twice"})
    assert rows(data, "relu_1_2")[-1] == "seen twice"


def test_rows_asked_for_by_name_are_not_added_to(rows: MakeRows) -> None:
    data = builders.chain()
    attach(data, select(data, "relu_1_2"), rows={"a": 1})
    assert rows(data, "relu_1_2", node_label_fields=["name", "shape"])[1:] == ["(2, 16), 128 B"]


def test_a_rolled_node_shows_what_its_passes_share(rows: MakeRows) -> None:
    data = builders.loop(3)
    attach(data, select(data, "tanh_1_5"), rows={"same": 1})
    attach(data, select(data, "tanh_1_5:2"), rows={"same": 1, "own": 2})
    found = rows(data, "tanh_1_5", rolled=True)
    assert found[-2:] == ["same: 1", "own: varies across passes"]
    assert rows(data, "tanh_1_5:1")[-1] == "same: 1"


def test_one_and_true_are_not_the_same(rows: MakeRows) -> None:
    data = builders.loop(2)
    attach(data, select(data, "tanh_1_5:1"), rows={"x": 1})
    attach(data, select(data, "tanh_1_5:2"), rows={"x": True})
    assert rows(data, "tanh_1_5", rolled=True)[-1] == "x: varies across passes"


def test_a_box_shows_what_belongs_to_its_output(rows: MakeRows) -> None:
    data = builders.residual()
    attach(data, select(data, "blocks.0.mlp"), rows={"kept": "yes"})
    attach(data, select(data, "relu_1_4"), rows={"inner": "no"})
    found = rows(data, "module:blocks.0:1", depth=1)
    assert found[-1] == "kept: yes"
    assert not [row for row in found if "inner" in row]


def test_a_stub_carries_nothing(scene: MakeScene, rows: MakeRows) -> None:
    data = builders.residual()
    attach(data, select(data, "add_1_6"), rows={"a": 1}, image=png())
    stub = node_of(scene(data, module="blocks.1"), "stub:from:add_1_6")
    assert not stub.pictures
    assert rows(data, "stub:from:add_1_6", module="blocks.1") == ["from add_1_6", "@blocks.0"]


@pytest.mark.parametrize("name", ["relu_1_2", "linear_1_1", "input_1", "output_1"])
def test_a_picture_makes_a_rounded_box_in_the_usual_fill(scene: MakeScene, name: str) -> None:
    data = builders.chain()
    usual = node_of(scene(data), name)
    attach(data, select(data, name), image=png())
    node = node_of(scene(data), name)
    assert (node.style.shape, node.style.rounded) == ("box", True)
    assert (node.style.fill, node.rows) == (usual.style.fill, usual.rows)
    assert [picture.png for picture in node.pictures] == [png()]
    assert not usual.pictures


def test_a_rolled_node_shows_a_picture_only_if_all_passes_have_it(scene: MakeScene) -> None:
    data = builders.loop(2)
    attach(data, select(data, "tanh_1_5"), image=png())
    assert node_of(scene(data, rolled=True), "tanh_1_5").pictures
    attach(data, select(data, "tanh_1_5:2"), image=png(color="blue"))
    node = node_of(scene(data, rolled=True), "tanh_1_5")
    assert not node.pictures
    assert node.rows[-1].lines == ("pictures vary across passes",)


def test_a_batch_is_cut_and_says_so(scene: MakeScene, rows: MakeRows) -> None:
    data = builders.chain()
    attach(data, [0], batch=(png(), png(color="blue"), png(color="green"), b"", b"", b""))
    data.annotations[BATCH_RENDER] = "first_n:3"
    assert len(node_of(scene(data), "input_1").pictures) == 3
    assert rows(data, "input_1")[-1] == "+3 more pictures"
    data.annotations[BATCH_RENDER] = "shape_only"
    plain = node_of(scene(data), "input_1")
    assert (plain.style.shape, plain.pictures) == ("oval", ())
    assert "more" not in rows(data, "input_1")[-1]


def test_the_key_explains_a_picture_and_not_its_box(scene: MakeScene) -> None:
    data = builders.chain()
    attach(data, select(data, "relu_1_2"), image=png())
    attach(data, select(data, "fc1"), image=png())
    attach(data, select(data, "fc2"), image=png())
    texts = [getattr(line, "text", "") for line in scene(data, show_legend=True).root]
    assert "rounded box: carries a picture" in texts
    assert not [text for text in texts if text.startswith("rectangle")]


def test_text_reads_well_on_every_theme_with_a_picture(scene: MakeScene) -> None:
    data = builders.chain()
    attach(data, select(data, "relu_1_2"), image=png())
    assert resolve(data, {"theme": "dark"}).theme.name == load_theme("dark").name
    assert node_of(scene(data, theme="dark"), "relu_1_2").style.fill == load_theme("dark").roles["op"].fill
