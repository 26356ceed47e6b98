"""Nodes as DOT text: style, rows and pictures. Knows no trace, no theme, and nothing of where a node stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torchlens.base.units import ELLIPSIS
from torchlens.render.dot_text import TABLE, TEXT_LIMIT, attribute_list, html, quote_tooltip, strong
from torchlens.scene.images import Picture, columns
from torchlens.scene.model import NodeStyle, Page, SceneNode

# Inches. An ellipse has room around its rows anyway; the lid of a solid would touch its title.
_MARGINS = {"oval": "0.03,0.02", "box": "0.11,0.06", "box3d": "0.15,0.1", "cylinder": "0.15,0.1"}
_OTHER_MARGIN = "0.11,0.06"
# Points around the cells of a node's rows.
PADDING = 2
SOURCE = 'SRC="'
_GRID = 'BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"'


class NodeWriter:
    """Writes node attributes: the commonest style once for the whole graph, of the others what differs from it."""

    def __init__(self, nodes: Sequence[SceneNode], page: Page) -> None:
        self._font, self._bold = page.font, page.bold
        counts = Counter(_shared(node.style) for node in nodes)
        self._common = style_attributes(max(counts, key=lambda style: counts[style])) if counts else {}
        self._known: dict[NodeStyle, str] = {}

    def defaults(self) -> str:
        """What all nodes have unless they say otherwise."""
        return attribute_list({"fontname": self._font, **self._common})

    def attributes(self, node: SceneNode, name: str, place: str = "") -> str:
        """The attributes of one node. name: its id; place: further ones that say where it stands."""
        style = self._known.get(node.style)
        if style is None:
            whole = style_attributes(node.style)
            differing = {key: value for key, value in whole.items() if self._common.get(key) != value}
            style = self._known[node.style] = f" {attribute_list(differing)[1:-1]}" if differing else ""
        tooltip = f" tooltip={quote_tooltip(node.tooltip)}" if node.tooltip else ""
        return f'[id="{name}" class="{node.kind}" label={self._label(node)}{style}{tooltip}{place}]'

    def _label(self, node: SceneNode) -> str:
        """Pictures and rows as a table, the rows capped so that every engine can read it."""
        parts = list(_grid(node.pictures))
        length = 0
        for k, row in enumerate(node.rows):
            text = "<BR/>".join(html(line) for line in row.lines)
            size = len(text.encode("utf-8", "replace"))
            if length + size > TEXT_LIMIT:
                parts.append(f"<TR><TD>{ELLIPSIS} +{len(node.rows) - k} rows</TD></TR>")
                break
            length += size
            parts.append(f"<TR><TD>{strong(text, row.bold or self._bold)}</TD></TR>")
        return f"<{TABLE.format(PADDING, ''.join(parts))}>" if parts else '""'


def _grid(pictures: Sequence[Picture]) -> Iterator[str]:
    """One row with a grid of cells of fixed size, so that no engine has to know how large an image is."""
    if pictures:
        side = columns(len(pictures))
        rows = [pictures[k : k + side] for k in range(0, len(pictures), side)]
        cells = "".join(f"<TR>{''.join(map(_picture, row))}</TR>" for row in rows)
        yield f"<TR><TD><TABLE {_GRID}>{cells}</TABLE></TD></TR>"


def _picture(picture: Picture) -> str:
    width, height = (round(side) + 2 * PADDING for side in (picture.width, picture.height))
    return f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"><IMG SCALE="TRUE" {SOURCE}{picture.name}"/></TD>'


def _shared(style: NodeStyle) -> NodeStyle:
    """What a style may hand to all nodes: a node cannot take back an attribute that it has no value for."""
    if style.attributes is style.width is style.height is style.fixed_size is None:
        return style
    return replace(style, attributes=None, width=None, height=None, fixed_size=None)


def _body(style: NodeStyle, shape: str) -> str:
    """How a shape is filled. Colours side by side are known for few shapes; any other runs from one into the next."""
    if style.split and ":" in (style.fill or ""):
        return {"box": "striped", "oval": "wedged"}.get(shape, "filled")
    return "filled"


def style_attributes(style: NodeStyle) -> dict[str, str | float | None]:
    """All attributes of a style, none left to what the engine assumes."""
    shape = style.shape or "oval"
    found: dict[str, str | float | None] = {
        "shape": shape,
        "margin": _MARGINS.get(shape, _OTHER_MARGIN),
        "peripheries": style.peripheries or 1,
        "style": f"{_body(style, shape)},{'rounded,' if style.rounded else ''}{style.dash or 'solid'}",
        "fillcolor": style.fill or "none",
        # A two-colour fill runs from left to right.
        "gradientangle": 0,
        "color": style.stroke or "none",
        "penwidth": 1.0 if style.stroke_width is None else style.stroke_width,
        "fontcolor": style.font_color,
        "fontsize": style.font_size,
        "width": style.width,
        "height": style.height,
        "fixedsize": style.fixed_size,
    }
    for name, value in style.attributes or ():
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
