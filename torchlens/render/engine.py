"""From DOT text to the bytes of a file: the two engines, the four formats, and the checks to make before any work.

Both engines write the same four formats with the same meaning: `dot` is the document itself, `svg` and `png` come
from the program, `pdf` is drawn from its SVG.
"""

from __future__ import annotations

from typing import Protocol

from torchlens.base.errors import fail, nearest
from torchlens.render import pdf, png, svg
from torchlens.render.artifacts import Artifact
from torchlens.render.fonts import load_fonts
from torchlens.render.graphviz import EMBEDDED, SYSTEM

FORMATS = ("pdf", "svg", "png", "dot")
NODE_LIMIT = 6_000


class Engine(Protocol):
    """A program that lays out DOT text."""

    @property
    def name(self) -> str:
        """Value of `engine=`."""
        ...

    def require(self) -> str:
        """Path of the program. Raises EngineError[render_engine_unavailable]."""
        ...

    def run(self, document: str, output: str, *, dpi: int | None = None) -> bytes:
        """The laid-out document as svg (in points) or png (at this resolution)."""
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


def check_size(nodes: int, file_format: str = "svg") -> None:
    """Refuse more drawn nodes than a layout can place; `dot` needs no layout.

    Raises: InvalidArgumentError[graph_too_large].
    """
    if nodes > NODE_LIMIT and file_format != "dot":
        what = f"the figure has {nodes} nodes; the layout is limited to {NODE_LIMIT}"
        fail("graph_too_large", what, nodes=nodes, limit=NODE_LIMIT)


# -- rendering
def make_artifact(
    document: str,
    file_format: str,
    *,
    engine: str | None = None,
    dpi: int | None = None,
    pdf_font: str | None = None,
    title: str = "",
) -> Artifact:
    """Render DOT text.

    dpi: dots per inch of png, default 144; other formats ignore it. pdf_font: path of a TrueType font to embed.
    title: of the document, in svg and pdf; default: the graph's name.
    Raises: InvalidArgumentError[file_format_invalid, pdf_font_invalid], EngineError[render_engine_*].
    Warns:  figure_unreadable, pdf_glyph_missing, render_engine_warning.
    """
    file_format = check_format(file_format, engine)
    if file_format == "dot":
        return Artifact(document.encode("utf-8", errors="replace"), "dot")
    program = get_engine(engine)
    if file_format == "png":
        dpi = dpi or png.DEFAULT_DPI
        return png.write(program.run(document, "png", dpi=dpi), dpi)
    fonts = load_fonts(pdf_font) if file_format == "pdf" else None
    figure = svg.read(program.run(document, "svg"), title=title)
    return svg.write(figure) if fonts is None else pdf.write(figure, fonts)
