"""PDF: maps the small SVG vocabulary of a layout engine onto a reportlab canvas, with real text in real fonts.

The same figure gives the same bytes: no dates, no random identifiers. An element that is not in the vocabulary is
refused, never left out.
"""

from __future__ import annotations

import io
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from torchlens.base import colors
from torchlens.base.errors import fail, warn
from torchlens.render import fonts
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.pictures import content_of
from torchlens.render.svg import Figure

# Acrobat's largest page side; implementation limit of ISO 32000-1, annex C.
SIDE_LIMIT_PT = 14_400
# Of the font size; Helvetica's own metrics.
UNDERLINE_DEPTH, UNDERLINE_WIDTH = 0.1, 0.05
_NON_ZERO = 1  # reportlab's number for the fill rule of SVG

_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PATH_PART = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
_DATE = re.compile(rb"/(?:CreationDate|ModDate) \(D:[^)]*\)")


def write(figure: Figure, faces: fonts.Fonts) -> Artifact:
    """The figure as a one-page PDF whose longer side is at most 14,400 points.

    Warns: pdf_glyph_missing for characters that the fonts cannot show; they are drawn as question marks.
    """
    from reportlab.pdfgen.canvas import Canvas

    scale = min(1.0, SIDE_LIMIT_PT / max(figure.width, figure.height, 1.0))
    width, height = figure.width * scale, figure.height * scale
    buffer = io.BytesIO()
    make_canvas: Any = Canvas
    canvas = make_canvas(
        buffer,
        pagesize=(width, height),
        invariant=1,
        pageCompression=1,
        # The page names its initial font even if no text uses it, which a check for embedded fonts would find.
        initialFontName=faces.face("Helvetica", False, False).name,
    )
    canvas.setTitle(figure.title or "figure")
    canvas.setCreator("torchlens")
    canvas.setAuthor("")
    canvas.setSubject("")
    canvas.setMiterLimit(4)  # the default of SVG
    # From here on as in SVG: the origin is the upper left corner and y grows downwards.
    canvas.transform(scale, 0, 0, -scale, 0, height)
    painter = _Painter(canvas, faces, figure.root)
    painter.draw()
    canvas.showPage()
    canvas.save()
    painter.report_missing()
    # The stamp of an invariant document is a fixed day in the past, which is worse than none; offsets stay as they are.
    data = _DATE.sub(lambda found: b" " * len(found[0]), buffer.getvalue())
    return Artifact(data, "pdf", Page(width, height, "pt", scale))


class _Painter:
    """Draws the elements of one figure in document order."""

    def __init__(self, canvas: Any, faces: fonts.Fonts, root: ET.Element) -> None:
        self._canvas, self._faces, self._root = canvas, faces, root
        self._gradients = {f"url(#{g.get('id')})": g for block in root.iter("defs") for g in block}
        self._alpha = {"fill": 1.0, "stroke": 1.0}
        self._missing: dict[str, None] = {}

    def draw(self) -> None:
        """Draw the whole figure."""
        canvas = self._canvas
        # A dict ends a transformed group: what the opacity was before it.
        todo: list[ET.Element | dict[str, float]] = [self._root]
        while todo:
            element = todo.pop()
            if isinstance(element, dict):
                canvas.restoreState()
                self._alpha = element
            elif element.tag in ("svg", "g", "a"):
                if transform := element.get("transform"):
                    canvas.saveState()
                    self._transform(transform)
                    todo.append(dict(self._alpha))
                todo.extend(reversed(element))
            elif element.tag == "text":
                self._text(element)
            elif element.tag == "image":
                self._image(element)
            elif element.tag not in ("title", "defs"):
                self._shape(element)

    def _transform(self, text: str) -> None:
        for name, arguments in _TRANSFORM.findall(text):
            values = _numbers(arguments)
            if name == "scale":
                self._canvas.scale(values[0], values[-1])
            elif name == "rotate" and len(values) == 1:
                self._canvas.rotate(values[0])
            elif name == "translate":
                self._canvas.translate(values[0], values[1] if len(values) > 1 else 0)
            else:
                _refuse(f"transform {name}")

    # -- shapes
    def _shape(self, element: ET.Element) -> None:
        canvas = self._canvas
        path, box = self._path(element)
        fill, stroke = element.get("fill", "black"), element.get("stroke", "none")
        if fill in self._gradients:
            self._fill_gradient(path, box, self._gradients[fill])
            fill = "none"
        # A width of 0 is no line in SVG and the thinnest possible one in PDF.
        stroke_width = float(element.get("stroke-width", "1"))
        stroked = stroke != "none" and stroke_width > 0
        if fill != "none":
            self._paint("fill", fill, element)
        if stroked:
            self._paint("stroke", stroke, element)
            canvas.setLineWidth(stroke_width)
            canvas.setDash(_numbers(element.get("stroke-dasharray", "")))
        if fill != "none" or stroked:
            canvas.drawPath(path, stroke=int(stroked), fill=int(fill != "none"), fillMode=_NON_ZERO)

    def _paint(self, side: str, color: str, element: ET.Element) -> None:
        """Set the colour and opacity for filling or stroking."""
        red, green, blue = (channel / 255 for channel in colors.parse(color))
        alpha = float(element.get(f"{side}-opacity", "1"))
        canvas = self._canvas
        set_color, set_alpha = (
            (canvas.setFillColorRGB, canvas.setFillAlpha)
            if side == "fill"
            else (canvas.setStrokeColorRGB, canvas.setStrokeAlpha)
        )
        set_color(red, green, blue)
        if alpha != self._alpha[side]:
            set_alpha(alpha)
            self._alpha[side] = alpha

    def _path(self, element: ET.Element) -> tuple[Any, tuple[float, float, float, float]]:
        """The outline as a canvas path, and its bounding box: left, top, width, height."""
        path = self._canvas.beginPath()
        if element.tag == "ellipse":
            cx, cy, rx, ry = (float(element.get(name, "0")) for name in ("cx", "cy", "rx", "ry"))
            path.ellipse(cx - rx, cy - ry, 2 * rx, 2 * ry)
            return path, (cx - rx, cy - ry, 2 * rx, 2 * ry)
        if element.tag in ("polygon", "polyline"):
            points = _pairs(_numbers(element.get("points", "")))
            path.moveTo(*points[0])
            for point in points[1:]:
                path.lineTo(*point)
            if element.tag == "polygon":
                path.close()
            return path, _bounds(points)
        if element.tag != "path":
            _refuse(f"element {element.tag}")
        return path, _bounds(_trace(path, element.get("d", "")))

    def _fill_gradient(self, path: Any, box: tuple[float, float, float, float], gradient: ET.Element) -> None:
        canvas = self._canvas
        positions = [float(stop.get("offset", "0")) for stop in gradient]
        shades = [_stop_color(stop) for stop in gradient]
        canvas.saveState()
        canvas.clipPath(path, stroke=0, fill=0, fillMode=_NON_ZERO)
        if gradient.tag == "linearGradient":
            ends = [float(gradient.get(name, "0")) for name in ("x1", "y1", "x2", "y2")]
            canvas.linearGradient(*ends, shades, positions)
        else:
            # In units of the bounding box: the centre, and the radius the engine always gives.
            left, top, width, height = box
            canvas.translate(left + width / 2, top + height / 2)
            canvas.scale(max(width, 1e-3), max(height, 1e-3))
            canvas.radialGradient(0, 0, 0.75, shades, positions)
        canvas.restoreState()

    def _image(self, element: ET.Element) -> None:
        """A picture, which stands on its head where y grows downwards."""
        from reportlab.lib.utils import ImageReader

        content = content_of(element)
        if content is None:
            _refuse("a link to an image file")
        x, y, width, height = (float(element.get(name, "0")) for name in ("x", "y", "width", "height"))
        canvas = self._canvas
        canvas.saveState()
        canvas.translate(x, y + height)
        canvas.scale(1, -1)
        canvas.drawImage(ImageReader(io.BytesIO(content)), 0, 0, width, height, mask="auto")
        canvas.restoreState()

    # -- text
    def _text(self, element: ET.Element) -> None:
        text = self._shown(element, (element.text or "").replace("\xa0", " "))
        face, size = self._face(element), float(element.get("font-size", "14"))
        wide, planned = fonts.width(text, face.name, size), fonts.width(text, face.planned, size)
        # An embedded font may be wider than the one the boxes were laid out for.
        squeeze = min(1.0, planned / wide) if wide > 0 else 1.0
        anchor = {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", "start"), 0.0)
        self._paint("fill", element.get("fill", "black"), element)
        line = self._canvas.beginText()
        line.setTextTransform(
            1, 0, 0, -1, float(element.get("x", "0")) - anchor * wide * squeeze, float(element.get("y", "0"))
        )
        line.setFont(face.name, size)
        if squeeze < 1.0:
            line.setHorizScale(100 * squeeze)
        if face.emulate_bold:
            self._paint("stroke", element.get("fill", "black"), element)
            self._canvas.setLineWidth(size / 30)
            self._canvas.setDash([])
            line.setTextRenderMode(2)
        line.textOut(text)
        if face.emulate_bold:
            line.setTextRenderMode(0)
        if squeeze < 1.0:
            line.setHorizScale(100)
        self._canvas.drawText(line)
        if element.get("text-decoration") == "underline":
            self._underline(element, wide * squeeze, anchor, size)

    def _underline(self, element: ET.Element, width: float, anchor: float, size: float) -> None:
        """A line below a text, where a viewer of the SVG draws it."""
        left = float(element.get("x", "0")) - anchor * width
        y = float(element.get("y", "0")) + size * UNDERLINE_DEPTH
        self._paint("stroke", element.get("fill", "black"), element)
        self._canvas.setLineWidth(size * UNDERLINE_WIDTH)
        self._canvas.setDash([])
        self._canvas.line(left, y, left + width, y)

    def _face(self, element: ET.Element) -> fonts.Face:
        family = element.get("font-family", "Helvetica").partition(",")[0]
        return self._faces.face(family, element.get("font-weight") == "bold", element.get("font-style") == "italic")

    def _shown(self, element: ET.Element, text: str) -> str:
        """The text with what its font cannot show replaced, and remembered."""
        name = self._face(element).name
        gone = [character for character in text if not fonts.can_show(character, name)]
        for character in gone:
            self._missing[character] = None
            text = text.replace(character, fonts.MISSING)
        return text

    def report_missing(self) -> None:
        """Warn about the characters that were replaced."""
        if self._missing:
            listed = ", ".join(_describe(character) for character in list(self._missing)[:5])
            more = f" (+{len(self._missing) - 5} more)" if len(self._missing) > 5 else ""
            warn(
                "pdf_glyph_missing",
                f"the PDF font cannot show {listed}{more}; drawn as {fonts.MISSING!r}",
                characters="".join(self._missing),
            )


def _trace(path: Any, text: str) -> list[tuple[float, float]]:
    """Draw SVG path data and return its points. The engines write absolute M, L, C and Z only."""
    points: list[tuple[float, float]] = []
    for command, arguments in _PATH_PART.findall(text):
        pairs = _pairs(_numbers(arguments))
        points += pairs
        if command == "M":
            path.moveTo(*pairs[0])
            for point in pairs[1:]:
                path.lineTo(*point)
        elif command == "L":
            for point in pairs:
                path.lineTo(*point)
        elif command == "C":
            for a, b, c in zip(pairs[0::3], pairs[1::3], pairs[2::3], strict=True):
                path.curveTo(*a, *b, *c)
        elif command == "Z":
            path.close()
        else:
            _refuse(f"path command {command}")
    return points


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _pairs(numbers: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(numbers[0::2], numbers[1::2], strict=True))


def _bounds(points: Iterable[tuple[float, float]]) -> tuple[float, float, float, float]:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)


def _stop_color(stop: ET.Element) -> Any:
    from reportlab.lib.colors import Color

    style = dict(part.split(":", 1) for part in stop.get("style", "").split(";") if part)
    red, green, blue = colors.parse(style["stop-color"])
    return Color(red / 255, green / 255, blue / 255)


def _describe(character: str) -> str:
    shown = f" {character}" if character.isprintable() else ""
    return f"U+{ord(character):04X}{shown} {unicodedata.name(character, '')}".rstrip()


def _refuse(what: str) -> NoReturn:
    fail(
        "render_engine_failed",
        f"the engine's SVG holds what the PDF writer does not know: {what}",
        fix="write svg, or report the DOT text",
    )
