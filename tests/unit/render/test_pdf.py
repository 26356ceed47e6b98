"""PDF: real text where it belongs, the picture of the SVG, and the same bytes every time."""

from __future__ import annotations

import io
import re
import shutil
import warnings
import zlib
from pathlib import Path

import pytest
import reportlab
from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from torchlens.base.errors import EngineError, TorchLensWarning
from torchlens.render import fonts, pdf, svg
from torchlens.render.artifacts import Artifact

VERA = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"


def draw(body: str, width: float = 100, height: float = 50, font: Path | None = None) -> Artifact:
    """A PDF of an SVG body in a graph group."""
    size = f'width="{width}pt" height="{height}pt" xmlns="http://www.w3.org/2000/svg"'
    text = f"<svg {size}><g id='g'><title>T</title>{body}</g></svg>"
    return pdf.write(svg.read(text.encode()), fonts.load_fonts(str(font) if font else None))


def reader(artifact: Artifact) -> PdfReader:
    return PdfReader(io.BytesIO(artifact.data))


def operators(artifact: Artifact) -> str:
    """The drawing operators of the page."""
    return reader(artifact).pages[0].get_contents().get_data().decode("latin-1")  # type: ignore[union-attr]


def spans(artifact: Artifact) -> dict[str, tuple[float, float]]:
    """Position of each text on the page, in points from the lower left corner."""
    found: dict[str, tuple[float, float]] = {}

    def visit(text: str, current: list[float], matrix: list[float], font: object, size: object) -> None:
        if text.strip():
            x = matrix[4] * current[0] + matrix[5] * current[2] + current[4]
            y = matrix[4] * current[1] + matrix[5] * current[3] + current[5]
            found[text.strip()] = (x, y)

    reader(artifact).pages[0].extract_text(visitor_text=visit)
    return found


@pytest.fixture(scope="module")
def whole(raw_svg: bytes) -> Artifact:
    return pdf.write(svg.read(raw_svg), fonts.load_fonts(None))


def test_the_page_has_the_size_of_the_figure(raw_svg: bytes, whole: Artifact) -> None:
    figure = svg.read(raw_svg)
    box = reader(whole).pages[0].mediabox
    assert (float(box.width), float(box.height)) == (figure.width, figure.height)
    assert len(reader(whole).pages) == 1
    assert whole.page is not None
    assert (whole.page.width, whole.page.height, whole.page.scale) == (figure.width, figure.height, 1.0)


def test_every_label_can_be_extracted(whole: Artifact) -> None:
    text = reader(whole).pages[0].extract_text()
    for label in (
        "Demo",
        "12 ops",
        "@a",
        "conv2d_1_1",
        "(2, 8), 64 B",
        "relu_1_2:2",
        "buffer",
        "box",
        "striped",
        "x2",
        "arg 0",
    ):
        assert label in text


def test_the_same_figure_gives_the_same_bytes(raw_svg: bytes, whole: Artifact) -> None:
    assert pdf.write(svg.read(raw_svg), fonts.load_fonts(None)).data == whole.data


def test_no_date_and_no_author(whole: Artifact) -> None:
    assert b"D:20" not in whole.data
    info = reader(whole).metadata
    assert info is not None
    assert info.title == 'Demo "net" <&>'
    assert info.creator == "torchlens"
    assert not info.author
    assert "/CreationDate" not in info


def test_every_object_is_where_the_table_says(whole: Artifact) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PdfReader(io.BytesIO(whole.data), strict=True).pages[0].extract_text()


# -- text
@pytest.mark.parametrize(("anchor", "shift"), [("start", 0.0), ("middle", 0.5), ("end", 1.0)])
def test_text_is_anchored_by_its_real_width(anchor: str, shift: float) -> None:
    artifact = draw(f'<text x="60" y="20" text-anchor="{anchor}" font-family="Helvetica" font-size="10">WWii</text>')
    x, y = spans(artifact)["WWii"]
    assert x == pytest.approx(60 - shift * 10 * (2 * 0.944 + 2 * 0.222), abs=0.01)
    assert y == pytest.approx(50 - 20, abs=0.01)


def test_bold_text_uses_bold_widths() -> None:
    artifact = draw('<text x="60" y="20" text-anchor="middle" font-weight="bold" font-size="10">iiii</text>')
    assert spans(artifact)["iiii"][0] == pytest.approx(60 - 2 * 2.78, abs=0.01)
    assert "Helvetica-Bold" in font_names(artifact)


def font_names(artifact: Artifact) -> set[str]:
    resources = reader(artifact).pages[0]["/Resources"]
    assert isinstance(resources, DictionaryObject)
    return {str(font.get_object()["/BaseFont"]).removeprefix("/") for font in resources["/Font"].values()}  # type: ignore[union-attr]


def test_standard_fonts_are_not_embedded(whole: Artifact) -> None:
    assert {"Helvetica", "Helvetica-Bold", "Courier", "Times-Roman"} <= font_names(whole)
    assert b"FontFile" not in whole.data


def test_greek_and_arrows_come_from_the_symbol_font() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        artifact = draw('<text x="5" y="20" font-size="10">a Δ → × … é</text>')
    assert "Symbol" in font_names(artifact)


def test_unknown_characters_are_replaced_and_disclosed() -> None:
    with pytest.warns(TorchLensWarning, match=r"U\+6F22 漢 CJK UNIFIED IDEOGRAPH-6F22, U\+1F642") as caught:
        artifact = draw('<text x="5" y="20" font-size="10">a漢b🙂</text><text x="5" y="40" font-size="10">漢</text>')
    assert caught[0].message.code == "pdf_glyph_missing"  # type: ignore[union-attr]
    assert len(caught) == 1
    assert "a?b?" in reader(artifact).pages[0].extract_text()


def test_a_font_can_be_embedded() -> None:
    artifact = draw(
        '<text x="5" y="20" font-size="10">plain é</text>'
        '<text x="5" y="40" font-weight="bold" font-size="10">strong</text>',
        font=VERA,
    )
    names = font_names(artifact)
    assert {name.partition("+")[2] for name in names} == {
        "BitstreamVeraSans-Roman",
        "BitstreamVeraSans-Bold",
    }
    assert artifact.data.count(b"/FontFile2") == 2
    text = reader(artifact).pages[0].extract_text()
    assert "plain é" in text
    assert "strong" in text


def test_an_embedded_font_gives_the_same_bytes() -> None:
    body = '<text x="5" y="20" font-size="10">plain é</text>'
    assert draw(body, font=VERA).data == draw(body, font=VERA).data


def test_a_wider_font_is_squeezed_into_the_planned_width() -> None:
    artifact = draw('<text x="50" y="20" text-anchor="middle" font-size="10">wide label</text>', font=VERA)
    planned = fonts.width("wide label", "Helvetica", 10)
    wide = fonts.width("wide label", fonts.load_fonts(str(VERA)).face("Helvetica", False, False).name, 10)
    assert wide > planned
    assert spans(artifact)["wide label"][0] == pytest.approx(50 - planned / 2, abs=0.01)
    scales = [float(number) for number in re.findall(r"([\d.]+) Tz", operators(artifact))]
    assert scales == [pytest.approx(100 * planned / wide, abs=0.01), 100]


def test_bold_without_a_bold_file_is_drawn_thicker(tmp_path: Path) -> None:
    shutil.copy(VERA, tmp_path / "alone.ttf")
    body = '<text x="5" y="20" font-weight="bold">strong</text><text x="5" y="40">plain</text>'
    drawn = operators(draw(body, font=tmp_path / "alone.ttf"))
    assert re.search(r"\b2 Tr\b[^B]*?\b0 Tr\b", drawn)
    assert drawn.count(" Tr") == 2


# -- shapes
def test_the_upper_left_corner_is_the_origin() -> None:
    drawn = operators(draw('<polygon points="1,2 3,2 3,4" fill="#ff0000" stroke="none"/>'))
    assert "1 0 0 -1 0 50 cm" in drawn
    assert re.search(r"1 0 0 rg", drawn)
    assert re.search(r"1 2 m 3 2 l 3 4 l h f", re.sub(r"\s+", " ", drawn))


def test_transforms_nest_and_end() -> None:
    line = '<polyline points="{}" stroke="#000000" fill="none"/>'
    inner, outer = line.format("0,0 1,1"), line.format("5,5 6,6")
    body = f'<g transform="scale(2 2) rotate(-90) translate(3 4)">{inner}</g>{outer}'
    drawn = re.sub(r"\s+", " ", operators(draw(body)))
    # Worked by hand: scale 2, then a quarter turn to the left, then 3 to the right and 4 down.
    assert "q 0 -2 2 0 8 -6 cm 0 0 0 RG" in drawn
    assert drawn.index("0 0 m 1 1 l S Q") < drawn.index("5 5 m 6 6 l S")
    assert drawn.count(" cm") == 3


def test_dashes_widths_and_their_end() -> None:
    body = (
        '<path d="M0,0C1,1 2,2 3,3" stroke="#010203" stroke-width="2.5" stroke-dasharray="5,2" fill="none"/>'
        '<path d="M0,9L9,9" stroke="black" fill="none"/>'
    )
    drawn = re.sub(r"\s+", " ", operators(draw(body)))
    assert drawn.index("[5 2] 0 d") < drawn.index("0 0 m 1 1 2 2 3 3 c") < drawn.index("[] 0 d") < drawn.index("0 9 m")
    assert drawn.index("2.5 w") < drawn.index("1 w")


def test_a_line_of_width_zero_is_not_drawn() -> None:
    drawn = operators(draw('<polygon points="1,2 3,2 3,4" fill="none" stroke="#ff0000" stroke-width="0"/>'))
    assert "1 2 m" not in drawn


def test_opacity_is_set_and_taken_back() -> None:
    body = (
        '<ellipse cx="20" cy="20" rx="10" ry="5" fill="#ff0000" fill-opacity="0.25" stroke="none"/>'
        '<ellipse cx="40" cy="20" rx="10" ry="5" fill="#00ff00" stroke="none"/>'
    )
    artifact = draw(body)
    states = reader(artifact).pages[0]["/Resources"]["/ExtGState"]  # type: ignore[index]
    values = {float(state.get_object()["/ca"]) for state in states.values()}
    assert values == {0.25, 1.0}
    assert operators(artifact).count(" gs") == 2


def test_opacity_ends_with_its_group() -> None:
    faint = '<ellipse cx="20" cy="20" rx="10" ry="5" fill="#ff0000" fill-opacity="0.25"/>'
    drawn = operators(draw(f'<g transform="translate(1 1)">{faint}</g>{faint}'))
    inside, outside = drawn.split("Q", 1)
    assert inside.count(" gs") == outside.count(" gs") == 1


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("linearGradient", 'gradientUnits="userSpaceOnUse" x1="0" y1="5" x2="9" y2="5"'),
        ("radialGradient", 'cx="50%" cy="50%" r="75%"'),
    ],
)
def test_gradients_are_clipped_shadings(kind: str, attributes: str) -> None:
    body = (
        f'<defs><{kind} id="l" {attributes}><stop offset="0" style="stop-color:#d9d9d9;stop-opacity:1.;"/>'
        f'<stop offset="1" style="stop-color:white;stop-opacity:1.;"/></{kind}></defs>'
        '<polygon points="0,0 9,0 9,9" fill="url(#l)" stroke="#ff0000"/>'
    )
    drawn = re.sub(r"\s+", " ", operators(draw(body)))
    assert re.search(r"q .*?W n .*?/\w+ sh .*?Q .*1 0 0 RG .*0 0 m .* S", drawn)


def test_pages_end_where_acrobat_does() -> None:
    artifact = draw('<text x="50" y="20000" font-size="10">far</text>', width=100, height=41_919)
    assert artifact.page is not None
    assert artifact.page.height == 14_400
    assert artifact.page.scale == pytest.approx(14_400 / 41_919)
    assert artifact.page.width == pytest.approx(100 * 14_400 / 41_919)
    box = reader(artifact).pages[0].mediabox
    assert float(box.height) == 14_400
    assert spans(artifact)["far"][1] == pytest.approx((41_919 - 20_000) * artifact.page.scale, abs=0.5)


@pytest.mark.parametrize(
    "body",
    ['<image href="x.png"/>', '<path d="M0,0Q1,1 2,2" stroke="#000000"/>', '<g transform="skewX(3)"><text/></g>'],
)
def test_what_the_writer_does_not_know_is_refused(body: str) -> None:
    with pytest.raises(EngineError, match="does not know") as caught:
        draw(body)
    assert caught.value.code == "render_engine_failed"


def test_hostile_labels_stay_text(raw_hostile: bytes) -> None:
    with pytest.warns(TorchLensWarning, match="pdf_glyph_missing"):
        artifact = pdf.write(svg.read(raw_hostile), fonts.load_fonts(None))
    text = reader(artifact).pages[0].extract_text()
    for label in ('<b>&amp;"[x] \\N \\l', '<script>alert(1)</script> & \\ "quoted"', "%s %d {0} ${x}", "two ?? "):
        assert label in text


def test_streams_are_compressed(whole: Artifact) -> None:
    assert b"FlateDecode" in whole.data
    assert len(zlib.compress(operators(whole).encode("latin-1"))) < len(whole.data)


@pytest.mark.parametrize(("anchor", "left"), [("start", 60.0), ("middle", 51.1), ("end", 42.2)])
def test_underlined_text_has_a_line_of_its_width_below_it(anchor: str, left: float) -> None:
    text = f'<text x="60" y="20" text-anchor="{anchor}" text-decoration="underline" font-size="20">iiii</text>'
    drawn = re.findall(r"([\d.]+) ([\d.]+) m ([\d.]+) ([\d.]+) l S", operators(draw(text)))
    assert [[round(float(number), 1) for number in line] for line in drawn] == [[left, 22.0, left + 17.8, 22.0]]
    assert not re.search(r" l S", operators(draw(text.replace("underline", "none"))))
