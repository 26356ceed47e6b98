"""Fonts of a PDF: the standard Helvetica, Times and Courier, or one embedded TrueType font in their place.

Answers three questions about a text: which font, how wide, and which of its characters no font can show.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torchlens.base.errors import fail

_STANDARD = {
    ("Helvetica", False, False): "Helvetica",
    ("Helvetica", True, False): "Helvetica-Bold",
    ("Helvetica", False, True): "Helvetica-Oblique",
    ("Helvetica", True, True): "Helvetica-BoldOblique",
    ("Times", False, False): "Times-Roman",
    ("Times", True, False): "Times-Bold",
    ("Times", False, True): "Times-Italic",
    ("Times", True, True): "Times-BoldItalic",
    ("Courier", False, False): "Courier",
    ("Courier", True, False): "Courier-Bold",
    ("Courier", False, True): "Courier-Oblique",
    ("Courier", True, True): "Courier-BoldOblique",
}
MISSING = "?"


@dataclass(frozen=True, slots=True)
class Face:
    """The font of one text.

    planned: the font that the layout measured; emulate_bold: bold is wanted and the font has none of its own.
    """

    name: str
    planned: str
    emulate_bold: bool = False


@dataclass(frozen=True, slots=True)
class Fonts:
    """regular, bold: registered names of an embedded font; None means the standard fonts, or no bold file."""

    regular: str | None = None
    bold: str | None = None

    def face(self, family: str, bold: bool, italic: bool) -> Face:
        """The font for a text of this family; unknown families count as Helvetica."""
        kind = family if family in ("Times", "Courier") else "Helvetica"
        standard = _STANDARD[kind, bold, italic]
        if self.regular is None:
            return Face(standard, standard)
        if bold and self.bold:
            return Face(self.bold, standard)
        return Face(self.regular, standard, emulate_bold=bold)


def width(text: str, font: str, size: float) -> float:
    """Width of a text in points."""
    from reportlab.pdfbase import pdfmetrics

    return float(pdfmetrics.stringWidth(text, font, size))


@cache
def can_show(character: str, font: str) -> bool:
    """Whether a font, or for the standard ones their symbol fonts, has this character."""
    from reportlab.pdfbase import pdfmetrics

    found: Any = pdfmetrics.getFont(font)
    if hasattr(found.face, "charToGlyph"):
        return ord(character) in found.face.charToGlyph
    return any(_encodes(choice.encName, character) for choice in (found, *found.substitutionFonts))


def _encodes(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


# -- embedding
def load_fonts(path: str | None) -> Fonts:
    """The standard fonts, or a TrueType font with the bold face that lies beside it.

    Raises: InvalidArgumentError[pdf_font_invalid].
    """
    if path is None:
        return Fonts()
    regular = Path(path)
    bold = next((file for file in _bold_files(regular) if file.is_file() and file != regular), None)
    return Fonts(_register(regular), _register(bold) if bold else None)


def _bold_files(regular: Path) -> list[Path]:
    """Where font makers put the bold face: Arimo-Regular and Arimo-Bold, Vera and VeraBd, arial and arialbd."""
    stem, suffix = regular.stem, regular.suffix
    stems = [stem.replace("Regular", "Bold")] if "Regular" in stem else [f"{stem}-Bold", f"{stem}Bd", f"{stem}bd"]
    return [regular.with_name(name + suffix) for name in stems]


def _register(path: Path) -> str:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFError, TTFont

    try:
        # Named by content: reportlab's table of fonts belongs to the whole process.
        name = "torchlens-" + hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        table: Any = pdfmetrics
        if name not in table.getRegisteredFontNames():
            table.registerFont(TTFont(name, str(path)))
    except (OSError, TTFError) as cause:
        fail("pdf_font_invalid", f"pdf_font={str(path)!r} cannot be embedded: {cause}", got=str(path))
    return name
