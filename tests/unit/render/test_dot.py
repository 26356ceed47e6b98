"""Scene to DOT text: escaping, ids, structure, stable bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from tests import builders
from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.render import dot, svg
from torchlens.render.dot_nodes import style_attributes
from torchlens.render.graphviz import EMBEDDED, SYSTEM, GraphvizEngine
from torchlens.scene import build
from torchlens.scene.model import NodeStyle, Row, Scene, SceneNode, SwatchLine
from torchlens.settings.compose import resolve

HOSTILE = [
    "<b>",
    "&amp;",
    'quo"te',
    "back\\slash",
    "\\N \\G \\l",
    "[x]",
    "tab\there",
    "nul\0",
    "漢字 🙂",
    "--> ]]>",
    "%s {0}",
]


def scene_of(data: TraceData, **options: object) -> Scene:
    request = resolve(data, options)
    return build(make_plan(data, request), data, request)


def write(data: TraceData, **options: object) -> str:
    return dot.write(scene_of(data, **options))


def ids(text: str) -> list[str]:
    """Ids of nodes, frames and arrows; those of cells are written in capitals."""
    return re.findall(r'\bid="([^"]*)"', text)


# -- text
@pytest.mark.parametrize("text", HOSTILE)
def test_text_survives_every_place_where_it_can_stand(text: str) -> None:
    b = builders.Builder(f"M{text}")
    with b.module(f"a{text}", f"C{text}") as call:
        h = b.op("relu", [b.input(text)], config=(("arg", text),))
        call.returns = [b.op(f"op{text}", [h])]
    b.output(call.returns[0], text)
    document = write(b.build(), caption=text, show_legend=True)
    drawn = [element.text for element in ET.fromstring(EMBEDDED.run(document, "svg")).iter() if element.text]
    # A space is drawn as one that does not break; a control character is drawn as the replacement character.
    expected = "".join("\N{REPLACEMENT CHARACTER}" if ord(c) < 32 else c for c in text)
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in drawn]
    for prefix in ("M", "@a", "arg=", "@input.", "@output.", ""):
        assert any(f"{prefix}{expected}" in line for line in lines), prefix


def test_a_label_is_capped_and_says_so() -> None:
    scene = scene_of(builders.chain())
    rows = tuple(Row("x", ("y" * 900,), k == 0) for k in range(10))
    node = scene.nodes[0]._replace(rows=rows)
    text = dot.write(Scene("x", scene.page, (), (node,), (), ()))
    (label,) = re.findall(r" n0 .*", text)
    assert len(label) < 5000
    assert "… +6 rows" in label


def test_of_an_endless_caption_the_rest_is_counted_and_the_key_stays() -> None:
    text = write(builders.demo(), caption="\n".join(["&" * 100] * 200), show_legend=True)
    (label,) = re.findall(r"^ graph .*", text, re.MULTILINE)
    assert len(label.encode()) < 16_384
    (rest,) = re.findall(r"… \+(\d+) lines", label)
    assert label.count("&amp;" * 100) + int(rest) == 200
    assert "double border" in label
    assert write(builders.demo(), caption="x\n" * 30).count("… +") == 0


def test_a_node_without_rows_has_an_empty_label() -> None:
    scene = scene_of(builders.chain())
    node = SceneNode("x", "op", "op", (), NodeStyle(), {}, "", None, ())
    assert 'label=""' in dot.write(Scene("x", scene.page, (), (node,), (), ()))


# -- ids
def test_ids_are_the_labels() -> None:
    found = ids(write(builders.loop(2)))
    assert "tanh_1_5:2" in found
    assert "edge:add_1_4:2->tanh_1_5:2:1" in found
    demo = ids(write(builders.demo(), show_buffers="always"))
    assert "cluster:features.0:1" in demo
    assert "buffer:features.0.norm.running_mean:2" in demo
    assert "module:features:1" in ids(write(builders.demo(), depth=1))


def test_header_caption_and_key_have_ids() -> None:
    text = write(builders.demo(), view="speed")
    cells = re.findall(r' ID="([^"]*)"', text)
    assert cells[:4] == ["caption:header:1", "caption:header:2", "caption:header:3", "caption:1"]
    assert "key:1" in cells
    assert all(name.startswith(("key", "caption")) for name in cells)


@pytest.mark.parametrize("name", builders.SAMPLES)
def test_ids_are_unique_and_safe(name: str) -> None:
    for options in ({}, {"rolled": True}, {"depth": 1}, {"show_buffers": "always"}):
        found = ids(write(builders.SAMPLES[name](), **options))
        assert len(found) == len(set(found))
        assert all(re.fullmatch(r"[A-Za-z0-9_.:>~-]+", one) for one in found)


def test_names_that_become_alike_are_numbered() -> None:
    b = builders.Builder()
    h = b.input()
    for address in ("a b", "a_b", "a?b"):
        with b.module(address) as call:
            h = b.op("cos", [b.op("sin", [h])])
            call.returns = [h]
    b.output(h)
    found = [one for one in ids(write(b.build())) if one.startswith("cluster")]
    assert found == [
        "cluster:a_b:1",
        "cluster:a_b:1~2",
        "cluster:a_b:1~3",
    ]


def test_graph_names_never_come_from_the_user() -> None:
    text = write(builders.awkward())
    names = re.findall(r"^\s*(?:subgraph )?(\S+) (?:\[|\{|->)", text, re.MULTILINE)
    assert names
    assert all(re.fullmatch(r"n\d+|cluster_\d+|graph|node|edge|digraph", name) for name in names)


# -- structure
INHERITED = [
    "id",
    "label",
    "labelloc",
    "labeljust",
    "style",
    "fillcolor",
    "color",
    "penwidth",
    "peripheries",
    "fontcolor",
    "margin",
]


def test_every_frame_sets_what_it_would_inherit() -> None:
    text = write(builders.tree())
    frames = re.findall(r"subgraph cluster_\d+ \{\n\s*graph \[(.*)\];", text)
    assert len(frames) == 4
    for frame in frames:
        for attribute in INHERITED:
            assert re.search(rf"(^| ){attribute}=", frame)


def test_frames_are_nested_and_nodes_come_in_trace_order() -> None:
    text = write(builders.tree())
    positions = [text.index(f" n{k} [") for k in range(14)]
    assert positions == sorted(positions)
    depth = 0
    inside: dict[str, int] = {}
    for line in text.splitlines():
        depth += line.count("{") - line.count("}") if "subgraph" in line or line.strip() in ("{", "}") else 0
        if found := re.match(r"\s*(n\d+) \[", line):
            inside[found[1]] = depth
    assert (inside["n0"], inside["n1"], inside["n4"], inside["n13"]) == (0, 1, 4, 0)


def test_nothing_steers_the_layout_by_stealth() -> None:
    for make in builders.SAMPLES.values():
        text = write(make())
        assert "ordering=" not in text
        assert "invis" not in text


def test_an_ordinary_arrow_has_an_id_and_nothing_else() -> None:
    lines = [line for line in write(builders.chain()).splitlines() if "->" in line]
    assert lines[0] == ' n0 -> n1 [id="edge:input_1->linear_1_1:1"];'


def test_labels_of_arrows() -> None:
    text = write(builders.state())
    assert 'headlabel="arg 0"' in text
    assert 'headlabel="arg 1" labelangle=-45 style=dashed' in text
    assert 'label="    x2"' in write(builders.awkward())
    assert 'taillabel="[0]" labelangle=-45]' in write(builders.multi_output())
    assert 'taillabel="[1]"]' in write(builders.multi_output())
    assert 'label="    Out 3"' in write(builders.loop(3), rolled=True)
    assert 'label="x2\\n "' in write(builders.awkward(), direction="leftright")


def test_an_arrow_against_the_flow_is_written_along_it() -> None:
    """So that no engine turns another arrow of the loop round, and places nodes in another order than they ran."""
    text = write(builders.loop(3), rolled=True)
    assert ' n3 -> n5 [id="edge:tanh_1_5->linear_2_3:1" label="    In 2-3\\n    Out 1-2" dir=back];' in text
    ends = [(int(a), int(b)) for a, b in re.findall(r"^ n(\d+) -> n(\d+) ", text, re.MULTILINE)]
    assert all(a < b for a, b in ends)


@pytest.mark.parametrize("direction", ["bottomup", "leftright"])
def test_an_arm_is_large_bold_and_underlined_above_the_other_labels(direction: str) -> None:
    text = write(builders.branches_in_loop(), rolled=True, direction=direction)
    label = next(line for line in text.splitlines() if '"edge:input_1->linear_1_3:1"' in line)
    arm, small = label.index('<TD><FONT POINT-SIZE="18"><B><U>THEN</U></B></FONT></TD>'), label.index("<TD>In 1</TD>")
    assert arm < small
    assert "THEN@L9 · THEN@L10" in text


@pytest.mark.parametrize("engine", [EMBEDDED, SYSTEM])
def test_engines_draw_arms(engine: GraphvizEngine) -> None:
    if engine.locate() is None:
        pytest.skip(f"{engine.name} is not installed")
    figure = svg.read(engine.run(write(builders.branch()), "svg"))
    (text,) = [found for found in figure.root.iter("text") if found.text == "THEN"]
    shown = {name: text.get(name) for name in ("font-weight", "text-decoration", "font-size")}
    assert shown == {"font-weight": "bold", "text-decoration": "underline", "font-size": "18.00"}


def test_user_attributes_come_last_and_are_quoted() -> None:
    attributes = {"splines": "ortho", "nodesep": 0.5, "center": True, 'a"b': "x;y"}
    text = write(builders.chain(), graph_attrs=attributes)
    assert ' graph ["splines"="ortho" "nodesep"="0.5" "center"="true" "a\\"b"="x;y"];' in text
    assert text.index('"splines"') > text.index("rankdir")


def test_the_key_is_a_bar_of_48_cells_of_2_points() -> None:
    text = write(builders.demo(), color_by="time")
    assert text.count('<TD FIXEDSIZE="TRUE" WIDTH="2" HEIGHT="10" BGCOLOR=') == 48
    assert "time: 10 us" in text
    assert "BGCOLOR" not in write(builders.demo())


def test_styles_are_complete_and_the_commonest_is_written_once() -> None:
    text = write(builders.chain())
    (node,) = re.findall(r"^ node \[(.*)\];", text, re.MULTILINE)
    for attribute in (
        "shape",
        "style",
        "fillcolor",
        "color",
        "penwidth",
        "fontcolor",
        "fontsize",
        "peripheries",
        "margin",
    ):
        assert f"{attribute}=" in node
    assert 'fillcolor="#d9d9d9:#b0b0b0"' in write(builders.state())


# -- bytes
@pytest.mark.parametrize("options", [{}, {"view": "speed"}, {"rolled": True, "theme": "dark"}, {"depth": 1}], ids=str)
def test_the_same_figure_has_the_same_bytes(options: dict[str, object]) -> None:
    for make in builders.SAMPLES.values():
        assert write(make(), **options) == write(make(), **options)


def test_the_bytes_do_not_depend_on_the_process() -> None:
    code = (
        "import sys; from tests.unit.render.test_dot import write; from tests import builders;"
        "sys.stdout.buffer.write(write(builders.state(), view='speed', show_buffers='always').encode())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": s}
        ).stdout
        for s in ("1", "2")
    }
    assert found == {write(builders.state(), view="speed", show_buffers="always").encode()}


@pytest.mark.parametrize("option", [{"show_redundant_args": False}, {"show_legend": None}, {"color_scale": "linear"}])
def test_an_option_at_its_default_changes_nothing(option: dict[str, object]) -> None:
    given = option if "color_scale" not in option else {}
    theme = {"extends": "torchlens", "draw": option}
    assert write(builders.demo(), **given) == write(builders.demo())
    assert write(builders.demo(), theme=theme) == write(builders.demo())


@pytest.mark.parametrize("name", builders.SAMPLES)
def test_the_engine_draws_every_node_frame_and_arrow(name: str) -> None:
    for options in ({}, {"rolled": True, "direction": "leftright"}, {"depth": 1, "view": "speed", "theme": "paper"}):
        scene = scene_of(builders.SAMPLES[name](), **options)
        document = dot.write(scene)
        groups = [
            g.get("class", "").split()[0] for g in ET.fromstring(EMBEDDED.run(document, "svg")).iter() if g.get("class")
        ]
        assert groups.count("node") == len(scene.nodes)
        assert groups.count("edge") == len(scene.edges)
        assert groups.count("cluster") == len(scene.boxes)


def test_the_label_of_a_loop_at_one_node_has_room_on_both_sides() -> None:
    b = builders.Builder()
    h = b.input()
    for _ in range(3):
        h = b.linear("fc", h, 8, layer="fc")
    b.output(h)
    assert f'label="    In 2-3{" " * 12}\\n    Out 1-2{" " * 12}"' in write(b.build(), rolled=True)


@pytest.mark.parametrize(
    ("shape", "style"), [("oval", "wedged"), ("box", "striped"), ("hexagon", "filled"), ("cylinder", "filled")]
)
def test_colours_side_by_side_are_written_for_shapes_that_can_be_split(shape: str, style: str) -> None:
    look = NodeStyle(shape=shape, fill="#d55e00:#ffffff", split=True)
    assert style_attributes(look)["style"] == f"{style},solid"
    assert style_attributes(replace(look, split=None))["style"] == "filled,solid"
    assert style_attributes(replace(look, fill="#d55e00"))["style"] == "filled,solid"


def test_a_sample_of_two_halves_has_a_sharp_step_and_a_dashed_one_is_dashed() -> None:
    scene = replace(
        scene_of(builders.chain()),
        root=(
            SwatchLine("halves", "#d55e00:#ffffff", "#d55e00", 2.0, 10.0, "#000000", split=True),
            SwatchLine("blend", "#d55e00:#ffffff", "#d55e00", 2.0, 10.0, "#000000"),
            SwatchLine("dashes", "", "#7f7f7f", 2.0, 10.0, "#000000", dash="dashed"),
        ),
    )
    text = dot.write(scene)
    assert text.count('BGCOLOR="#d55e00;0.5:#ffffff"') == text.count('BGCOLOR="#d55e00:#ffffff"') == 1
    assert text.count('STYLE="dashed"') == 1
