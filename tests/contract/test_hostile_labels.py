"""Whatever names hold, a figure is a document that every reader takes, and says what the scene says.

One text stands everywhere at once: as class, address, path, key, parameter, argument, file, function, caption and note.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pypdf
import pytest
import reportlab
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.builders import Builder
from torchlens.base.text import clean
from torchlens.drawings import Drawing, draw_trace
from torchlens.records.ops import CallSite
from torchlens.records.provenance import Outcome
from torchlens.records.trace_data import TraceData

pytestmark = pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")

SETTINGS = [
    {"depth": 1, "show_legend": True},
    {"node_style": "profiling", "show_buffers": "always", "show_redundant_args": True},
    {"show_containers": "labels", "show_edge_shapes": True, "rolled": True, "direction": "leftright"},
    {"node_label_fields": ["type", "module", "params", "args", "address", "call", "fn"], "theme": "paper"},
]
WORDS = [
    "", " ", "<b>x</b>", "&amp;&lt;&#60;", "\"'", "\\N\\G\\E\\l\\", "line\nbreak", "\r\n\t", "\x00\x01\x1f\x7f\x85",
    "e\u0301 n\u0303", "שלום", "\u202eleft", "漢字", "👩\u200d👩", "digraph", "strict", "{a|b}", "->", "<!--", "-->",
    "]]>", "\ud800", "\ufffe\uffff", "\ufeff", "\u2028", "</TABLE>", "%s{0}", "#", "//", "[0]", "a.b.c", "::",
]  # fmt: skip
LONG = [
    "x" * 10_000,
    "ab " * 3_333,
    "漢" * 10_000,
    "👩" * 5_000,
    "<" * 10_000,
    '"' * 10_000,
    "\\" * 10_000,
    "\n" * 10_000,
]

TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=4).map("".join),
    st.text(st.characters(), max_size=30),
)


def everywhere(text: str) -> TraceData:
    """A trace with the text in every place."""
    address = text.replace(".", "_") or "m"
    b = Builder(text)
    x = b.input(text)
    used = (b.param(f"{text}.weight", (8, 8)), b.param(text, (8,), trainable=False))
    with b.module(address, text) as call:
        site = CallSite(f"/somewhere/{text}.py", 3, text)
        h = b.op(text, [x], params=used, config=((text, text), ("n", 1)), site=site)
        h = b.op("relu", [h, b.read(f"{address}.{text}")])
        b.write(f"{address}.{text}", h)
        call.returns = [h]
    h = b.op("sub", {(f"kw{text}", text): h, (1, text): b.constant(path=text)})
    b.output(h, text)
    b.output(h, f"{text}.1")
    data = b.build()
    data.outcome = Outcome(completed=False, error=text, advisories=[text])
    return data


def draw(text: str, **given: object) -> Drawing:
    return draw_trace(everywhere(text), None, {"file_format": "svg", "caption": text, **given})


def _texts(part: ET.Element) -> str:
    """What a reader sees of a part. Repeated blanks are written as ones that do not break."""
    found = [element.text or "" for element in part.iter() if element.tag.endswith("}text")]
    return "".join(found).replace("\N{NO-BREAK SPACE}", " ")


def _as_drawn(text: str) -> str:
    return clean(text).replace("\n", "").replace("\N{NO-BREAK SPACE}", " ")


def check(drawing: Drawing) -> None:
    """The picture is well-formed, its ids are unique, and each node shows its rows and no more."""
    root = ET.fromstring(drawing.data)
    groups = {name: part for part in root.iter() if (name := part.get("id")) is not None}
    assert len(groups) == sum(part.get("id") is not None for part in root.iter())
    parts = [part for part in groups.values() if part.get("class", "").startswith("node")]
    scene = drawing._scene
    assert len(parts) == len(scene.nodes)
    for node, part in zip(scene.nodes, sorted(parts, key=lambda part: _order(drawing, part)), strict=True):
        expected = "".join(_as_drawn(line) for row in node.rows for line in row.lines)
        shown = _texts(part)
        if not shown.endswith(" rows"):
            assert shown == expected
        title = next((element.text or "" for element in part if element.tag.endswith("}title")), "")
        if len(node.tooltip) < 2000 and node.tooltip:
            assert " ".join(title.split()) == " ".join(clean(node.tooltip).split())
    assert max(len(line) for node in scene.nodes for row in node.rows for line in row.lines) <= 160


def _order(drawing: Drawing, part: ET.Element) -> int:
    return drawing.dot.index(f'[id="{part.get("id")}" ')


@given(TEXTS, st.sampled_from(SETTINGS))
@settings(max_examples=150)
def test_any_text_in_every_place(text: str, options: dict[str, object]) -> None:
    check(draw(text, **options))


@pytest.mark.parametrize("text", LONG, ids=lambda text: f"{text[:3]!r} x {len(text)}")
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_ten_thousand_characters_are_cut_where_a_reader_sees_it(text: str, options: dict[str, object]) -> None:
    drawing = draw(text, **options)
    check(drawing)
    assert "…" in drawing.dot
    page = drawing.page
    assert page is not None
    assert max(page.width, page.height) < 20_000


@pytest.mark.skipif(shutil.which("dot") is None, reason="no installed Graphviz")
@pytest.mark.parametrize("text", [*WORDS, *LONG], ids=lambda text: f"{text[:9]!r} x {len(text)}")
def test_an_installed_graphviz_reads_the_document_without_complaint(text: str) -> None:
    for options in SETTINGS:
        document = draw(text, **options).dot.encode()
        done = subprocess.run(["dot", "-Tsvg"], input=document, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[:300]
        assert not done.stderr
        ET.fromstring(done.stdout)


# -- other formats
LATIN = 'Größe <naïve> & "señor" 100 % – ½ €'


def _pdf_text(drawing: Drawing) -> str:
    return " ".join(pypdf.PdfReader(io.BytesIO(drawing.data)).pages[0].extract_text().split())


def test_western_text_can_be_copied_from_a_pdf() -> None:
    found = _pdf_text(draw(LATIN, file_format="pdf"))
    for place in ("@input.{}", "{}={}", "params: weight (8, 8) · {} [8]"):
        assert place.format(LATIN, LATIN) in found, place


def test_an_embedded_font_brings_all_its_characters() -> None:
    text = "Größe Ærø ½"
    font = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
    drawing = draw(text, file_format="pdf", pdf_font=str(font))
    assert f"@input.{text}" in _pdf_text(drawing)
    assert not [warning for warning in drawing.warnings if warning.code == "pdf_glyph_missing"]


def test_what_a_pdf_cannot_show_is_said() -> None:
    drawing = draw("漢字", file_format="pdf")
    assert drawing.data.startswith(b"%PDF")
    assert [warning.code for warning in drawing.warnings if "glyph" in warning.code] == ["pdf_glyph_missing"]


@pytest.mark.parametrize("dpi", [72, 150])
def test_a_png_has_the_pixels_that_dpi_asks_for(dpi: int) -> None:
    points = draw("<b>&").page
    assert points is not None
    width, height = Image.open(io.BytesIO(draw("<b>&", file_format="png", dpi=dpi).data)).size
    assert abs(width - points.width * dpi / 72) <= 1
    assert abs(height - points.height * dpi / 72) <= 1
