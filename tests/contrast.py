"""How well the texts of a drawn figure read: of each one the worst contrast with whatever is painted under it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.svg_shapes import RGB, Gradient, Point, Shape, Sheet, Text, read

# Source: WCAG 2.2, success criterion 1.4.3.
LEAST = 4.5
# Points between the places of a text that are looked at.
STEP = 3.0


class Reading(NamedTuple):
    """One text. ground: the colour under it where it reads worst; part: what it belongs to."""

    ratio: float
    text: str
    part: str
    color: RGB
    ground: RGB | None


def readings(svg: bytes | str) -> list[Reading]:
    """Every text of a figure, the worst first. A text that stands on nothing painted, or on a picture, has ratio 0."""
    sheet = read(svg)
    return sorted(_reading(sheet, text) for text in sheet.texts if text.text.strip())


def _reading(sheet: Sheet, text: Text) -> Reading:
    left, top, right, bottom = text.box
    under = [
        shape
        for shape in sheet.shapes
        if shape.paint is not None
        and shape.order < text.order
        and shape.box[0] < right
        and left < shape.box[2]
        and shape.box[1] < bottom
        and top < shape.box[3]
    ]
    part = text.name or "page"
    worst = Reading(22.0, text.text, part, text.color, None)
    for place in _places(text):
        ground = _ground(under, place)
        ratio = 0.0 if ground is None else contrast(text.color, ground)
        if ratio < worst.ratio:
            worst = Reading(ratio, text.text, part, text.color, ground)
    return worst


def _places(text: Text) -> Iterator[Point]:
    """A grid over the letters, away from the very edge of the box, where a round shape may end."""
    left, top, right, bottom = text.box
    count = max(int((right - left) / STEP), 1)
    for k in range(count + 1):
        for share in (0.3, 0.6):
            yield left + (right - left) * k / count, top + (bottom - top) * share


def _ground(under: list[Shape], place: Point) -> RGB | None:
    """The colour seen at a place, from the lowest painted shape to the highest."""
    ground: RGB | None = None
    for shape in under:
        if not shape.covers(place):
            continue
        if shape.kind == "image":
            ground = None
            continue
        assert shape.paint is not None
        paint = shape.paint.at(place) if isinstance(shape.paint, Gradient) else shape.paint
        behind = ground or (255.0, 255.0, 255.0)
        red, green, blue = (shape.opacity * p + (1 - shape.opacity) * b for p, b in zip(paint, behind, strict=True))
        ground = (red, green, blue)
    return ground


def contrast(first: RGB, second: RGB) -> float:
    """Contrast ratio of two colours, 1 to 21. Source: WCAG 2.2, contrast ratio."""
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: RGB) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
