"""Reads a drawn SVG back as painted shapes and texts, by geometry alone: what a reader sees, whoever wrote it.

Coordinates are those of the graph's group, in points, y downwards. Of torchlens it takes the classes of the
groups (node, edge, cluster), which say whose a shape is, and the widths of Helvetica's letters.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import cos, pi, sin

from PIL import ImageColor

from torchlens.scene.label_size import text_width

Point = tuple[float, float]
RGB = tuple[float, float, float]
# Left, top, right, bottom.
Rect = tuple[float, float, float, float]

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_COMMAND = re.compile(r"([MLCZ])([^MLCZ]*)", re.IGNORECASE)
_GRADIENT = re.compile(r"url\(#(.+)\)")
# How many straight pieces stand for one curve, and for an ellipse.
PIECES, ROUND = 12, 48
# Of the size of a text: what stands above and below its baseline.
ASCENT, DESCENT = 0.75, 0.22


@dataclass(frozen=True)
class Gradient:
    """A linear gradient from one point to another. stops: (place 0-1, colour)."""

    start: Point
    end: Point
    stops: tuple[tuple[float, RGB], ...]

    def at(self, point: Point) -> RGB:
        along = (self.end[0] - self.start[0], self.end[1] - self.start[1])
        length = along[0] ** 2 + along[1] ** 2
        place = sum((p - s) * a for p, s, a in zip(point, self.start, along, strict=True)) / length if length else 0.0
        for (low, first), (high, second) in pairwise(self.stops):
            if place <= high:
                share = min(max((place - low) / (high - low), 0.0), 1.0) if high > low else 1.0
                red, green, blue = (a + share * (b - a) for a, b in zip(first, second, strict=True))
                return red, green, blue
        return self.stops[-1][1]


Paint = RGB | Gradient


@dataclass(frozen=True)
class Shape:
    """One painted element. outline: closed for a filled one; paint: None if not filled; order: of painting."""

    kind: str
    owner: str
    name: str
    outline: tuple[Point, ...]
    paint: Paint | None
    opacity: float
    stroke: str
    width: float
    order: int
    box: Rect = field(init=False)

    def __post_init__(self) -> None:
        xs, ys = zip(*self.outline, strict=True)
        object.__setattr__(self, "box", (min(xs), min(ys), max(xs), max(ys)))

    def covers(self, point: Point) -> bool:
        """Whether the point is inside, by counting how often a ray crosses the outline."""
        x, y = point
        if not (self.box[0] <= x <= self.box[2] and self.box[1] <= y <= self.box[3]):
            return False
        inside = False
        for (ax, ay), (bx, by) in pairwise((*self.outline, self.outline[0])):
            if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
                inside = not inside
        return inside


@dataclass(frozen=True)
class Text:
    """One line of text. box: the room of its letters."""

    text: str
    owner: str
    name: str
    color: RGB
    size: float
    box: Rect
    order: int


@dataclass(frozen=True)
class Sheet:
    """A whole figure. owner of a part: node, edge, cluster, or empty for header, caption, key and the page."""

    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]


def read(svg: bytes | str) -> Sheet:
    """Parse a figure. Raises AssertionError for an element or a transform that this cannot place."""
    root = ET.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    gradients = {f"url(#{g.get('id')})": _gradient(g) for g in root.iter("linearGradient")}
    shapes: list[Shape] = []
    texts: list[Text] = []
    for order, (element, owner, name) in enumerate(_painted(root)):
        if element.tag == "text":
            texts.append(_text(element, owner, name, order))
        else:
            shapes.append(_shape(element, owner, name, order, gradients))
    return Sheet(tuple(shapes), tuple(texts))


def _painted(root: ET.Element) -> Iterator[tuple[ET.Element, str, str]]:
    """Painted elements in order, each with the kind and the id of the part that it belongs to."""
    (page,) = [child for child in root if child.tag == "g"]
    assert re.fullmatch(r"scale\(1 1\) rotate\(0\) translate\(.+\)", page.get("transform", "")), page.attrib
    waiting = [(child, "", "") for child in reversed(page)]
    while waiting:
        element, owner, name = waiting.pop()
        if element.tag in ("g", "a"):
            kind = (element.get("class") or "").partition(" ")[0]
            inner = (kind, element.get("id", "")) if kind in ("node", "edge", "cluster") else (owner, name)
            waiting += [(child, *inner) for child in reversed(element)]
        elif element.tag in ("polygon", "polyline", "ellipse", "path", "image", "text"):
            yield element, owner, name
        else:
            assert element.tag in ("title", "defs"), element.tag


def _shape(element: ET.Element, owner: str, name: str, order: int, gradients: Mapping[str, Gradient]) -> Shape:
    outline = tuple(_outline(element))
    fill = element.get("fill", "none")
    paint: Paint | None = None
    if element.tag == "image":
        paint = (128.0, 128.0, 128.0)
    elif fill != "none":
        paint = gradients[fill] if _GRADIENT.fullmatch(fill) else color(fill)
    stroke = element.get("stroke", "none")
    width = float(element.get("stroke-width", 1)) if stroke != "none" else 0.0
    opacity = float(element.get("fill-opacity", 1))
    return Shape(element.tag, owner, name, outline, paint, opacity, stroke, width, order)


def _outline(element: ET.Element) -> Iterator[Point]:
    values = element.attrib
    if element.tag in ("polygon", "polyline"):
        numbers = [float(number) for number in _NUMBER.findall(values["points"])]
        yield from zip(numbers[::2], numbers[1::2], strict=True)
    elif element.tag == "ellipse":
        cx, cy, rx, ry = (float(values[key]) for key in ("cx", "cy", "rx", "ry"))
        yield from ((cx + rx * cos(2 * pi * k / ROUND), cy + ry * sin(2 * pi * k / ROUND)) for k in range(ROUND))
    elif element.tag == "image":
        x, y, wide, high = (float(values[key].removesuffix("px")) for key in ("x", "y", "width", "height"))
        yield from ((x, y), (x + wide, y), (x + wide, y + high), (x, y + high))
    else:
        yield from _path(values["d"])


def _path(data: str) -> Iterator[Point]:
    """A path of absolute moves, lines and cubic curves."""
    here: Point = (0.0, 0.0)
    for command, rest in _COMMAND.findall(data):
        numbers = [float(number) for number in _NUMBER.findall(rest)]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        assert command in "MLCZz", data
        if command == "C":
            for a, b, c in zip(points[::3], points[1::3], points[2::3], strict=True):
                yield from (_bezier((here, a, b, c), k / PIECES) for k in range(1, PIECES + 1))
                here = c
        elif points:
            yield from points
            here = points[-1]


def _bezier(points: tuple[Point, Point, Point, Point], t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x, y = (sum(w * point[side] for w, point in zip(weights, points, strict=True)) for side in range(2))
    return x, y


def _gradient(element: ET.Element) -> Gradient:
    x1, y1, x2, y2 = (float(element.attrib[key]) for key in ("x1", "y1", "x2", "y2"))
    stops: list[tuple[float, RGB]] = []
    for stop in element:
        style = dict(part.split(":") for part in stop.attrib["style"].split(";") if part)
        stops.append((float(stop.attrib["offset"]), color(style["stop-color"])))
    return Gradient((x1, y1), (x2, y2), tuple(stops))


def color(text: str) -> RGB:
    """A colour by name or number."""
    red, green, blue = ImageColor.getrgb(text)[:3]
    return red, green, blue


def _text(element: ET.Element, owner: str, name: str, order: int) -> Text:
    words = "".join(element.itertext()).replace("\xa0", " ")
    size, x, y = (float(element.get(key, 0)) for key in ("font-size", "x", "y"))
    bold = element.get("font-weight") == "bold"
    width = text_width(words, size, bold)
    left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
    # Blanks at the ends hold the text off a line and are no letters.
    blank = text_width(" ", size, bold)
    left, right = (
        left + blank * (len(words) - len(words.lstrip())),
        left + width - blank * (len(words) - len(words.rstrip())),
    )
    box = (left, y - ASCENT * size, right, y + DESCENT * size)
    return Text(words, owner, name, color(element.get("fill", "black")), size, box, order)


def touches(shape: Shape, rect: Rect) -> bool:
    """Whether a shape or the line around it reaches into a rectangle."""
    left, top, right, bottom = rect
    reach = shape.width / 2
    grown = (left - reach, top - reach, right + reach, bottom + reach)
    if not overlap(shape.box, grown):
        return False
    closed = shape.kind in ("polygon", "ellipse", "image")
    ends = (*shape.outline, shape.outline[0]) if closed else shape.outline
    if any(_crosses(a, b, grown) for a, b in pairwise(ends)):
        return True
    return closed and shape.paint is not None and shape.covers(((left + right) / 2, (top + bottom) / 2))


def overlap(first: Rect, second: Rect) -> bool:
    """Whether two rectangles share more than an edge."""
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def _crosses(a: Point, b: Point, rect: Rect) -> bool:
    """Whether a straight piece reaches into a rectangle (Liang and Barsky's clipping)."""
    low, high = 0.0, 1.0
    for side in range(2):
        start, step = a[side], b[side] - a[side]
        near, far = rect[side] - start, rect[side + 2] - start
        if step == 0:
            if near >= 0 or far <= 0:
                return False
            continue
        first, last = sorted((near / step, far / step))
        low, high = max(low, first), min(high, last)
    return low < high
