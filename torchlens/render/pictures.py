"""Pictures inside a rendered figure: part of the SVG as data, so that the file stands alone, and pixels of the PNG.

An engine places a picture by its file's name; what is in the file is known by that name here. Knows no scene.
"""

from __future__ import annotations

import base64
import io
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import NamedTuple

HREF = "xlink:href"
_DATA = "data:image/png;base64,"
_TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1, 0, 0, 1, 0, 0)


class Place(NamedTuple):
    """Where a picture stands on the page.

    x, y: its middle; width, height: before it is turned, points; turn: degrees clockwise.
    """

    png: bytes
    x: float
    y: float
    width: float
    height: float
    turn: float


def embed(root: ET.Element, pictures: Mapping[str, bytes]) -> None:
    """Replace the file names of pictures by their content, and give their sizes as plain numbers.

    On a turned page they turn with the text; an engine would turn them back, out of their place.
    """
    for image in root.iter("image"):
        name = image.get(HREF, "").rpartition("/")[2]
        if name in pictures:
            image.set(HREF, _DATA + base64.b64encode(pictures[name]).decode("ascii"))
        for side in ("width", "height"):
            image.set(side, image.get(side, "0").removesuffix("px"))
        if image.attrib.pop("transform", None):
            width, height = image.get("width", "0"), image.get("height", "0")
            image.set("width", height)
            image.set("height", width)


def content_of(image: ET.Element) -> bytes | None:
    """The PNG of an embedded picture, None for a link to a file."""
    text = image.get(HREF, "")
    return base64.b64decode(text.removeprefix(_DATA)) if text.startswith(_DATA) else None


def places(root: ET.Element) -> Iterator[Place]:
    """All embedded pictures of a figure."""
    todo: list[tuple[ET.Element, Matrix]] = [(root, _IDENTITY)]
    while todo:
        element, above = todo.pop()
        matrix = _times(above, _matrix(element.get("transform", "")))
        if element.tag == "image" and (png := content_of(element)) is not None:
            x, y, width, height = (float(element.get(name, "0")) for name in ("x", "y", "width", "height"))
            a, b, c, d, e, f = matrix
            middle = x + width / 2, y + height / 2
            across, down = math.hypot(a, b), math.hypot(c, d)
            yield Place(
                png,
                a * middle[0] + c * middle[1] + e,
                b * middle[0] + d * middle[1] + f,
                width * across,
                height * down,
                math.degrees(math.atan2(b, a)),
            )
        todo.extend((child, matrix) for child in reversed(element))


def paste(data: bytes, root: ET.Element, width: float) -> bytes:
    """An engine's PNG with the pictures of the same figure's SVG. width: of the page, points."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as opened:
        page = opened.convert("RGBA")
    scale = page.width / width
    for place in places(root):
        with Image.open(io.BytesIO(place.png)) as opened:
            picture = opened.convert("RGBA")
        size = max(1, round(place.width * scale)), max(1, round(place.height * scale))
        # Few pixels stay pixels; many are averaged.
        way = Image.Resampling.LANCZOS if picture.width > size[0] else Image.Resampling.NEAREST
        picture = picture.resize(size, way)
        if place.turn:
            picture = picture.rotate(-place.turn, expand=True)
        corner = round(place.x * scale - picture.width / 2), round(place.y * scale - picture.height / 2)
        page.alpha_composite(picture, (max(corner[0], 0), max(corner[1], 0)))
    buffer = io.BytesIO()
    (page if _is_transparent(page) else page.convert("RGB")).save(buffer, "PNG")
    return buffer.getvalue()


def _is_transparent(page: object) -> bool:
    from PIL import Image

    assert isinstance(page, Image.Image)
    least = page.getchannel("A").getextrema()[0]
    return isinstance(least, (int, float)) and least < 255


# -- transforms
def _matrix(text: str) -> Matrix:
    """The matrix of an SVG transform: scale, rotate about the origin, translate; others leave things where they are."""
    matrix = _IDENTITY
    for name, arguments in _TRANSFORM.findall(text):
        values = [float(value) for value in re.split(r"[\s,]+", arguments.strip()) if value]
        if name == "scale":
            matrix = _times(matrix, (values[0], 0, 0, values[-1], 0, 0))
        elif name == "translate":
            matrix = _times(matrix, (1, 0, 0, 1, values[0], values[1] if len(values) > 1 else 0))
        elif name == "rotate":
            cos, sin = math.cos(math.radians(values[0])), math.sin(math.radians(values[0]))
            matrix = _times(matrix, (cos, sin, -sin, cos, 0, 0))
    return matrix


def _times(m: Matrix, n: Matrix) -> Matrix:
    return (
        m[0] * n[0] + m[2] * n[1],
        m[1] * n[0] + m[3] * n[1],
        m[0] * n[2] + m[2] * n[3],
        m[1] * n[2] + m[3] * n[3],
        m[0] * n[4] + m[2] * n[5] + m[4],
        m[1] * n[4] + m[3] * n[5] + m[5],
    )
