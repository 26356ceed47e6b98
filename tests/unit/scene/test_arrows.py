"""Where the labels of arrows stand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.scene.model import Scene, SceneEdge

MakeScene = Callable[..., Scene]


def edges(scene: Scene) -> dict[str, SceneEdge]:
    return {f"{scene.nodes[e.source].name}->{scene.nodes[e.target].name}": e for e in scene.edges}


@pytest.mark.parametrize(
    ("direction", "lines"), [("bottomup", ("In 2-3", "Out 1-2")), ("topdown", ("Out 1-2", "In 2-3"))]
)
def test_passes_stand_in_the_middle_in_the_order_of_the_flow(
    scene: MakeScene, direction: str, lines: tuple[str, ...]
) -> None:
    found = edges(scene(builders.loop(3), rolled=True, direction=direction))
    assert found["tanh_1_5->linear_2_3"].middle == lines
    assert found["zeroslike_1_1->linear_2_3"].middle == ("In 1",)
    assert found["tanh_1_5->output_1"].middle == ("Out 3",)
    assert not any(edge.head or edge.tail for edge in found.values())


def test_arrows_against_the_flow_are_known(scene: MakeScene) -> None:
    found = edges(scene(builders.loop(3), rolled=True))
    assert [name for name, edge in found.items() if edge.back] == ["tanh_1_5->linear_2_3"]


def test_arguments_of_one_node_stand_together(scene: MakeScene) -> None:
    b = Builder()
    x = b.input()
    h = b.op("zeros", [], (2, 8))
    for _ in range(3):
        h = b.op("cell", [x, h], (2, 8), layer="cell")
    b.output(h)
    found = edges(scene(b.build(), rolled=True))
    assert found["input_1->cell_1_2"].middle == ("arg 0",)
    assert found["zeros_1_1->cell_1_2"].middle == ("arg 1", "In 1")
    assert found["cell_1_2->cell_1_2"].middle == ("arg 1", "In 2-3", "Out 1-2")


def test_all_labels_of_an_arrow_into_an_arm_stand_below_the_arm(scene: MakeScene) -> None:
    b = Builder()
    parts = b.op("unbind", [b.input()], outs=[(8,), (8,)])
    test = b.test(b.op("gt", [parts], ()))
    b.output(b.enter(test, b.op("relu", [builders.Ref(parts.node, 1)], (8,))))
    edge = edges(scene(b.build()))["unbind_1_1->relu_1_3"]
    assert (edge.arms, edge.middle, edge.head, edge.tail) == (("THEN",), ("[1]",), (), ())


def test_labels_of_arrows_there_and_back_stand_in_the_middle(scene: MakeScene) -> None:
    b = Builder()
    h = b.input()
    for _ in range(2):
        parts = b.op("unbind", [h], outs=[(8,), (8,)], layer="unbind")
        h = b.op("sin", [builders.Ref(parts.node, 1)], (2, 8), layer="sin")
    b.output(h)
    edge = edges(scene(b.build(), rolled=True))["unbind_1_1->sin_1_2"]
    assert (edge.middle, edge.tail) == (("[1]",), ())


def test_a_number_of_tensors_that_grows_is_a_range(scene: MakeScene) -> None:
    b = Builder()
    kept = [b.input()]
    for _ in range(3):
        joined = b.op("cat", {(0, k): ref for k, ref in enumerate(kept)}, layer="cat")
        kept.append(b.op("sin", [joined], layer="sin"))
    b.output(kept[-1])
    found = edges(scene(b.build(), rolled=True))
    assert found["sin_1_2->cat_1_1"].middle == ("arg (0, 1-2)", "In 2-3", "Out 1-2", "x1-2")


def test_a_long_list_of_passes_is_cut(scene: MakeScene) -> None:
    b = Builder()
    x = b.input()
    for k in range(40):
        h = b.linear("fc", x, 8, layer="fc")
        if k % 2:
            b.op("sin", [h], layer="sin")
    found = edges(scene(b.build(), rolled=True))
    assert found["linear_1_1->sin_1_2"].middle == ("Out 2,4,6,8,10,12,14,16,…,40",)


@pytest.mark.parametrize(("steps", "at_the_head"), [(1, True), (2, False)])
def test_arguments_of_uneven_ways_are_named_in_the_middle(scene: MakeScene, steps: int, at_the_head: bool) -> None:
    b = Builder()
    x = b.input()
    y, h = b.op("exp", [x]), x
    for _ in range(steps):
        h = b.op("tanh", [h])
    b.output(b.op("sub", [y, h]))
    found = [edge for edge in scene(b.build()).edges if edge.head or edge.middle]
    assert [edge.head or edge.middle for edge in found] == [("arg 0",), ("arg 1",)]
    assert all(bool(edge.head) is at_the_head for edge in found)
