"""Fonts of a PDF: which one, which of its characters, and what cannot be embedded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import reportlab

from torchlens.base.errors import InvalidArgumentError
from torchlens.render import fonts

FOLDER = Path(reportlab.__file__).parent / "fonts"


@pytest.mark.parametrize(
    ("family", "bold", "italic", "name"),
    [
        ("Helvetica", False, False, "Helvetica"),
        ("Helvetica", True, False, "Helvetica-Bold"),
        ("Times", False, True, "Times-Italic"),
        ("Courier", True, True, "Courier-BoldOblique"),
        ("Comic Sans", False, True, "Helvetica-Oblique"),
    ],
)
def test_standard_faces(family: str, bold: bool, italic: bool, name: str) -> None:
    assert fonts.Fonts().face(family, bold, italic) == fonts.Face(name, name)


def test_an_embedded_font_replaces_all_families() -> None:
    faces = fonts.load_fonts(str(FOLDER / "Vera.ttf"))
    regular = faces.face("Courier", False, False)
    assert regular.name.startswith("torchlens-")
    assert regular.planned == "Courier"
    assert faces.face("Helvetica", False, True).name == regular.name


def test_the_bold_file_beside_it_is_found() -> None:
    faces = fonts.load_fonts(str(FOLDER / "Vera.ttf"))
    bold = faces.face("Helvetica", True, False)
    assert bold.name != faces.face("Helvetica", False, False).name
    assert not bold.emulate_bold
    assert fonts.width("mmm", bold.name, 10) > fonts.width("mmm", faces.face("Helvetica", False, False).name, 10)


@pytest.mark.parametrize(
    ("regular", "bold"), [("A-Regular.ttf", "A-Bold.ttf"), ("a.ttf", "abd.ttf"), ("B.ttf", "B-Bold.ttf")]
)
def test_names_of_bold_files(tmp_path: Path, regular: str, bold: str) -> None:
    shutil.copy(FOLDER / "Vera.ttf", tmp_path / regular)
    assert fonts.load_fonts(str(tmp_path / regular)).bold is None
    shutil.copy(FOLDER / "VeraBd.ttf", tmp_path / bold)
    assert fonts.load_fonts(str(tmp_path / regular)).bold is not None


def test_bold_is_emulated_without_a_bold_file(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "Vera.ttf", tmp_path / "alone.ttf")
    faces = fonts.load_fonts(str(tmp_path / "alone.ttf"))
    assert faces.face("Helvetica", True, False).emulate_bold
    assert not faces.face("Helvetica", False, False).emulate_bold


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("a", True),
        ("é", True),
        ("×", True),
        ("…", True),
        ("Δ", True),
        ("→", True),
        ("漢", False),
        ("🙂", False),
        ("\ufffd", False),
    ],
)
def test_standard_fonts_know_latin_and_symbols(character: str, shown: bool) -> None:
    assert fonts.can_show(character, "Helvetica") is shown


def test_an_embedded_font_knows_its_own_characters() -> None:
    name = fonts.load_fonts(str(FOLDER / "Vera.ttf")).face("Helvetica", False, False).name
    assert fonts.can_show("é", name)
    assert not fonts.can_show("漢", name)


def test_width_is_in_points_by_the_published_metrics() -> None:
    # Advance widths of the Helvetica AFM: W 944, i 222; Helvetica-Bold: i 278.
    assert fonts.width("Wi", "Helvetica", 10) == pytest.approx(11.66)
    assert fonts.width("i", "Helvetica-Bold", 10) == pytest.approx(2.78)


@pytest.mark.parametrize("name", ["missing.ttf", "text.ttf", "."])
def test_what_is_no_font_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.ttf").write_text("not a font, but long enough to be looked at as one")
    with pytest.raises(InvalidArgumentError, match="cannot be embedded") as caught:
        fonts.load_fonts(str(tmp_path / name))
    assert caught.value.code == "pdf_font_invalid"
