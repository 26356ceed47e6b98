"""How large things will be drawn: the sizes, in points, that an engine gives to nodes, labels and the root label.

Only a layout of our own needs them before the engine has run. Widths are those of Helvetica, with some slack because
an engine may substitute another font.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.scene import label_size
from torchlens.scene.label_size import LINE_HEIGHT, Size
from torchlens.scene.model import (
    BarLine,
    Page,
    RootLine,
    Scene,
    SceneBox,
    SceneEdge,
    SceneNode,
    TextLine,
)

SLACK = 1.04


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line."""
    return label_size.text_width(text, size, bold) * SLACK


def lines_size(lines: Sequence[str], size: float, bold: bool = False) -> Size:
    """Width and height of lines below each other."""
    return max((text_width(line, size, bold) for line in lines), default=0.0), len(lines) * size * LINE_HEIGHT


def node_size(node: SceneNode, page: Page) -> Size:
    """Width and height of a node."""
    style = node.style
    width, height = label_size.natural_size(node, page, SLACK)
    # What a user sets is the size without further borders, as an engine reads it.
    border = label_size.outer_border(style)
    least = tuple(72 * side + border if side else 0.0 for side in (style.width, style.height))
    fixed = style.fixed_size == "true" and all(least)
    return (least[0], least[1]) if fixed else (max(width, least[0]), max(height, least[1]))


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
        height += line.size * LINE_HEIGHT + 4
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
