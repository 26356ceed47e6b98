"""From DOT text to the bytes of a file: the two engines, the formats, and the checks to make before any work.

Both engines write the same formats with the same meaning: `dot` is the document itself, `svg` and `png` come from the
program, `pdf` is drawn from its SVG, `jpg` is made from its PNG.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from torchlens.base.errors import fail, nearest
from torchlens.render.fonts import load_fonts
from torchlens.render.graphviz import EMBEDDED, SYSTEM

if TYPE_CHECKING:
    from torchlens.render.artifacts import Artifact

FORMATS = ("pdf", "svg", "png", "jpg", "dot")
RASTERS = ("png", "jpg")
_SYNONYMS = {"jpeg": "jpg", "gv": "dot"}


class Engine(Protocol):
    """A program that lays out DOT text."""

    @property
    def name(self) -> str:
        """Value of `engine=`."""
        ...

    def require(self) -> str:
        """Path of the program. Raises EngineError[render_engine_unavailable]."""
        ...

    def run(
        self, document: str, output: str, *, dpi: int | None = None, pictures: Mapping[str, bytes] | None = None
    ) -> bytes:
        """The laid-out document as svg (in points) or png (at this resolution). pictures: the files that it names."""
        ...


ENGINES: dict[str, Engine] = {engine.name: engine for engine in (EMBEDDED, SYSTEM)}


def get_engine(name: str | None = None) -> Engine:
    """The engine of this name, the embedded one if None. Raises InvalidArgumentError[draw_engine_invalid]."""
    if name is None:
        return EMBEDDED
    if name not in ENGINES:
        fail("draw_engine_invalid", f"engine={name!r} is not an engine", allowed=ENGINES, got=name)
    return ENGINES[name]


def formats(engine: str | None = None) -> tuple[str, ...]:
    """Names of the formats an engine writes."""
    get_engine(engine)
    return FORMATS


# -- checks
def check_format(file_format: str, engine: str | None = None) -> str:
    """The format's plain name; `.PDF` is `pdf`. Raises InvalidArgumentError[file_format_invalid]."""
    name = file_format.lower().removeprefix(".")
    name = _SYNONYMS.get(name, name)
    known = formats(engine)
    if name not in known:
        close = nearest(name, known, 1)
        fix = f"use {close[0]!r}" if close else ""
        fail("file_format_invalid", f"{file_format!r} is not a format", allowed=known, fix=fix, got=file_format)
    return name


def require_engine(engine: str | None = None, file_format: str = "svg") -> None:
    """Refuse before any work if the engine of this format is not installed; `dot` needs none."""
    found = get_engine(engine)
    if file_format != "dot":
        found.require()


# -- rendering
def make_artifact(
    document: str,
    file_format: str,
    *,
    engine: str | None = None,
    dpi: int | None = None,
    pdf_font: str | None = None,
    title: str = "",
    pictures: Mapping[str, bytes] | None = None,
) -> Artifact:
    """Render DOT text.

    dpi: dots per inch of png and jpg, default 144; other formats ignore it. pdf_font: path of a TrueType font to embed.
    title: of the document, in svg and pdf; default: the graph's name. pictures: the PNG files that the document names.
    Raises: InvalidArgumentError[file_format_invalid, pdf_font_invalid], EngineError[render_engine_*].
    Warns:  figure_unreadable, pdf_glyph_missing, render_engine_warning.
    """
    # The writers come now: whoever only asks what can be written does without them.
    from torchlens.render import jpeg, pdf, png, svg
    from torchlens.render.artifacts import Artifact
    from torchlens.render.pictures import paste

    file_format = check_format(file_format, engine)
    if file_format == "dot":
        return Artifact(document.encode("utf-8", errors="replace"), "dot")
    program = get_engine(engine)
    if file_format in RASTERS:
        dpi = dpi or png.DEFAULT_DPI
        raster = program.run(document, "png", dpi=dpi, pictures=pictures)
        if pictures:
            # Not every engine draws images into a raster; where they belong is said by the SVG of the same layout.
            figure = svg.read(program.run(document, "svg", pictures=pictures), pictures=pictures)
            raster = paste(raster, figure.root, figure.width)
        written = png.write(raster, dpi)
        return written if file_format == "png" else jpeg.write(written, dpi)
    fonts = load_fonts(pdf_font) if file_format == "pdf" else None
    figure = svg.read(program.run(document, "svg", pictures=pictures), title=title, pictures=pictures)
    return svg.write(figure) if fonts is None else pdf.write(figure, fonts)
