"""Scene -> DOT text: complete and self-sufficient styling; text is escaped by `dot_text` and nowhere else.

The same scene gives the same bytes: nodes, frames and arrows come in trace order, numbers have a fixed form, and the
graph's own names are a counter's, never a user's. Ids (`relu_1_2:2`, `cluster:features.0:1`) name the parts in the SVG.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from torchlens.base.units import ELLIPSIS
from torchlens.render.dot_nodes import SOURCE, NodeWriter
from torchlens.render.dot_text import TABLE, Html, attribute_list, html, number, quote, quote_label, safe_id, strong
from torchlens.render.placement import FREE, Placement
from torchlens.scene.model import (
    BarLine,
    Page,
    RootLine,
    Scene,
    SceneBox,
    SceneEdge,
    SwatchLine,
    TextLine,
)

ARROW_SIZE = 0.7
# Characters of an id. The longest is that of an arrow, which holds two others.
ID_LIMIT = 1000
LABEL_ANGLE, LABEL_DISTANCE, FARTHEST_LABEL = 45, 2.0, 5.0
CELL_WIDTH, BAR_HEIGHT = 2, 10
_ROOT_IDS = {"header": "caption:header", "caption": "caption", "key": "key"}
SWATCH_WIDTH, SWATCH_HEIGHT = 18, 12
# Bytes of the root label, of which an engine reads 16,384, and of the cell around one of its lines.
LABEL_LIMIT, ROW_MARKUP = 15_000, 60
# Points below the root label, and between its parts.
GAP, PART_GAP = 8, 5
ASIDE = "    "
SIDEWAYS = ("LR", "RL")
# An arrow from a node to itself bulges more than an engine allows for.
BEHIND = " " * 12
# Points beside the line and below the underline of an arm.
ARM_ASIDE, UNDERLINE_GAP = 12, 4

_NARROW, _WIDE = frozenset(" .,:;'!|()[]ijlftIr"), frozenset("mwMW@%")
_PLAIN = 'BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" ALIGN="LEFT"'


def write(scene: Scene, placement: Placement = FREE) -> str:
    """The figure as DOT text. placement: where everything stands; by default the engine decides."""
    ids = _Ids()
    writer = NodeWriter(scene.nodes, scene.page)
    lines = [f"digraph {quote(scene.title)} {{", *_defaults(scene.page, scene.root, writer, placement)]
    names = [ids.take(node.name[: ID_LIMIT // 3]) for node in scene.nodes]
    frames = [ids.take(box.name[: ID_LIMIT // 3]) for box in scene.boxes]
    lines += _body(scene, names, frames, writer, placement)
    lines += _arrows(scene, names, ids, placement)
    lines += _columns(scene.columns)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _columns(columns: Sequence[Sequence[int]]) -> Iterator[str]:
    """Nodes that share a rank, frames or not."""
    if columns:
        yield " graph [newrank=true];"
    for column in columns:
        yield f" {{ rank=same; {' '.join(f'n{k};' for k in column)} }}"


def with_pictures_in(document: str, folder: str) -> str:
    """The text with the files of its pictures in this folder beside it. No user's text holds an unescaped quote."""
    return document.replace(SOURCE, f"{SOURCE}{html(folder)}/")


class _Ids:
    """Makes names unique and safe for ids: other characters become `_`, a second one gets `~2`."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def take(self, name: str) -> str:
        safe = safe_id(name[:ID_LIMIT])
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
def _defaults(page: Page, root: Sequence[RootLine], writer: NodeWriter, placement: Placement) -> Iterator[str]:
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
    yield f" graph {attribute_list(graph)};"
    if placement.graph:
        yield f" graph [{placement.graph}];"
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
    yield f" edge {attribute_list(edge)};"


def _user_attribute(name: str, value: str | float) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{quote(name)}={quote(text)}"


def _root_label(root: Sequence[RootLine], bold: bool) -> Html | None:
    counts: Counter[str] = Counter()
    rows = ""
    for line, written in _within_limit(root, bold):
        kind = _ROOT_IDS[line.kind] if isinstance(line, TextLine) else "key"
        if rows and not counts[kind]:
            rows += f'<TR><TD HEIGHT="{PART_GAP}"></TD></TR>'
        counts[kind] += 1
        # An engine writes the id only where there is a title too.
        rows += f'<TR><TD ALIGN="LEFT" ID="{kind}:{counts[kind]}" TITLE=" ">{written}</TD></TR>'
    # A gap below keeps the label off the nodes.
    gap = f'<TR><TD HEIGHT="{GAP}"></TD></TR>'
    return Html(f"<{TABLE.format(1, rows + gap)}>") if rows else None


def _within_limit(root: Sequence[RootLine], bold: bool) -> Iterator[tuple[RootLine, str]]:
    """The lines as written; of a text beyond all measure the rest is counted, so that every engine can read the label
    and the key below it stays.
    """
    lines = [(line, _root_line(line, bold)) for line in root]
    texts = [isinstance(line, TextLine) and line.kind != "key" for line, _ in lines]
    sizes = [len(written.encode("utf-8", "replace")) + ROW_MARKUP for _, written in lines]
    left = LABEL_LIMIT - sum(size for size, text in zip(sizes, texts, strict=True) if not text)
    for k, (line, written) in enumerate(lines):
        if texts[k]:
            left -= sizes[k]
            if left < 0:
                rest = sum(texts[k:])
                yield line, _root_line(line._replace(text=f"{ELLIPSIS} +{rest} lines"), bold)
                yield from (pair for pair, text in zip(lines[k:], texts[k:], strict=True) if not text)
                return
        yield line, written


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
    frame += f' STYLE="{line.dash}"' if line.dash != "solid" else ""
    # A share of the width makes the step from one colour to the next a sharp one.
    fill = f' BGCOLOR="{line.fill.replace(":", ";0.5:") if line.split else line.fill}"' if line.fill else ""
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
    inner = strong(html(text), bold)
    return f'<FONT POINT-SIZE="{number(size)}" COLOR="{color}">{inner}</FONT>' if text else ""


# -- nodes and frames
def _body(
    scene: Scene, names: Sequence[str], frames: Sequence[str], writer: NodeWriter, placement: Placement
) -> Iterator[str]:
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
                if placement.frames:
                    yield f"{' ' * (len(open_frames) + 1)}graph [{placement.frame(k)}];"
                open_frames.append(iter(inside[k]))
                break
            yield f"{' ' * len(open_frames)}n{k} {writer.attributes(scene.nodes[k], names[k], placement.node(k))};"
        else:
            open_frames.pop()
            if open_frames:
                yield f"{' ' * len(open_frames)}}}"


def _open_frame(box: SceneBox, index: int, name: str, page: Page, indent: int) -> Iterator[str]:
    """Every attribute that a frame would inherit from the one around it is set again."""
    texts = [strong(html(line), True) for line in box.title] + [strong(html(line), page.bold) for line in box.lines]
    label = "".join(f'{text.replace("<BR/>", " ")}<BR ALIGN="LEFT"/>' for text in texts)
    attributes = {
        "id": name,
        "class": "module",
        "label": Html(f"<{label}>"),
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
    yield f"{' ' * (indent + 1)}graph {attribute_list(attributes)};"


# -- arrows
def _arrows(scene: Scene, names: Sequence[str], ids: _Ids, placement: Placement) -> Iterator[str]:
    pairs: Counter[tuple[int, int]] = Counter()
    sides = _sides(scene.edges)
    for k, (edge, left) in enumerate(zip(scene.edges, sides, strict=True)):
        ends = (edge.source, edge.target)
        pairs[ends] += 1
        name = ids.take(f"edge:{names[edge.source]}->{names[edge.target]}:{pairs[ends]}")
        # An arrow that enters or leaves a frame needs room for its head beside the frame's line.
        crosses = scene.nodes[edge.source].box != scene.nodes[edge.target].box
        length = placement.edge(k) or (" minlen=2" if crosses else "")
        tail, head, turned = edge.source, edge.target, ""
        if edge.back and tail != head and not placement.routes:
            # Written along the flow and drawn the other way round, it leaves the ranks in the order of execution.
            tail, head, turned = head, tail, " dir=back"
            edge = edge._replace(tail=edge.head, head=edge.tail)
        yield f' n{tail} -> n{head} [id="{name}"{_edge_labels(edge, left, scene.page)}{turned}{length}];'


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


def _edge_labels(edge: SceneEdge, left: bool, page: Page) -> str:
    parts: list[str] = []
    bold = page.bold
    if edge.arms:
        parts.append(f" label={_arm_label(edge, page)}")
    elif edge.middle:
        # The blanks keep the text off the line, which is below it where the flow is horizontal, else at its left.
        behind = BEHIND if edge.source == edge.target else ""
        lines = [f"{ASIDE}{line}{behind}" for line in edge.middle]
        if page.direction in SIDEWAYS:
            lines = [*edge.middle, " "]
        parts.append(f" label={_edge_text(lines, bold)}")
    for attribute, lines in (("taillabel", edge.tail), ("headlabel", edge.head)):
        if lines:
            parts.append(f" {attribute}={_edge_text(lines, bold)}")
    if edge.head or edge.tail:
        # A positive angle is on the left at the head and on the right at the tail.
        parts.append(f" labelangle=-{LABEL_ANGLE}" if left != bool(edge.head) else "")
        parts.append(_label_distance(max(len(line) for line in (*edge.head, *edge.tail))))
    return "".join(parts) + (" style=dashed" if edge.dashed else "")


def _arm_label(edge: SceneEdge, page: Page) -> str:
    """The arm in large letters, the other lines at the middle below it, all aside of the line."""
    size = number(page.emphasis_size)
    cells = [f'<TD><FONT POINT-SIZE="{size}"><B><U>{html(line)}</U></B></FONT></TD>' for line in edge.arms]
    cells += [f'<TD HEIGHT="{UNDERLINE_GAP}"></TD>'] * bool(edge.middle)
    cells += [f"<TD>{strong(html(line), page.bold)}</TD>" for line in edge.middle]
    if page.direction in SIDEWAYS:
        cells.append(f'<TD HEIGHT="{ARM_ASIDE}"></TD>')
    before = "" if page.direction in SIDEWAYS else f'<TD WIDTH="{ARM_ASIDE}"></TD>'
    after = f'<TD WIDTH="{2 * ARM_ASIDE}"></TD>' if edge.source == edge.target else ""
    rows = "".join(f"<TR>{before}{cell}{after}</TR>" for cell in cells)
    return f"<{TABLE.format(0, rows)}>"


def _edge_text(lines: Sequence[str], bold: bool) -> str:
    text = "\n".join(lines)
    return f"<{strong(html(text), bold)}>" if bold else quote_label(text)


def _label_distance(length: int) -> str:
    """Far enough from the end that half the text fits beside the line; in the engine's units of 10 points."""
    needed = 0.3 * length + 0.45
    return f" labeldistance={number(min(needed, FARTHEST_LABEL))}" if needed > LABEL_DISTANCE else ""
