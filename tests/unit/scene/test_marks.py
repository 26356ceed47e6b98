"""Marks on hand-made traces: motifs, rows, and who wins over them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from tests.unit.records.test_nonfinite import chain, with_values
from torchlens.base.colors import contrast, fill_colors
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import TraceData
from torchlens.scene.marks import MOTIFS, NOT_CHECKED, PASSED_WIDTH, SOURCE, START_WIDTH, WORDS
from torchlens.scene.model import Scene, SceneNode, SwatchLine
from torchlens.scene.node_spec import NodeSpec
from torchlens.settings import catalog

MakeScene = Callable[..., Scene]
Rows = Callable[..., list[str]]
PLAIN = {"log_1_1": "nan", "relu_1_2": "nan", "output_1": "nan"}


def wrong() -> TraceData:
    return with_values(chain("log", "relu"), PLAIN)


def node_of(scene: Scene, name: str) -> SceneNode:
    return next(node for node in scene.nodes if node.name == name)


def said(scene: MakeScene, data: TraceData, name: str, **options: object) -> str:
    """The row without its title, whole if it was wrapped."""
    rows = node_of(scene(data, show_nonfinite=True, **options), name).rows
    return "".join(" ".join(row.lines).removeprefix("nonfinite: ") for row in rows if row.token == "nonfinite")


# -- motifs
@pytest.mark.parametrize("kind", ["nan", "posinf", "neginf", "both"])
@pytest.mark.parametrize("theme", catalog.names("theme"))
def test_a_motif_is_two_halves_and_a_border_in_every_theme(scene: MakeScene, theme: str, kind: str) -> None:
    data = with_values(chain("log", "relu"), dict.fromkeys(("log_1_1", "relu_1_2", "output_1"), kind))
    made = scene(data, show_nonfinite=True, theme=theme)
    motif = MOTIFS[kind if kind != "both" else "mixed"]
    start, passed = node_of(made, "log_1_1").style, node_of(made, "relu_1_2").style
    assert (start.fill, start.split, passed.fill, passed.split) == (motif, True, motif, True)
    assert (passed.stroke, passed.stroke_width) == (motif.split(":")[0], PASSED_WIDTH)
    assert (start.stroke, start.stroke_width) == (made.page.text, START_WIDTH)
    assert start.dash == "solid"
    for half in fill_colors(motif):
        assert contrast(start.font_color or "", half) >= 4.5
    assert node_of(made, "input_1").style.split is None


def test_the_motifs_are_those_of_the_page(scene: MakeScene) -> None:
    assert {kind: motif.upper() for kind, motif in MOTIFS.items()} == {
        "nan": "#D55E00:#FFFFFF", "posinf": "#E69F00:#FFFFFF", "neginf": "#CC79A7:#FFFFFF", "mixed": "#D55E00:#E69F00",
    }  # fmt: skip
    assert NOT_CHECKED.upper() == "#7F7F7F"


def test_what_was_not_checked_keeps_its_fill(scene: MakeScene) -> None:
    data = with_values(builders.chain(), {"linear_1_1": "", "relu_1_2": "ok"})
    made, plain = scene(data, show_nonfinite=True), scene(data)
    style, before = node_of(made, "linear_1_1").style, node_of(plain, "linear_1_1").style
    assert (style.stroke, style.stroke_width, style.dash) == (NOT_CHECKED, 2.0, "dashed")
    assert (style.fill, style.split) == (before.fill, None)
    assert node_of(made, "relu_1_2").style == node_of(plain, "relu_1_2").style


def test_of_a_box_and_a_cylinder_only_the_border_is_marked(scene: MakeScene) -> None:
    data = builders.demo()
    data = with_values(data, dict.fromkeys([data.nodes.label[i] for i in data.op_indexes], "nan"))
    box = next(node for node in scene(data, show_nonfinite=True, depth=1).nodes if node.kind == "module")
    plain = next(node for node in scene(data, depth=1).nodes if node.kind == "module")
    assert (box.style.fill, box.style.split, box.style.shape) == (plain.style.fill, None, "box3d")
    assert (box.style.stroke, box.style.stroke_width) == ("#d55e00", START_WIDTH)
    b = Builder()
    b.output(b.op("add", [b.input(), b.read("scale")]))
    data = with_values(b.build(), {"buffer_1": "posinf", "add_1_1": "posinf", "output_1": "posinf"})
    cylinder = node_of(scene(data, show_nonfinite=True), "buffer:scale:1").style
    assert (cylinder.shape, cylinder.fill, cylinder.stroke) == ("cylinder", "#ffffff", "#e69f00")
    assert cylinder.stroke_width == START_WIDTH


def test_without_the_option_and_without_values_nothing_changes(scene: MakeScene) -> None:
    assert scene(wrong()).nodes == scene(chain("log", "relu")).nodes
    finite = with_values(chain("log", "relu"), {})
    assert scene(finite, show_nonfinite=True).nodes == scene(finite).nodes


# -- precedence
def test_a_channel_takes_the_fill_and_leaves_border_and_row(scene: MakeScene) -> None:
    data = wrong()
    made = scene(data, show_nonfinite=True, color_by="time")
    for name in ("log_1_1", "relu_1_2"):
        node, marked = node_of(made, name), node_of(scene(data, show_nonfinite=True), name)
        assert node.style.fill == node_of(scene(data, color_by="time"), name).style.fill
        assert node.style.split is None
        assert "split" not in node.origin
        assert (node.style.stroke, node.style.stroke_width) == ("#d55e00", marked.style.stroke_width)
        assert node.rows == marked.rows
        assert contrast(node.style.font_color or "", node.style.fill or "") >= 4.5
        assert [step.source for step in node.trail["fill"][-2:]] == [f"{SOURCE}: nan", "color_by time"]


def test_a_keyword_is_below_a_mark_and_a_hook_above(scene: MakeScene) -> None:
    def paint(record: object, spec: NodeSpec) -> NodeSpec:
        return spec.replace(fillcolor="#00ff00:#0000ff", penwidth=1.0)

    made = scene(wrong(), show_nonfinite=True, font_size=20, node_spec_fn=paint)
    node = node_of(made, "log_1_1")
    assert (node.style.fill, node.style.split, node.style.stroke_width) == ("#00ff00:#0000ff", None, 1.0)
    assert node.style.font_size == 20.0
    assert node.style.stroke == made.page.text


# -- rows
def test_a_start_says_so_and_what_passes_on_does_not(scene: MakeScene, rows: Rows) -> None:
    data = wrong()
    assert said(scene, data, "log_1_1") == "NaN, starts here"
    assert said(scene, data, "relu_1_2") == said(scene, data, "output_1") == "NaN"
    assert said(scene, data, "input_1") == ""
    assert rows(data, "log_1_1", node_label_fields=["name", "nonfinite"]) == ["log_1_1", "nonfinite: NaN, starts here"]


def test_of_several_kinds_the_row_names_the_one_that_starts(scene: MakeScene) -> None:
    data = with_values(chain("exp", "sub"), {"exp_1_1": "posinf", "sub_1_2": "both"})
    assert said(scene, data, "sub_1_2") == "NaN and +Inf, NaN starts here"


def test_passes_are_told(scene: MakeScene) -> None:
    data = builders.loop(3)
    tanh = [f"tanh_1_5:{k}" for k in (1, 2, 3)]
    with_values(data, {tanh[1]: "nan", tanh[2]: "posinf"})
    assert said(scene, data, "tanh_1_5", rolled=True).startswith("NaN in pass 2, +Inf in pass 3, ")
    with_values(data, dict.fromkeys(tanh, "nan"))
    assert said(scene, data, "tanh_1_5", rolled=True).startswith("NaN, ")
    with_values(data, {tanh[0]: "", tanh[2]: ""})
    assert said(scene, data, "tanh_1_5", rolled=True) == "passes 1,3 not checked"
    assert said(scene, data, tanh[1]) == ""


def test_a_box_counts_and_names_the_first(scene: MakeScene) -> None:
    data = builders.demo()
    box = "module:features:1"
    inside = [i for i in data.op_indexes if "features:1" in " ".join(data.module_stack(data.nodes.call[i]))]
    labels = [data.nodes.label[i] for i in inside]
    with_values(data, {labels[0]: "nan", labels[2]: "both"})
    text = said(scene, data, box, depth=1)
    assert text == f"NaN in 2, +Inf in 1 of {len(labels)} ops, starts at {labels[0]}"
    with_values(data, {labels[0]: ""})
    assert said(scene, data, box, depth=1) == f"1 of {len(labels)} not checked"


def test_a_stub_is_marked_by_what_comes_in(scene: MakeScene) -> None:
    data = builders.demo()
    with_values(data, dict.fromkeys([data.nodes.label[i] for i in data.op_indexes], "nan"))
    made = scene(data, show_nonfinite=True, module="features")
    assert {node.style.split for node in made.nodes if node.kind == "to"} == {None}
    made = scene(data, show_nonfinite=True, module="features.1", show_legend=True)
    assert {node.style.split for node in made.nodes if node.kind == "from"} == {True}


def test_a_row_of_outputs_is_counted(scene: MakeScene) -> None:
    b = Builder()
    parts = b.op("split", [b.input()], outs=[(1, 8)] * 9)
    for k in range(9):
        b.output(Ref(parts.node, k), f"{k}")
    data = b.build()
    labels = [label for label in data.nodes.label if label.startswith("output")]
    with_values(data, {"split_1_1": " ".join(["ok"] * 7 + ["nan"] * 2), **dict.fromkeys(labels[-2:], "nan")})
    made = scene(data, show_nonfinite=True, collapse="max")
    bundles = [node for node in made.nodes if node.kind == "outputs"]
    for node in bundles:
        assert node.rows[-1].lines == ("nonfinite: NaN in 2 of 9 tensors",)
    assert bundles or len([node for node in made.nodes if node.kind == "output"]) == 9


# -- key
def test_the_key_has_a_sample_of_every_motif_on_the_page_and_no_other(scene: MakeScene) -> None:
    data = with_values(
        builders.chain(), {"linear_1_1": "", "relu_1_2": "nan", "linear_2_3": "nan", "output_1": "posinf"}
    )
    data.nodes.stats[data.index_of["input_1"]] = (OutStats(9, 1.0, 1.0, 1.0, n_neginf=1),)  # type: ignore[index]
    made = scene(data, show_nonfinite=True, show_legend=True)
    lines = {line.text: line for line in made.root if isinstance(line, SwatchLine)}
    marks = {text: line for text, line in lines.items() if text in (*WORDS.values(), "not checked for NaN and Inf")}
    states = {step.source.removeprefix(f"{SOURCE}: ") for n in made.nodes for step in n.trail.get("stroke", ())}
    known = {**WORDS, "unchecked": "not checked for NaN and Inf"}
    assert set(marks) == {known[state] for state in states if state in known}
    assert marks["NaN"].split
    assert marks["NaN"].fill == MOTIFS["nan"]
    assert marks["not checked for NaN and Inf"].dash == "dashed"
    assert lines["thick border: starts here"].fill == ""
    assert not any(line.text in WORDS.values() for line in scene(data, show_legend=True).root if hasattr(line, "text"))


def test_a_mark_is_no_fill_of_a_role_and_no_dash_of_a_source(scene: MakeScene) -> None:
    data = with_values(chain("log", "relu"), {"input_1": "nan", "log_1_1": ""})
    texts = [line.text for line in scene(data, show_nonfinite=True, show_legend=True).root if hasattr(line, "text")]
    assert "input" not in texts
    assert "dashed: not computed from the input" not in texts


def test_samples_of_roles_and_stubs_are_those_without_marks(scene: MakeScene) -> None:
    data = builders.demo()
    with_values(data, dict.fromkeys(data.nodes.label, "nan"))
    plain = {line.text: line for line in scene(data, show_legend=True, depth=1).root if isinstance(line, SwatchLine)}
    marked = scene(data, show_legend=True, depth=1, show_nonfinite=True)
    lines = {line.text: line for line in marked.root if isinstance(line, SwatchLine)}
    assert lines["trainable parameters"] == plain["trainable parameters"]
    stubs = [
        {line.text: line for line in made.root if isinstance(line, SwatchLine)}["from: feeds this module"]
        for made in (scene(data, module="features.1"), scene(data, module="features.1", show_nonfinite=True))
    ]
    assert stubs[0] == stubs[1]
