"""Colour by a value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.colors import Ramp
from torchlens.scene.channels import SCALES
from torchlens.scene.model import Scene, SceneNode
from torchlens.settings.theme import load_theme

MakeScene = Callable[..., Scene]
THEME = load_theme()
RAMP = Ramp(THEME.ramps["sequential"])


def node(scene: Scene, name: str) -> SceneNode:
    return next(node for node in scene.nodes if node.name == name)


def test_linear_is_proportional_and_rank_takes_equal_steps() -> None:
    values = [1.0, 2.0, 2.0, 11.0]
    assert [SCALES.get("linear")(values)(v) for v in values] == [0.0, 0.1, 0.1, 1.0]
    assert [SCALES.get("rank")(values)(v) for v in values] == [0.0, 0.5, 0.5, 1.0]


def test_the_smallest_and_largest_value_have_the_ends_of_the_ramp(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by="time")
    assert node(made, "relu_1_4").style.fill == RAMP.stops[0]
    assert node(made, "batchnorm_1_3").style.fill == RAMP.stops[-1]
    assert node(made, "relu_1_4").origin["fill"] == "color_by time"


def test_inputs_and_outputs_keep_their_colour_as_a_ring(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by="time")
    style = node(made, "input_1").style
    assert (style.fill, style.stroke, style.stroke_width) == ("#ffffff", "#98fb98", 3.0)
    sized = node(scene(builders.demo(), color_by="bytes"), "output_1").style
    assert sized.fill == RAMP.stops[0]
    assert sized.stroke == "#ff9999"


def test_weights_lose_their_grey_and_ops_without_a_value_stay_unfilled(scene: MakeScene) -> None:
    data = builders.multi_output()
    made = scene(data, color_by="flops")
    assert node(made, "lstm_1_1").role == "trainable"
    assert node(made, "lstm_1_1").style.fill == "#ffffff"
    assert made.encoding is not None
    assert "1 nodes have no flops" in made.encoding.notes


def test_a_box_has_the_sum_or_the_neutral_fill(scene: MakeScene) -> None:
    data = builders.demo()
    made = scene(data, color_by="time", depth=1)
    assert node(made, "module:features:1").style.fill == RAMP.stops[-1]
    assert made.encoding is not None
    assert made.encoding.encoded == 12
    data.nodes.time_s = [
        None if label == "relu_1_4" else t for label, t in zip(data.nodes.label, data.nodes.time_s, strict=True)
    ]
    made = scene(data, color_by="time", depth=1)
    assert node(made, "module:features:1").style.fill == THEME.roles["neutral"].fill
    assert made.encoding is not None
    assert made.encoding.encoded == 4


@pytest.mark.parametrize("times", [None, 1e-4])
def test_without_a_range_of_values_nothing_is_coloured(scene: MakeScene, times: float | None) -> None:
    data = builders.demo()
    data.nodes.time_s = [times] * len(data.nodes)
    plain = scene(data)
    made = scene(data, color_by="time")
    assert [n.style for n in made.nodes] == [n.style for n in plain.nodes]
    assert made.encoding is not None
    assert made.encoding.encoded == 0


def test_a_drawing_without_a_channel_has_no_encoding(scene: MakeScene) -> None:
    assert scene(builders.demo()).encoding is None


def test_the_domain_is_in_the_unit_of_the_source(scene: MakeScene) -> None:
    encoding = scene(builders.demo(), color_by="time", color_scale="rank").encoding
    assert encoding is not None
    assert (encoding.source, encoding.unit, encoding.scale) == ("time", "s", "rank")
    assert encoding.domain == pytest.approx((1e-5, 5e-5))
    assert (encoding.encoded, encoding.eligible) == (10, 12)


def test_text_stays_readable_on_every_colour(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by="time")
    assert node(made, "batchnorm_1_3").style.font_color == "#ffffff"
    assert node(made, "batchnorm_1_3").origin["font_color"] == "contrast with the fill"
    assert node(made, "relu_1_4").style.font_color == "#000000"
