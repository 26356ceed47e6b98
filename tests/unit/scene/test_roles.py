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


def test_what_a_branch_tests_is_a_role_that_weights_give_way_to(scene: MakeScene) -> None:
    found = roles(scene(builders.branch()))
    assert (found["gt_1_2"], found["linear_1_3"]) == ("branch_test", "trainable")
    b = builders.Builder()
    x, constant = b.input(), b.constant()
    h = b.linear("fc", x, 8)
    for tested in (x, constant, h):
        b.test(tested)
    b.output(b.op("mul", [h, constant]))
    found = roles(scene(b.build()))
    assert (found["input_1"], found["constant_1"], found["linear_1_1"]) == ("input", "branch_test", "branch_test")


def test_a_rolled_layer_tested_in_one_pass_is_a_test_and_a_box_is_none(scene: MakeScene) -> None:
    b = builders.Builder()
    h = b.input()
    with b.module("m") as call:
        for _ in range(2):
            h = b.op("tanh", [h], layer="tanh")
        b.test(h)
        call.returns = [h]
    b.output(h)
    data = b.build()
    assert roles(scene(data, rolled=True))["tanh_1_1"] == "branch_test"
    assert roles(scene(data))["tanh_1_1:1"] == "op"
    assert roles(scene(data, depth=1))["module:m:1"] == "box"
