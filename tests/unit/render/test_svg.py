"""The SVG that leaves the package: valid, self-contained, the same everywhere, and the same picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from torchlens.base.errors import EngineError
from torchlens.render import svg
from torchlens.render.graphviz import EMBEDDED, SYSTEM

SVG = "{http://www.w3.org/2000/svg}"


def text_of(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def written(raw_svg: bytes) -> bytes:
    return svg.write(svg.read(raw_svg)).data


@pytest.fixture(scope="module")
def root(written: bytes) -> ET.Element:
    return ET.fromstring(written)


def test_no_trace_of_the_engine_is_left(written: bytes) -> None:
    for part in (b"Generated", b"graphviz", b"DOCTYPE", b"<!--"):
        assert part not in written


def test_size_stays_in_points(raw_svg: bytes, root: ET.Element) -> None:
    size = re.search(rb'width="(\d+)pt" height="(\d+)pt"', raw_svg)
    assert size is not None
    assert (root.get("width"), root.get("height")) == (f"{size[1].decode()}pt", f"{size[2].decode()}pt")
    artifact = svg.write(svg.read(raw_svg))
    assert artifact.page is not None
    assert (artifact.page.width, artifact.page.height) == (float(size[1]), float(size[2]))
    assert (artifact.page.unit, artifact.page.scale) == ("pt", 1.0)
    assert root.get("viewBox", "").split()[2:] == [f"{float(size[1]):.2f}", f"{float(size[2]):.2f}"]


def test_the_root_says_what_it_is(root: ET.Element) -> None:
    assert root.get("class") == "torchlens"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == 'Demo "net" <&>'


def test_title_can_be_given(raw_svg: bytes) -> None:
    figure = svg.read(raw_svg, title="Other & <one>")
    assert b"<title>Other &amp; &lt;one&gt;</title>" in svg.write(figure).data


def test_every_shape_and_every_word_survives(raw_svg: bytes, root: ET.Element) -> None:
    before = ET.fromstring(raw_svg)
    assert text_of(root) == text_of(before)
    for tag in ("polygon", "polyline", "path", "ellipse", "text"):
        assert len(list(root.iter(SVG + tag))) == len(list(before.iter(SVG + tag)))


def test_ids_and_classes_survive(root: ET.Element) -> None:
    groups = {element.get("id"): element.get("class") for element in root.iter(f"{SVG}g")}
    assert groups["conv2d_1_1"] == "node op"
    assert groups["relu_1_2:2"] == "node"
    assert groups["cluster:a:1"] == "cluster module"
    assert groups["edge:conv2d_1_1->relu_1_2:2:0"] == "edge"


def test_tooltips_are_titles_and_internal_names_are_gone(root: ET.Element) -> None:
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles == ['Demo "net" <&>', "first & <last>"]
    assert not list(root.iter(f"{SVG}a"))
    assert "xlink" not in ET.tostring(root, encoding="unicode")


def test_a_link_that_leads_somewhere_stays() -> None:
    raw = b"""<svg width="9pt" height="9pt" viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"
        xmlns:xlink="http://www.w3.org/1999/xlink"><g id="g"><title>t</title>
        <g id="a_n"><a xlink:href="http://example.org/?a=1&amp;b=2" xlink:title="x"><text>n</text></a></g></g></svg>"""
    written = svg.write(svg.read(raw)).data
    assert ET.fromstring(written).find(f".//{SVG}a") is not None
    assert b'xlink:href="http://example.org/?a=1&amp;b=2"' in written


def test_gradients_are_named_by_content(root: ET.Element) -> None:
    blocks = root.findall(f"{SVG}defs")
    assert len(blocks) == 1
    names = [gradient.get("id", "") for gradient in blocks[0]]
    assert len(names) == 2
    assert all(re.fullmatch(r"gradient-[0-9a-f]{12}", name) for name in names)
    used = {element.get("fill", "") for element in root.iter() if element.get("fill", "").startswith("url(")}
    assert used == {f"url(#{name})" for name in names}


def test_equal_gradients_of_two_figures_have_one_name_and_different_ones_two() -> None:
    def figure(identifier: str, color: str) -> bytes:
        return f"""<svg width="9pt" height="9pt" xmlns="http://www.w3.org/2000/svg"><g><defs>
            <linearGradient id="{identifier}"><stop offset="0" style="stop-color:{color}"/></linearGradient></defs>
            <polygon fill="url(#{identifier})" points="0,0 9,9"/></g></svg>""".encode()

    def names(data: bytes) -> list[bytes]:
        return re.findall(rb"gradient-[0-9a-f]{12}", svg.write(svg.read(data)).data)

    assert names(figure("l_0", "#fff")) == names(figure("l_7", "#fff"))
    assert set(names(figure("l_0", "#fff"))).isdisjoint(names(figure("l_0", "#000")))


def test_fonts_have_metric_compatible_fallbacks(root: ET.Element) -> None:
    assert root.get("font-family") == "Helvetica,Arial,Liberation Sans,Arimo,sans-serif"
    families = {text.text: text.get("font-family") for text in root.iter(f"{SVG}text")}
    assert families["conv2d_1_1"] is None
    assert families["box"] == "Courier,Courier New,Liberation Mono,Cousine,monospace"
    assert families["striped"] == "Times,Times New Roman,Liberation Serif,Tinos,serif"


def test_spaces_are_kept(root: ET.Element) -> None:
    assert root.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"
    assert " x2" in text_of(root)


def test_the_same_input_gives_the_same_bytes(raw_svg: bytes, written: bytes) -> None:
    assert svg.write(svg.read(raw_svg)).data == written


def test_hostile_labels_stay_text(raw_hostile: bytes) -> None:
    figure = svg.write(svg.read(raw_hostile))
    root = ET.fromstring(figure.data)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg",
        "g",
        "title",
        "polygon",
        "path",
        "ellipse",
        "text",
    }
    texts = text_of(root)
    assert '<b>&amp;"[x] \\N \\l' in texts
    assert '--> </text> <script>alert(1)</script> & \\ "quoted"' in texts
    assert "two 漢字 Δ → × … é ﬁ 🙂" in texts
    assert root[0].text == "</svg><script>"


def test_broken_output_is_a_coded_error() -> None:
    for data in (b"<svg><g>", b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>"):
        with pytest.raises(EngineError) as caught:
            svg.read(data)
        assert caught.value.code == "render_engine_failed"


def test_inline_form_is_never_cut(written: bytes) -> None:
    text = svg.inline(written)
    head = text[: text.index(">")]
    assert text.startswith("<svg ")
    assert 'width="100%"' in head
    assert re.search(r'style="max-width:\d+pt;height:auto"', head)
    assert "viewBox=" in head
    assert not re.search(r' (width|height)="[\d.]+(pt)?"', head)
    assert text.partition(">")[2] == written.decode().partition("<svg ")[2].partition(">")[2]
    ET.fromstring(text)


@pytest.mark.skipif(SYSTEM.locate() is None, reason="Graphviz is not installed on this machine")
def test_the_other_engine_is_brought_to_the_same_form(document: str, root: ET.Element) -> None:
    other = ET.fromstring(svg.write(svg.read(SYSTEM.run(document, "svg"))).data)
    assert set(text_of(other)) == set(text_of(root))
    assert {e.get("id") for e in other.iter(f"{SVG}g")} == {e.get("id") for e in root.iter(f"{SVG}g")}
    assert not [e for e in other.iter() if "transparent" in (e.get("fill"), e.get("stroke"))]


def test_lines_of_header_caption_and_key_keep_their_ids() -> None:
    cells = "".join(
        f'<TR><TD ID="{name}" TITLE=" ">{name}</TD></TR>' for name in ("caption:header:1", "caption:1", "key:1")
    )
    document = f'digraph g {{ tooltip=" "; label=<<TABLE>{cells}</TABLE>>; a [id="relu_1_2" tooltip="tip"] }}'
    root = ET.fromstring(svg.write(svg.read(EMBEDDED.run(document, "svg"))).data)
    named = {group.get("id"): text_of(group) for group in root.iter(f"{SVG}g")}
    assert [named[name] for name in ("caption:header:1", "caption:1", "key:1")] == [
        ["caption:header:1"],
        ["caption:1"],
        ["key:1"],
    ]
    assert not [name for name in named if name and name.startswith("a_")]
    assert not list(root.iter(f"{SVG}a"))
    (node,) = [group for group in root.iter(f"{SVG}g") if group.get("id") == "relu_1_2"]
    assert node.findtext(f"{SVG}title") == "tip"
