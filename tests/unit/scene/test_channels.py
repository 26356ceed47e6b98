"""Colour by a value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.colors import Ramp
from torchlens.scene.model import ChannelState, Scene, SceneNode
from torchlens.settings.theme import load_theme

MakeScene = Callable[..., Scene]
THEME = load_theme()
RAMP = Ramp(THEME.ramps["sequential"])


def node(scene: Scene, name: str) -> SceneNode:
    return next(node for node in scene.nodes if node.name == name)


def color(scene: Scene) -> ChannelState:
    assert scene.encoding is not None
    assert scene.encoding.color is not None
    return scene.encoding.color


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
    assert color(made).notes == ("1 node has no flops",)


def test_a_box_has_the_sum_or_the_neutral_fill(scene: MakeScene) -> None:
    data = builders.demo()
    made = scene(data, color_by="time", depth=1)
    assert node(made, "module:features:1").style.fill == RAMP.stops[-1]
    assert color(made).encoded == 12
    data.nodes.time_s = [
        None if label == "relu_1_4" else t for label, t in zip(data.nodes.label, data.nodes.time_s, strict=True)
    ]
    made = scene(data, color_by="time", depth=1)
    assert node(made, "module:features:1").style.fill == THEME.roles["neutral"].fill
    assert color(made).encoded == 4


@pytest.mark.parametrize("times", [None, 1e-4])
def test_without_a_range_of_values_nothing_is_coloured(scene: MakeScene, times: float | None) -> None:
    data = builders.demo()
    data.nodes.time_s = [times] * len(data.nodes)
    plain = scene(data)
    made = scene(data, color_by="time")
    assert [n.style for n in made.nodes] == [n.style for n in plain.nodes]
    assert color(made).encoded == 0


def test_a_drawing_without_a_channel_has_no_encoding(scene: MakeScene) -> None:
    assert scene(builders.demo()).encoding is None


def test_the_domain_is_in_the_unit_of_the_source(scene: MakeScene) -> None:
    encoding = color(scene(builders.demo(), color_by="time", color_scale="rank"))
    assert (encoding.source, encoding.unit, encoding.scale) == ("time", "s", "rank")
    assert encoding.domain == pytest.approx((1e-5, 5e-5))
    assert (encoding.encoded, encoding.eligible) == (10, 12)


def test_text_stays_readable_on_every_colour(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by="time")
    assert node(made, "batchnorm_1_3").style.font_color == "#ffffff"
    assert node(made, "batchnorm_1_3").origin["font_color"] == "contrast with the fill"
    assert node(made, "relu_1_4").style.font_color == "#000000"


def test_stubs_have_no_value_and_the_coverage_is_the_modules(scene: MakeScene) -> None:
    data = builders.residual(3)
    data.nodes.time_s = [None if i == data.index_of["relu_2_9"] else 1e-6 * (i + 1) for i in range(len(data.nodes))]
    made = scene(data, module="blocks.1", color_by="time")
    assert (color(made).encoded, color(made).eligible) == (4, 5)
    low, high = (data.nodes.time_s[data.index_of[label]] for label in ("layernorm_2_7", "add_2_11"))
    assert color(made).domain == (low, high)
    for name, ring in (("stub:from:add_1_6", "#98fb98"), ("stub:to:add_3_16", "#ff9999")):
        style = node(made, name).style
        assert (style.fill, style.stroke, style.stroke_width) == ("#ffffff", ring, 3.0)
    assert color(made).notes == ("1 node has no time",)


def test_how_boxes_and_rolled_nodes_got_their_number_is_told(scene: MakeScene) -> None:
    assert color(scene(builders.demo(), color_by="time", depth=1)).aggregation == ("module boxes: sum over member ops",)
    across = color(scene(builders.demo(), color_by="bytes", depth=1, rolled=True)).aggregation
    assert across == ("module boxes: sum over member ops across all calls",)
    assert color(scene(builders.loop(), color_by="bytes", rolled=True)).aggregation == (
        "rolled nodes: sum over passes",
    )
    segments = color(scene(builders.residual(8), color_by="bytes", collapse="max", rolled=True))
    assert segments.aggregation == (
        "module boxes: sum over member ops across all calls",
        "segments: sum over member ops",
    )
    unsummed = color(scene(builders.demo(), color_by="pass_number", depth=1))
    assert unsummed.aggregation == ("collapsed nodes unencoded: pass_number has no exact sum over ops",)


def test_a_source_without_a_sum_leaves_boxes_neutral(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by="step", depth=1)
    assert node(made, "module:features:1").style.fill == THEME.roles["neutral"].fill


def test_a_rolled_node_whose_passes_disagree_is_left_out_and_told(scene: MakeScene) -> None:
    data = builders.loop(3)
    ops = [i for i in data.op_indexes if data.layers[data.nodes.layer[i]].num_passes == 1]
    data.nodes.time_s = [float(i) if kind == "op" else None for i, kind in enumerate(data.nodes.kind)]
    made = scene(data, color_by="func_duration", rolled=True)
    assert len(ops) == 1
    # One value is left, which is no range to colour.
    assert color(made).notes[0].endswith("rolled nodes unencoded: func_duration differs between the passes")
    assert color(made).domain == (float(ops[0]), float(ops[0]))


def test_a_logarithm_has_no_place_for_zero_and_says_so(scene: MakeScene) -> None:
    data = builders.demo()
    data.nodes.flops = [0 if label == "relu_1_4" else 10 ** (i % 5) for i, label in enumerate(data.nodes.label)]
    made = scene(data, color_by="flops", color_scale="log")
    assert node(made, "relu_1_4").style.fill == THEME.roles["op"].fill
    assert color(made).notes[0] == "1 of the values is zero or less: a logarithm has no place for it"
    assert color(made).domain == (1.0, 10_000.0)


def test_the_middle_decade_has_the_middle_of_the_ramp_on_a_logarithm(scene: MakeScene) -> None:
    data = builders.demo()
    ops = data.op_indexes
    data.nodes.flops = [None if i not in ops else 10 ** (ops.index(i) % 3) for i in range(len(data.nodes))]
    made = scene(data, color_by="flops", color_scale="log")
    by_value = {data.nodes.flops[data.index_of[n.members[0]]]: n.style.fill for n in made.nodes if n.kind == "op"}
    assert by_value[10] == RAMP.at(0.5)
