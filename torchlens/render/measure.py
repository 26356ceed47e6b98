"""How large things will be drawn: the sizes, in points, that an engine gives to nodes, labels and the root label.

Only a layout of our own needs them before the engine has run. Widths are those of Helvetica, with some slack because
an engine may substitute another font.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from torchlens.scene.images import columns
from torchlens.scene.model import (
    BarLine,
    NodeStyle,
    Page,
    RootLine,
    Row,
    Scene,
    SceneBox,
    SceneEdge,
    SceneNode,
    TextLine,
)

Size = tuple[float, float]

LINE = 1.2
SLACK = 1.04
CELL_PADDING = 2
# Engines measure other characters as wide as a capital at most.
_OTHER = 0.72
_ROOT_TWO = 2**0.5
# Points that a further border adds on each side.
_PERIPHERY = 4
# Inches around the text by shape, and how much larger than its text's rectangle a shape is.
_GROWTH = {"oval": (_ROOT_TWO, _ROOT_TWO), "cylinder": (1.0, 1.375)}
_RECTANGLES = ("box", "box3d", "rect", "rectangle", "folder", "note", "tab", "component", "plaintext", "plain", "none")
_MARGIN = {"oval": (0.03, 0.02), "box": (0.11, 0.06), "box3d": (0.15, 0.1), "cylinder": (0.15, 0.1)}


@cache
def _widths(bold: bool) -> Sequence[int]:
    """Widths of the first 256 characters in thousandths of the font's size."""
    from reportlab.pdfbase import pdfmetrics

    font: Any = pdfmetrics.getFont("Helvetica-Bold" if bold else "Helvetica")
    return tuple(font.widths)


@lru_cache(maxsize=65536)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line."""
    widths = _widths(bold)
    total = sum(widths[ord(char)] / 1000 if ord(char) < 127 else _OTHER for char in text)
    return total * size * SLACK


def lines_size(lines: Sequence[str], size: float, bold: bool = False) -> Size:
    """Width and height of lines below each other."""
    return max((text_width(line, size, bold) for line in lines), default=0.0), len(lines) * size * LINE


def node_size(node: SceneNode, page: Page) -> Size:
    """Width and height of a node."""
    style = node.style
    width, height = _grown(_content_size(node, page), style)
    # What a user sets is the size without further borders, as an engine reads it.
    border = outer_border(style)
    least = tuple(72 * side + border if side else 0.0 for side in (style.width, style.height))
    fixed = style.fixed_size == "true" and all(least)
    return (least[0], least[1]) if fixed else (max(width, least[0]), max(height, least[1]))


def _content_size(node: SceneNode, page: Page) -> Size:
    """Rows, and the grid of pictures above them."""
    size = _rows_size(node.rows, node.style.font_size or page.font_size, page.bold)
    if not node.pictures:
        return size
    across = columns(len(node.pictures))
    down = -(-len(node.pictures) // across)
    room = 2 * CELL_PADDING
    width = across * (max(picture.width for picture in node.pictures) + room) + room
    height = down * (max(picture.height for picture in node.pictures) + room) + room
    return max(size[0], width), size[1] + height


@lru_cache(maxsize=65536)
def _rows_size(rows: tuple[Row, ...], size: float, bold: bool) -> Size:
    sizes = [lines_size(row.lines, size, row.bold or bold) for row in rows]
    width = max((width for width, _ in sizes), default=0.0) + 2 * CELL_PADDING
    return width, sum(height + 2 * CELL_PADDING for _, height in sizes)


def _grown(text: Size, style: NodeStyle) -> Size:
    shape = style.shape or "oval"
    margin = _MARGIN.get(shape, _MARGIN["box"])
    # Of a shape that is no rectangle, the rows fill the middle.
    growth = _GROWTH.get(shape, (1.0, 1.0) if shape in _RECTANGLES else (_ROOT_TWO, _ROOT_TWO))
    border = outer_border(style)
    width, height = (
        max((side + 144 * room) * factor, least) + border
        for side, room, factor, least in zip(text, margin, growth, (54.0, 36.0), strict=True)
    )
    return width, height


def outer_border(style: NodeStyle) -> float:
    """Points by which further borders make a node wider and higher than the size an engine is told."""
    return 2.0 * _PERIPHERY * ((style.peripheries or 1) - 1)


def edge_label_size(edge: SceneEdge, page: Page) -> Size:
    """Width and height of the lines at the middle of an arrow, (0, 0) without any."""
    width, height = lines_size(edge.middle, page.edge_font_size, page.bold)
    arms_width, arms_height = lines_size(edge.arms, page.emphasis_size, True)
    return max(width, arms_width), height + arms_height


def frame_label_size(box: SceneBox, page: Page) -> Size:
    """Width and height of a frame's title and lines."""
    title, title_height = lines_size(box.title, page.font_size, True)
    width, height = lines_size(box.lines, page.font_size, page.bold)
    return max(title, width), title_height + height


def root_size(root: Sequence[RootLine], page: Page, gaps: float, bar_cell: float, swatch: float) -> Size:
    """Width and height of header, caption and key. gaps: the blank lines among them; the others: widths of samples."""
    width = height = 0.0
    for line in root:
        height += line.size * LINE + 4
        if isinstance(line, TextLine):
            wide = text_width(line.text, line.size, line.bold or page.bold)
        elif isinstance(line, BarLine):
            wide = text_width(f"{line.low}  {line.high}", line.size) + bar_cell * len(line.cells) + 12
        else:
            wide = text_width(line.text, line.size) + swatch + 12
        width = max(width, wide + 6)
    return width, (height + gaps) if root else 0.0


def smallest_text(scene: Scene) -> float | None:
    """Size in points of the smallest text of a figure, None without any."""
    page = scene.page
    sizes = {line.size for line in scene.root}
    sizes |= {node.style.font_size or page.font_size for node in scene.nodes if node.rows}
    if scene.boxes:
        sizes.add(page.font_size)
    if any(edge.middle or edge.tail or edge.head for edge in scene.edges):
        sizes.add(page.edge_font_size)
    return min(sizes, default=None)
