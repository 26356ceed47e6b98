"""How much room text and a node's rows and pictures need, in points: what an engine gives them at least.

Widths are those of Helvetica, which figures are set in. Sizes by value and a layout of our own start from here, so
that no text is ever cut.
"""

from __future__ import annotations

from functools import lru_cache

from torchlens.scene.images import columns
from torchlens.scene.model import NodeStyle, Page, Row, SceneNode

Size = tuple[float, float]

# Source: Adobe Font Metrics of Helvetica and Helvetica-Bold, characters 32 to 126, in thousandths of the size.
_REGULAR = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
_BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
)  # fmt: skip
# Engines measure other characters as wide as a capital at most.
_OTHER = 720
LINE_HEIGHT = 1.2
# Points around the cells of a row, and that a further border adds on each side.
PADDING, PERIPHERY = 2, 4
_ROOT_TWO = 2**0.5
# Inches around the text by shape, and how much larger than its text's rectangle a shape is.
_MARGIN = {"oval": (0.03, 0.02), "box": (0.11, 0.06), "box3d": (0.15, 0.1), "cylinder": (0.15, 0.1)}
_GROWTH = {"oval": (_ROOT_TWO, _ROOT_TWO), "cylinder": (1.0, 1.375)}
_RECTANGLES = ("box", "box3d", "rect", "rectangle", "folder", "note", "tab", "component", "plaintext", "plain", "none")
# What an engine gives an empty node.
_LEAST = (54.0, 36.0)


def natural_size(node: SceneNode, page: Page, slack: float = 1.0) -> Size:
    """Width and height that a node has for its contents alone, whatever size it was given. slack: factor of widths of
    text, for an engine that may take another font.
    """
    style = node.style
    width, height = _rows_size(node.rows, style.font_size or page.font_size, page.bold, slack)
    if node.pictures:
        across = columns(len(node.pictures))
        down = -(-len(node.pictures) // across)
        room = 2 * PADDING
        width = max(width, across * (max(picture.width for picture in node.pictures) + room) + room)
        height += down * (max(picture.height for picture in node.pictures) + room) + room
    return _shaped((width, height), style)


@lru_cache(maxsize=65536)
def _rows_size(rows: tuple[Row, ...], size: float, bold: bool, slack: float) -> Size:
    lines = ((line, row.bold or bold) for row in rows for line in row.lines)
    width = max((text_width(line, size, heavy) for line, heavy in lines), default=0.0) * slack
    height = sum(len(row.lines) * size * LINE_HEIGHT + 2 * PADDING for row in rows)
    return width + 2 * PADDING, height


@lru_cache(maxsize=65536)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line."""
    table = _BOLD if bold else _REGULAR
    return sum(table[ord(char) - 32] if 32 <= ord(char) < 127 else _OTHER for char in text) * size / 1000


def outer_border(style: NodeStyle) -> float:
    """Points by which further borders make a node wider and higher than the size an engine is told."""
    return 2.0 * PERIPHERY * ((style.peripheries or 1) - 1)


def _shaped(text: Size, style: NodeStyle) -> Size:
    shape = style.shape or "oval"
    margin = _MARGIN.get(shape, _MARGIN["box"])
    # Of a shape that is no rectangle, the rows fill the middle.
    growth = _GROWTH.get(shape, (1.0, 1.0) if shape in _RECTANGLES else (_ROOT_TWO, _ROOT_TWO))
    border = outer_border(style)
    width, height = (
        max((side + 144 * room) * factor, least) + border
        for side, room, factor, least in zip(text, margin, growth, _LEAST, strict=True)
    )
    return width, height
