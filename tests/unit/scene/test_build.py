"""Plan to scene: shapes, borders, arrow labels, frames, page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.records.trace_data import Deferred
from torchlens.scene.build import class_lines
from torchlens.scene.model import Scene, SceneEdge

MakeScene = Callable[..., Scene]


def edges(scene: Scene) -> dict[str, SceneEdge]:
    return {f"{scene.nodes[e.source].name}->{scene.nodes[e.target].name}": e for e in scene.edges}


def test_shapes_and_borders(scene: MakeScene) -> None:
    shapes = {node.name: (node.style.shape, node.style.peripheries) for node in scene(builders.demo()).nodes}
    assert shapes["input_1"] == ("oval", 1)
    assert shapes["conv2d_1_1"] == ("box", 1)
    assert shapes["batchnorm_1_3"] == ("box", 2)
    assert shapes["mean_1_11"] == ("oval", 1)
    state = {node.name: node.style for node in scene(builders.state()).nodes}
    assert state["buffer:cell.decay:1"].shape == "cylinder"
    assert state["buffer:cell.decay:1"].dash == "dashed"
    assert state["buffer:cell.memory:2"].dash == "solid"
    assert state["constant_1"].dash == "dashed"
    boxed = {node.name: node.style for node in scene(builders.demo(), depth=1).nodes}
    assert boxed["module:features:1"].shape == "box3d"


def test_norms_whose_buffers_are_drawn_have_a_single_border(scene: MakeScene) -> None:
    made = scene(builders.demo(), show_buffers="always")
    assert {node.style.peripheries for node in made.nodes} == {1}


def test_tooltips_name_hidden_buffers_unless_the_theme_wants_none(scene: MakeScene) -> None:
    made = {node.name: node.tooltip for node in scene(builders.demo()).nodes}
    assert "features.0.norm.running_mean" in made["batchnorm_1_3"]
    assert "in features.0.conv:1" in made["conv2d_1_1"]
    paper = scene(builders.demo(), theme="paper")
    assert not any(node.tooltip for node in paper.nodes)
    assert not any(box.tooltip for box in paper.boxes)


def test_font_size_is_a_keyword(scene: MakeScene) -> None:
    assert {node.style.font_size for node in scene(builders.chain(), font_size=9).nodes} == {9.0}
    assert {node.style.font_size for node in scene(builders.chain()).nodes} == {14.0}


# -- arrows
def test_argument_labels_stand_at_the_head(scene: MakeScene) -> None:
    found = edges(scene(builders.state()))
    assert found["constant_1->sub_1_4"].head == ("arg 1",)
    assert found["constant_1->sub_1_4"].dashed


def test_many_arguments_are_named_in_the_middle(scene: MakeScene) -> None:
    found = edges(scene(builders.awkward()))
    assert found["mul_1_2->where_1_6"].middle == ("kwarg other",)
    assert found["input_1->where_1_6"].middle == ("kwarg rest[0]",)
    assert found["stack_1_1->mul_1_2"].middle == ("x2",)


def test_elements_of_a_list_are_named_in_the_middle_for_their_length(scene: MakeScene) -> None:
    labels = [(e.middle, e.head) for e in scene(builders.awkward()).edges if e.target == 2]
    assert labels == [(("arg (0, 0)",), ()), (("arg (0, 1)",), ())]


def test_outputs_of_one_call_are_told_apart_at_the_tail(scene: MakeScene) -> None:
    found = edges(scene(builders.multi_output()))
    assert found["lstm_1_1->max_1_2"].tail == ("[0]",)
    assert found["max_1_2->output_2"].tail == ("[1]",)


def test_an_arrow_has_no_label_at_both_ends(scene: MakeScene) -> None:
    b = Builder()
    parts = b.op("unbind", [b.input()], outs=[(8,), (8,)])
    b.output(b.op("sub", [builders.Ref(parts.node, 1), builders.Ref(parts.node, 0)], (8,)))
    labels = [(e.tail, e.middle, e.head) for e in scene(b.build()).edges if e.middle]
    assert labels == [((), ("arg 0", "[1]"), ()), ((), ("arg 1", "[0]"), ())]


# -- frames
def test_frames_are_named_and_get_thinner_inwards(scene: MakeScene) -> None:
    made = scene(builders.tree(4))
    assert [box.title for box in made.boxes] == [
        ("@top",),
        ("@top.inner",),
        ("@top.inner.", "inner"),
        ("@top.inner.", "inner.inner"),
    ]
    assert [box.stroke_width for box in made.boxes] == [5.0, 4.0, 3.0, 2.0]
    assert made.boxes[0].name == "cluster:top:1"
    assert made.boxes[0].lines == ("(Level1)",)
    single = scene(builders.state())
    assert [box.stroke_width for box in single.boxes] == [5.0]


@pytest.mark.parametrize("rolled", [False, True])
def test_frames_of_several_calls(scene: MakeScene, rolled: bool) -> None:
    b = Builder()
    h = b.input()
    for _ in range(2):
        with b.module("s") as call:
            h = b.op("cos", [b.op("sin", [h], layer="sin")], layer="cos")
            call.returns = [h]
    b.output(h)
    titles = ["".join(box.title) for box in scene(b.build(), rolled=rolled).boxes]
    assert titles == (["@s (x2)"] if rolled else ["@s:1", "@s:2"])


def test_a_frame_that_no_input_reaches_is_dashed(scene: MakeScene) -> None:
    b = Builder()
    x = b.input()
    with b.module("table") as call:
        call.returns = [b.op("sin", [b.op("arange", [], (8,))], (8,))]
    b.output(b.op("mul", [x, call.returns[0]]))
    (box,) = scene(b.build()).boxes
    assert box.dashed


def test_frames_take_the_page_colour(scene: MakeScene) -> None:
    made = scene(builders.tree(), theme="dark")
    assert {box.fill for box in made.boxes} == {made.page.background}


# -- page
@pytest.mark.parametrize(
    ("direction", "rankdir"),
    [(None, "BT"), ("bottomup", "BT"), ("topdown", "TB"), ("leftright", "LR"), ("rightleft", "RL")],
)
def test_directions(scene: MakeScene, direction: str | None, rankdir: str) -> None:
    assert scene(builders.chain(), direction=direction).page.direction == rankdir


def test_call_sites_and_flops_stay_unread_where_nothing_shows_them(scene: MakeScene) -> None:
    data = builders.residual(1)

    def refuse(index: int) -> object:
        raise AssertionError(f"row {index} was computed")

    for column in ("flops", "macs", "site"):
        setattr(data.nodes, column, Deferred(len(data.nodes), refuse))
    scene(data, color_by="time")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("Linear", ("(Linear)",)),
        ("NormMlpClassifierHead", ("(NormMlp", "Classifier", "Head)")),
        ("GPT2Attention", ("(GPT2Attention)",)),
        ("averyveryverylongname", ("(averyveryverylongname)",)),
    ],
)
def test_class_names_of_frames_break_between_words(name: str, lines: tuple[str, ...]) -> None:
    assert class_lines(name) == lines


def test_labels_of_one_head_go_to_the_middle_together(scene: MakeScene) -> None:
    b = Builder()
    x = b.input()
    y = b.op("neg", [x])
    b.output(b.op("diff", {0: x, ("prepend",): y}))
    labels = [(edge.head, edge.middle) for edge in scene(b.build()).edges if edge.head or edge.middle]
    assert labels == [((), ("arg 0",)), ((), ("kwarg prepend",))]


def test_stubs_look_like_inputs_and_outputs(scene: MakeScene) -> None:
    made = scene(builders.residual(3), module="blocks.1")
    found = {node.name: (node.role, node.style.shape, node.style.fill, node.box, node.members) for node in made.nodes}
    assert found["stub:from:add_1_6"] == ("input", "oval", "#98fb98", None, ())
    assert found["stub:to:add_3_16"] == ("output", "oval", "#ff9999", None, ())


def test_a_stub_that_no_input_leads_to_is_dashed(scene: MakeScene) -> None:
    b = Builder()
    table = b.op("arange", [], (8,))
    with b.module("m") as call:
        call.returns = [b.op("mul", [b.input(), b.op("neg", [table], (8,))])]
    b.output(call.returns[0])
    made = scene(b.build(), module="m")
    stub = next(k for k, node in enumerate(made.nodes) if node.name == "stub:from:arange_1_1")
    assert made.nodes[stub].style.dash == "dashed"
    assert all(edge.dashed for edge in made.edges if edge.source == stub)


@pytest.mark.parametrize("theme", ["torchlens", "dark"])
def test_orphans_stand_in_a_dashed_grey_frame(scene: MakeScene, theme: str) -> None:
    b = Builder()
    b.op("sin", [b.op("rand", [], (4,))], (4,))
    b.output(b.op("relu", [b.input()]))
    data = b.build()
    (frame,) = scene(data, show_orphans=True, theme=theme).boxes
    assert (frame.name, frame.title, frame.dashed) == ("cluster:orphans", ("orphans",), True)
    red, green, blue = (int(frame.stroke[k : k + 2], 16) for k in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 24
    assert scene(data).boxes == ()
