"""Scene -> DOT text: complete and self-sufficient styling, and the one place where text is escaped.

The same scene gives the same bytes: nodes, frames and arrows come in trace order, numbers have a fixed form, and the
graph's own names are a counter's, never a user's. Ids (`relu_1_2:2`, `cluster:features.0:1`) name the parts in the SVG.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from torchlens.base.text import clean, truncate
from torchlens.base.units import ELLIPSIS
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
    SwatchLine,
    TextLine,
)

TEXT_LIMIT = 4000
ARROW_SIZE = 0.7
LABEL_ANGLE, LABEL_DISTANCE, FARTHEST_LABEL = 45, 2.0, 5.0
CELL_WIDTH, BAR_HEIGHT = 2, 10
_ROOT_IDS = {"header": "caption:header", "caption": "caption", "key": "key"}
SWATCH_WIDTH, SWATCH_HEIGHT = 18, 12
# Points below the root label, and between its parts.
GAP, PART_GAP = 8, 5
ASIDE = "    "

_HTML = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "[": "&#91;",
        "]": "&#93;",
        "\\": "&#92;&#92;",
        "\n": "<BR/>",
    }
)
_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_UNSAFE_ID = re.compile(r"[^A-Za-z0-9_.:>~-]")
_NARROW, _WIDE = frozenset(" .,:;'!|()[]ijlftIr"), frozenset("mwMW@%")
_PLAIN = 'BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" ALIGN="LEFT"'
# Inches. An ellipse has room around its rows anyway; the lid of a solid would touch its title.
_MARGINS = {"oval": "0.03,0.02", "box": "0.11,0.06", "box3d": "0.15,0.1", "cylinder": "0.15,0.1"}
_TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="{}">{}</TABLE>'


def write(scene: Scene) -> str:
    """The figure as DOT text."""
    ids = _Ids()
    writer = _NodeWriter(scene.nodes, scene.page)
    lines = [f"digraph {quote(scene.title)} {{", *_defaults(scene.page, scene.root, writer)]
    names = [ids.take(node.name) for node in scene.nodes]
    frames = [ids.take(box.name) for box in scene.boxes]
    lines += _body(scene, names, frames, writer)
    lines += _arrows(scene, names, ids)
    lines.append("}")
    return "\n".join(lines) + "\n"


# -- text
def html(text: str) -> str:
    """Text inside an HTML-like label."""
    return clean(text).translate(_HTML)


def quote(text: str) -> str:
    """A quoted attribute value; `\\N` and the like stay as they are written."""
    return f'"{clean(truncate(text, TEXT_LIMIT)).translate(_QUOTED)}"'


def number(value: float) -> str:
    """A number in a fixed form: two decimals at most, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class _Html(str):
    """Text that is an HTML-like label already, brackets included."""

    __slots__ = ()


def _attributes(values: Mapping[str, str | float | None]) -> str:
    """`[name=value ...]`, unset ones left out."""
    parts: list[str] = []
    for name, value in values.items():
        if value is not None:
            parts.append(f"{name}={_value(value)}")
    return f"[{' '.join(parts)}]"


def _value(value: str | float) -> str:
    if isinstance(value, _Html):
        return value
    return quote(value) if isinstance(value, str) else number(value)


class _Ids:
    """Makes names unique and safe for ids: other characters become `_`, a second one gets `~2`."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def take(self, name: str) -> str:
        safe = _UNSAFE_ID.sub("_", name)
        count = self._taken.get(safe, 0)
        while True:
            count += 1
            unique = safe if count == 1 else f"{safe}~{count}"
            if count == 1 or unique not in self._taken:
                break
        self._taken[safe] = count
        self._taken.setdefault(unique, 1)
        return unique


# -- graph
def _defaults(page: Page, root: Sequence[RootLine], writer: _NodeWriter) -> Iterator[str]:
    graph: dict[str, str | float | None] = {
        "id": "tl-graph",
        "class": "torchlens",
        "rankdir": page.direction,
        "compound": "true",
        "bgcolor": page.background,
        "fontname": page.font,
        "fontsize": page.font_size,
        "fontcolor": page.text,
        "pad": page.pad,
        "nodesep": page.nodesep,
        "ranksep": page.ranksep,
        "labelloc": "t",
        "labeljust": "l",
        "label": _root_label(root, page.bold),
        "tooltip": " " if page.tooltips else None,
    }
    yield f" graph {_attributes(graph)};"
    if page.attributes:
        yield f" graph [{' '.join(_user_attribute(name, value) for name, value in page.attributes.items())}];"
    yield f" node {writer.defaults()};"
    edge = {
        "fontname": page.font,
        "fontsize": page.edge_font_size,
        "fontcolor": page.edge_font_color,
        "color": page.edge_color,
        "penwidth": page.edge_width,
        "arrowsize": ARROW_SIZE,
        "labelangle": LABEL_ANGLE,
        "labeldistance": LABEL_DISTANCE,
    }
    yield f" edge {_attributes(edge)};"


def _user_attribute(name: str, value: str | float) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{quote(name)}={quote(text)}"


def _root_label(root: Sequence[RootLine], bold: bool) -> _Html | None:
    counts: Counter[str] = Counter()
    rows = ""
    for line in root:
        kind = _ROOT_IDS[line.kind] if isinstance(line, TextLine) else "key"
        if rows and not counts[kind]:
            rows += f'<TR><TD HEIGHT="{PART_GAP}"></TD></TR>'
        counts[kind] += 1
        # An engine writes the id only where there is a title too.
        rows += f'<TR><TD ALIGN="LEFT" ID="{kind}:{counts[kind]}" TITLE=" ">{_root_line(line, bold)}</TD></TR>'
    # A gap below keeps the label off the nodes.
    gap = f'<TR><TD HEIGHT="{GAP}"></TD></TR>'
    return _Html(f"<{_TABLE.format(1, rows + gap)}>") if rows else None


def _root_line(line: RootLine, bold: bool) -> str:
    if isinstance(line, TextLine):
        return _font(line.text, line.size, line.color, line.bold or bold)
    if isinstance(line, BarLine):
        cells = "".join(f'<TD {_fixed(CELL_WIDTH, BAR_HEIGHT)} BGCOLOR="{color}"></TD>' for color in line.cells)
        width = CELL_WIDTH * len(line.cells)
        # The table's own colours lie under the seams that a raster image shows between neighbouring cells.
        under = f'BGCOLOR="{line.cells[0]}:{line.cells[-1]}"'
        bar = f"<TABLE {_PLAIN} {_fixed(width, BAR_HEIGHT)} {under}><TR>{cells}</TR></TABLE>"
        return _strip([f"{line.low} ", bar, f" {line.high}"], width, BAR_HEIGHT, line, bold)
    border = max(1, round(line.stroke_width))
    frame = f'BORDER="{border}" COLOR="{line.stroke}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" ALIGN="LEFT"'
    fill = f' BGCOLOR="{line.fill}"' if line.fill else ""
    sample = f"<TABLE {frame} {_fixed(SWATCH_WIDTH, SWATCH_HEIGHT)}{fill}><TR><TD></TD></TR></TABLE>"
    return _strip([sample, f" {line.text}"], SWATCH_WIDTH, SWATCH_HEIGHT, line, bold)


def _strip(parts: Sequence[str], width: int, height: int, line: BarLine | SwatchLine, bold: bool) -> str:
    """Parts side by side, tables among them as they are, in a table of fixed size: a free one would be stretched to the
    width of the whole label.
    """
    texts = [part for part in parts if not part.startswith("<")]
    room = width + sum(_width(text, line.size) for text in texts)
    cells = "".join(
        f'<TD ALIGN="LEFT">{part if part.startswith("<") else _font(part, line.size, line.color, bold)}</TD>'
        for part in parts
    )
    return f"<TABLE {_PLAIN} {_fixed(room, max(height, round(line.size * 1.2)) + 2)}><TR>{cells}</TR></TABLE>"


def _fixed(width: int, height: int) -> str:
    return f'FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"'


def _width(text: str, size: float) -> int:
    """Points that a text needs at most: a generous bound, since an engine may substitute a wider font."""
    ems = sum(0.32 if char in _NARROW else 0.95 if char in _WIDE else 0.6 for char in text)
    return round(ems * size) + 4


def _font(text: str, size: float, color: str, bold: bool) -> str:
    inner = _bold(html(text), bold)
    return f'<FONT POINT-SIZE="{number(size)}" COLOR="{color}">{inner}</FONT>' if text else ""


def _bold(escaped: str, bold: bool) -> str:
    """Bold text; an empty element would be a syntax error."""
    return f"<B>{escaped}</B>" if bold and escaped else escaped


# -- nodes and frames
def _body(scene: Scene, names: Sequence[str], frames: Sequence[str], writer: _NodeWriter) -> Iterator[str]:
    """Nodes and frames as a tree, each frame where its first node stands."""
    inside: dict[int | None, list[tuple[bool, int]]] = {None: []}
    for k, node in enumerate(scene.nodes):
        box = node.box
        new: list[int] = []
        while box is not None and box not in inside:
            new.append(box)
            inside[box] = []
            box = scene.boxes[box].parent
        for opened in reversed(new):
            inside[scene.boxes[opened].parent].append((True, opened))
        inside[node.box].append((False, k))
    open_frames: list[Iterator[tuple[bool, int]]] = [iter(inside[None])]
    while open_frames:
        for is_frame, k in open_frames[-1]:
            if is_frame:
                yield from _open_frame(scene.boxes[k], k, frames[k], scene.page, len(open_frames))
                open_frames.append(iter(inside[k]))
                break
            yield f"{' ' * len(open_frames)}n{k} {writer.attributes(scene.nodes[k], names[k])};"
        else:
            open_frames.pop()
            if open_frames:
                yield f"{' ' * len(open_frames)}}}"


def _open_frame(box: SceneBox, index: int, name: str, page: Page, indent: int) -> Iterator[str]:
    """Every attribute that a frame would inherit from the one around it is set again."""
    texts = [_bold(html(line), True) for line in box.title] + [_bold(html(line), page.bold) for line in box.lines]
    label = "".join(f'{text.replace("<BR/>", " ")}<BR ALIGN="LEFT"/>' for text in texts)
    attributes = {
        "id": name,
        "class": "module",
        "label": _Html(f"<{label}>"),
        # With rankdir=BT the engine flips this: t is the start of the flow, at the bottom.
        "labelloc": "t",
        "labeljust": "l",
        "style": "filled,dashed" if box.dashed else "filled,solid",
        "fillcolor": box.fill,
        "color": box.stroke,
        "penwidth": box.stroke_width,
        "peripheries": 1,
        "fontcolor": box.font_color,
        "margin": page.cluster_margin,
        "tooltip": box.tooltip or None,
    }
    yield f"{' ' * indent}subgraph cluster_{index} {{"
    yield f"{' ' * (indent + 1)}graph {_attributes(attributes)};"


class _NodeWriter:
    """Writes node attributes: the commonest style once for the whole graph, of the others what differs from it."""

    def __init__(self, nodes: Sequence[SceneNode], page: Page) -> None:
        self._font, self._bold = page.font, page.bold
        counts = Counter(node.style for node in nodes)
        self._common = _style(max(counts, key=lambda style: counts[style])) if counts else {}
        self._known: dict[NodeStyle, str] = {}

    def defaults(self) -> str:
        return _attributes({"fontname": self._font, **self._common})

    def attributes(self, node: SceneNode, name: str) -> str:
        style = self._known.get(node.style)
        if style is None:
            differing = {key: value for key, value in _style(node.style).items() if self._common[key] != value}
            style = self._known[node.style] = f" {_attributes(differing)[1:-1]}" if differing else ""
        tooltip = f" tooltip={quote(node.tooltip)}" if node.tooltip else ""
        return f'[id="{name}" class="{node.kind}" label={_node_label(node.rows, self._bold)}{style}{tooltip}]'


def _style(style: NodeStyle) -> dict[str, str | float | None]:
    """All attributes of a style, none left to what the engine assumes."""
    shape = style.shape or "oval"
    return {
        "shape": shape,
        "margin": _MARGINS[shape],
        "peripheries": style.peripheries or 1,
        "style": f"filled,{style.dash or 'solid'}",
        "fillcolor": style.fill or "none",
        # A two-colour fill runs from left to right.
        "gradientangle": 0,
        "color": style.stroke or "none",
        "penwidth": 1.0 if style.stroke_width is None else style.stroke_width,
        "fontcolor": style.font_color,
        "fontsize": style.font_size,
    }


def _node_label(rows: Sequence[Row], bold: bool) -> str:
    """The rows as a table, capped so that every engine can read it."""
    parts: list[str] = []
    length = 0
    for k, row in enumerate(rows):
        text = "<BR/>".join(html(line) for line in row.lines)
        if length + len(text) > TEXT_LIMIT:
            parts.append(f"<TR><TD>{ELLIPSIS} +{len(rows) - k} rows</TD></TR>")
            break
        length += len(text)
        parts.append(f"<TR><TD>{_bold(text, row.bold or bold)}</TD></TR>")
    return f"<{_TABLE.format(2, ''.join(parts))}>" if parts else '""'


# -- arrows
def _arrows(scene: Scene, names: Sequence[str], ids: _Ids) -> Iterator[str]:
    pairs: Counter[tuple[int, int]] = Counter()
    sides = _sides(scene.edges)
    for edge, left in zip(scene.edges, sides, strict=True):
        ends = (edge.source, edge.target)
        pairs[ends] += 1
        name = ids.take(f"edge:{names[edge.source]}->{names[edge.target]}:{pairs[ends]}")
        # An arrow that enters or leaves a frame needs room for its head beside the frame's line.
        crosses = scene.nodes[edge.source].box != scene.nodes[edge.target].box
        length = " minlen=2" if crosses else ""
        yield f' n{edge.source} -> n{edge.target} [id="{name}"{_edge_labels(edge, left, scene.page.bold)}{length}];'


def _sides(edges: Sequence[SceneEdge]) -> list[bool]:
    """Whether the end label of each arrow stands on its left: of the first one of a node, so that neighbours part.

    An engine draws the arrows of a node from left to right in the order in which they are written, by and large.
    """
    tails = Counter(edge.source for edge in edges if edge.tail)
    seen: set[tuple[str, int]] = set()
    sides: list[bool] = []
    for edge in edges:
        end = ("head", edge.target) if edge.head else ("tail", edge.source)
        alone = end[0] == "tail" and tails[edge.source] == 1
        sides.append(end not in seen and not alone)
        if edge.head or edge.tail:
            seen.add(end)
    return sides


def _edge_labels(edge: SceneEdge, left: bool, bold: bool) -> str:
    parts: list[str] = []
    if edge.middle:
        # The blanks keep the text off the line beside it.
        parts.append(f" label={_edge_text([f'{ASIDE}{line}' for line in edge.middle], bold)}")
    for attribute, lines in (("taillabel", edge.tail), ("headlabel", edge.head)):
        if lines:
            parts.append(f" {attribute}={_edge_text(lines, bold)}")
    if edge.head or edge.tail:
        # A positive angle is on the left at the head and on the right at the tail.
        parts.append(f" labelangle=-{LABEL_ANGLE}" if left != bool(edge.head) else "")
        parts.append(_label_distance(max(len(line) for line in (*edge.head, *edge.tail))))
    return "".join(parts) + (" style=dashed" if edge.dashed else "")


def _edge_text(lines: Sequence[str], bold: bool) -> str:
    text = "\n".join(lines)
    return f"<{_bold(html(text), bold)}>" if bold else quote(text)


def _label_distance(length: int) -> str:
    """Far enough from the end that half the text fits beside the line; in the engine's units of 10 points."""
    needed = 0.3 * length + 0.45
    return f" labeldistance={number(min(needed, FARTHEST_LABEL))}" if needed > LABEL_DISTANCE else ""
