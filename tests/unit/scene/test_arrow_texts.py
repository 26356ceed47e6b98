"""Shapes and keys on arrows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.base.errors import TorchLensWarning
from torchlens.scene.arrow_texts import edge_shapes
from torchlens.scene.model import Scene

MakeScene = Callable[..., Scene]


def middles(scene: Scene) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(scene.nodes[edge.source].name, scene.nodes[edge.target].name): edge.middle for edge in scene.edges}


def test_every_arrow_carries_the_shape_of_its_tensor(scene: MakeScene) -> None:
    assert middles(scene(builders.chain(), show_edge_shapes=True)) == {
        ("input_1", "linear_1_1"): ("2x8",),
        ("linear_1_1", "relu_1_2"): ("2x16",),
        ("relu_1_2", "linear_2_3"): ("2x16",),
        ("linear_2_3", "output_1"): ("2x4",),
    }
    assert set(middles(scene(builders.chain())).values()) == {()}


def test_of_several_outputs_the_one_that_is_read(scene: MakeScene) -> None:
    found = middles(scene(builders.multi_output(), show_edge_shapes=True))
    assert found["lstm_1_1", "max_1_2"] == ("[0]", "2x5x16")
    assert found["lstm_1_1", "output_3"] == ("[1]", "1x2x16")
    assert found["mean_1_3", "output_4"] == ("scalar",)


def test_a_merged_arrow_lists_each_shape_once(scene: MakeScene) -> None:
    b = Builder()
    x, y = b.input("x", (2, 8)), b.input("y", (4, 8))
    with b.module("m") as call:
        parts = [b.op("sin", [x]), b.op("cos", [x]), b.op("tan", [y], (4, 8))]
        call.returns = parts
    b.output(b.op("cat", {(0, k): part for k, part in enumerate(parts)}, (8, 8)))
    found = middles(scene(b.build(), depth=1, show_edge_shapes=True))
    assert found["input_1", "module:m:1"] == ("x2", "2x8")
    assert found["module:m:1", "cat_1_4"][-1] == "2x8, 4x8"


def test_passes_of_different_shapes_are_all_named(scene: MakeScene) -> None:
    b = Builder()
    h = b.input("x", (4, 8))
    for size in (4, 3, 2):
        h = b.op("relu", [h], (size, 8), layer="relu")
    b.output(h)
    found = middles(scene(b.build(), rolled=True, show_edge_shapes=True))
    assert found["relu_1_1", "relu_1_1"] == ("In 2-3", "Out 1-2", "4x8, 3x8")


def test_shapes_in_words() -> None:
    assert edge_shapes([(2, 16)]) == "2x16"
    assert edge_shapes([(), None]) == "scalar, irregular"
    assert edge_shapes([(16,)]) == "(16,)"
    assert edge_shapes([(k, 2) for k in range(1, 6)]) == "1x2, 2x2, 3x2, +2 more"


def test_what_is_written_into_a_buffer_has_the_shape_of_the_buffer(scene: MakeScene) -> None:
    found = middles(scene(builders.demo(), show_buffers="always", show_edge_shapes=True))
    assert found["batchnorm_1_3", "buffer:features.0.norm.running_mean:2"] == ("(8,)",)
    assert found["buffer:features.0.norm.running_mean:1", "batchnorm_1_3"] == ("arg 3", "(8,)")


def test_arrows_to_outputs_carry_the_key_of_the_result(scene: MakeScene) -> None:
    found = middles(scene(builders.multi_output(), show_containers="labels"))
    assert found["max_1_2", "output_1"] == ("best", "[0]")
    assert found["lstm_1_1", "output_3"] == ("state.0", "[1]")
    assert found["lstm_1_1", "max_1_2"] == ()
    both = middles(scene(builders.multi_output(), show_containers="labels", show_edge_shapes=True))
    assert both["max_1_2", "output_1"] == ("best", "[0]", "2x16")


def test_a_long_key_is_cut(scene: MakeScene) -> None:
    b = Builder()
    x = b.input()
    b.output(b.op("sin", [x]), "k" * 300)
    (line,) = middles(scene(b.build(), show_containers="labels"))["sin_1_1", "output_1"]
    assert len(line) == 40
    assert line.endswith("…")


def test_a_result_that_is_no_container_is_said_to_be_none(scene: MakeScene) -> None:
    with pytest.warns(TorchLensWarning, match=r"\[view_secondary_degraded\].*no container"):
        made = scene(builders.chain(), show_containers="labels")
    assert made.root[-1].text == "container labels: the result is no container"  # type: ignore[union-attr]
    assert set(middles(made).values()) == {()}


def test_an_output_that_an_op_hands_on_twice_has_a_key_each(scene: MakeScene) -> None:
    b = Builder()
    parts = b.op("split", [b.input()], outs=[(1, 8), (1, 8)])
    for k in range(2):
        b.output(Ref(parts.node, k), str(k))
    made = scene(b.build(), show_containers="labels")
    assert [edge.middle for edge in made.edges[1:]] == [("0", "[0]"), ("1", "[1]")]
    assert [edge.tail for edge in made.edges[1:]] == [(), ()]


def test_an_arrow_around_hidden_ops_says_how_many_and_what_leaves_and_arrives(scene: MakeScene) -> None:
    b = Builder()
    x = b.linear("fc", b.input(), 8)
    halves = b.op("view", [b.op("view", [x], (4, 4))], (16,))
    b.output(b.op("sub", [halves, b.op("view", [x], (2, 8))], (16,)))
    data = b.build()
    rules = [{"op": "view", "do": "hide"}]
    made = scene(data, collapse_rules=rules)
    assert middles(made)["linear_1_1", "sub_1_5"] == ("x2", "via 3 hidden")
    assert [edge.dashed for edge in made.edges] == [False, True, False]
    found = middles(scene(data, collapse_rules=rules, show_edge_shapes=True))
    assert found["linear_1_1", "sub_1_5"] == ("x2", "via 3 hidden", "2x8 -> (16,), 2x8")
    assert found["sub_1_5", "output_1"] == ("(16,)",)


def test_the_argument_that_a_way_around_feeds_is_named(scene: MakeScene) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    b.output(b.op("sub", [b.op("view", [x]), y]))
    found = middles(scene(b.build(), collapse_rules=[{"op": "view", "do": "hide"}]))
    assert found["input_1", "sub_1_2"] == ("arg 0", "via 1 hidden")
