"""The role of a node."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from torchlens.scene.model import Scene
from torchlens.settings.theme import ROLES

MakeScene = Callable[..., Scene]


def roles(scene: Scene) -> dict[str, str]:
    return {node.name: node.role for node in scene.nodes}


def test_roles_by_kind_and_by_parameters(scene: MakeScene) -> None:
    found = roles(scene(builders.state()))
    assert found == {
        "input_1": "input", "linear_1_1": "frozen", "buffer:cell.decay:1": "buffer", "mul_1_2": "op",
        "buffer:cell.memory:2": "buffer", "linear_2_3": "mixed", "constant_1": "constant", "sub_1_4": "op",
        "output_1": "output",
    }  # fmt: skip


def test_a_box_takes_the_role_of_its_parameters(scene: MakeScene) -> None:
    assert roles(scene(builders.demo(), depth=1))["module:features:1"] == "trainable"
    b = builders.Builder()
    with b.module("m") as call:
        call.returns = [b.op("sin", [b.op("cos", [b.input()])])]
    b.output(call.returns[0])
    assert roles(scene(b.build(), depth=1))["module:m:1"] == "box"


def test_every_role_is_one_that_a_theme_has(scene: MakeScene) -> None:
    for make in builders.SAMPLES.values():
        assert set(roles(scene(make())).values()) <= set(ROLES)
