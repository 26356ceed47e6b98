"""From a plan to a scene: words, looks, header and key. The last stage that knows trace, theme and options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from torchlens.base.colors import contrast, fill_colors, text_on
from torchlens.base.text import wrap
from torchlens.base.units import passes_text
from torchlens.plan.graph import MODULE, Plan, PlanBox, PlanEdge, PlanNode, Position
from torchlens.records.trace_data import TraceData
from torchlens.scene.caption import caption_lines
from torchlens.scene.channels import color_channel
from torchlens.scene.header import header_lines
from torchlens.scene.layers import Patch, StyleLayer, merge, setting_layer
from torchlens.scene.legend import key_lines
from torchlens.scene.model import NodeStyle, Page, RootLine, Row, Scene, SceneBox, SceneEdge, SceneNode, TextLine
from torchlens.scene.roles import role_of
from torchlens.scene.rows import RowContext, call_title, tokens_of, write_rows
from torchlens.settings.compose import DrawRequest
from torchlens.settings.theme import Theme

DIRECTIONS = {"bottomup": "BT", "topdown": "TB", "leftright": "LR", "rightleft": "RL"}
DEFAULT_DIRECTION = "bottomup"
# A font of this name is written as its family in bold: engines know the widths of families only.
BOLD = "-Bold"
OUTER_WIDTH, INNER_WIDTH = 5.0, 2.0
# Source: WCAG 2.2, contrast (minimum).
CONTRAST = 4.5
# Labels at one end of a node that still have room, and characters of one that always and of one that never has.
CROWD, SHORT, LONG = 2, 4, 9
# Characters of a frame's title that stay beside the arrows into the frame.
TITLE_WIDTH = 14
# Stands between the words of a class name while it is broken; no name holds it.
_JOINT = "\x1f"
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def build(plan: Plan, data: TraceData, request: DrawRequest) -> Scene:
    """Write the figure of a plan. Linear in the plan; reads argument rows, and call sites only where they are shown."""
    theme, options = request.theme, request.options
    roles = [role_of(data, node) for node in plan.nodes]
    channel = color_channel(data, plan.nodes, roles, theme, options)
    nodes = _Dresser(plan, data, request).nodes(roles, channel.patches if channel else (None,) * len(roles))
    boxes = _boxes(plan, data, theme)
    direction = DIRECTIONS[options.direction or DEFAULT_DIRECTION]
    captions = [
        TextLine("caption", line, theme.fonts.secondary, theme.page.secondary)
        for line in caption_lines(plan, channel, request)
    ]
    key = key_lines(channel, nodes, boxes, theme, options.show_legend)
    root: list[RootLine] = [*header_lines(data, request), *captions, *key]
    return Scene(
        title=data.model_class,
        page=_page(request, direction),
        root=tuple(root),
        nodes=tuple(nodes),
        edges=tuple(_edges(plan, direction)),
        boxes=tuple(boxes),
        encoding=channel.encoding if channel else None,
    )


def _page(request: DrawRequest, direction: str) -> Page:
    page, fonts, edge = request.theme.page, request.theme.fonts, request.theme.edges["data"]
    family = page.font.removesuffix(BOLD)
    return Page(
        direction=direction,
        background=page.background,
        font=family,
        bold=family != page.font,
        font_size=fonts.base,
        text=page.text,
        cluster_margin=page.cluster_margin,
        pad=page.pad,
        nodesep=page.nodesep,
        ranksep=page.ranksep,
        tooltips=page.tooltips,
        edge_color=edge.color,
        edge_width=edge.width,
        edge_font_color=edge.font_color,
        edge_font_size=fonts.annotation,
        attributes=dict(request.options.graph_attrs or {}),
    )


# -- nodes
class _Dresser:
    """Gives every node its rows and its merged style; equal looks are merged once."""

    def __init__(self, plan: Plan, data: TraceData, request: DrawRequest) -> None:
        self._data, self._request, self._theme = data, request, request.theme
        self._context = RowContext(data, plan, request.options)
        self._tokens = tokens_of(request.options)
        self._keyword = self._keyword_patch()
        self._plan = plan
        self._look = cache(self._merge)

    def nodes(self, roles: Sequence[str], channel: Sequence[Patch | None]) -> list[SceneNode]:
        return [
            self._node(node, role, patch) for node, role, patch in zip(self._plan.nodes, roles, channel, strict=True)
        ]

    def _node(self, node: PlanNode, role: str, channel: Patch | None) -> SceneNode:
        rows = write_rows(self._context, node, self._tokens)
        peripheries = 2 if node.rectangle and node.hidden_buffers else 1
        style, origin = self._look(role, _shape(node), peripheries, node.from_input, channel)
        members = tuple(self._data.nodes.label[i] for i in node.members)
        return SceneNode(node.name, node.kind, role, rows, style, origin, self._tooltip(node, rows), node.box, members)

    def _merge(
        self, role: str, shape: str, peripheries: int, from_input: bool, channel: Patch | None
    ) -> tuple[NodeStyle, dict[str, str]]:
        look = self._theme.roles[role]
        themed = NodeStyle(
            fill=look.fill,
            stroke=look.stroke,
            stroke_width=look.stroke_width,
            dash=look.dash,
            font_color=look.font_color or self._theme.page.text,
            font_size=self._theme.fonts.base,
        )
        record = NodeStyle(shape=shape, peripheries=peripheries, dash=None if from_input else "dashed")
        patches = [Patch(StyleLayer.THEME, f"theme {self._theme.name}, role {role}", themed)]
        patches.append(Patch(StyleLayer.THEME, "what the node is", record))
        patches += [patch for patch in (self._keyword, channel) if patch is not None]
        style, origin = merge(patches)
        if style.fill and style.font_color:
            readable = _readable(style.fill, style.font_color)
            if readable != style.font_color:
                style, origin = replace(style, font_color=readable), {**origin, "font_color": "contrast with the fill"}
        return style, dict(origin)

    def _keyword_patch(self) -> Patch | None:
        size = self._request.options.font_size
        if size is None:
            return None
        label = self._request.origin["font_size"]
        return Patch(setting_layer(label), f"font_size from {label}", NodeStyle(font_size=float(size)))

    def _tooltip(self, node: PlanNode, rows: Sequence[Row]) -> str:
        """Where the node ran and what its module keeps unseen; empty where the theme wants none."""
        if not self._theme.page.tooltips:
            return ""
        lines = [rows[0].lines[0] if rows else node.name]
        if node.kind == "op":
            stack = self._data.module_stack(self._data.nodes.call[node.first])
            lines[0] += f" · {self._data.nodes.func[node.first]}"
            lines += [f"in {stack[-1]}"] if stack else []
        if node.hidden_buffers:
            lines.append(f"hidden buffers: {', '.join(self._data.buffers[b].address for b in node.hidden_buffers)}")
        return "\n".join(lines)


def _readable(fill: str, preferred: str) -> str:
    """The preferred text colour or its substitute; pure black on the few middle fills where neither reads well."""
    text = text_on(fill, preferred)
    worst = min(contrast(text, color) for color in fill_colors(fill))
    return text if worst >= CONTRAST else text_on(fill, "#000000")


def _shape(node: PlanNode) -> str:
    if node.kind == MODULE:
        return "box3d"
    if node.kind == "buffer":
        return "cylinder"
    return "box" if node.rectangle else "oval"


# -- arrows
def _edges(plan: Plan, direction: str) -> list[SceneEdge]:
    """All arrows with their labels, which stand in the middle where an end has no room for them."""
    edges = [_edge(edge, direction) for edge in plan.edges]
    heads = Counter(edge.target for edge in edges if edge.head)
    tails = Counter(edge.source for edge in edges if edge.tail)
    wide = {edge.target for edge in edges if any(len(line) > LONG for line in edge.head)}
    for k, edge in enumerate(edges):
        both = bool(edge.head and edge.tail)
        if both or edge.target in wide or heads[edge.target] > CROWD:
            edge = edge._replace(middle=edge.head + edge.middle, head=())
        named = any(len(line) > SHORT for line in edge.tail)
        if both or (named and tails[edge.source] > CROWD):
            edge = edge._replace(middle=edge.middle + edge.tail, tail=())
        edges[k] = edge
    return edges


def _edge(edge: PlanEdge, direction: str) -> SceneEdge:
    """An arrow with its labels: argument and `In` at the head, output and `Out` at the tail, the rest in the middle."""
    argument = [_argument_text(edge.position)] if edge.position is not None else []
    output = [f"[{edge.output}]"] if edge.output is not None else []
    into = [f"In {passes_text(edge.in_passes)}"] if edge.in_passes else []
    out = [f"Out {passes_text(edge.out_passes)}"] if edge.out_passes else []
    middle: list[str] = []
    head, tail = argument, output
    if edge.back:
        middle = out + into if direction == "TB" else into + out
    else:
        head, tail = argument + into, output + out
    if edge.crowded and argument:
        middle, head = argument + middle, head[1:]
    if edge.tensors > 1:
        middle.append(f"x{edge.tensors}")
    return SceneEdge(edge.source, edge.target, tuple(middle), tuple(tail), tuple(head), edge.dashed)


def _argument_text(position: Position) -> str:
    """`arg 0`, `arg (0, 1)` for an element of a list, `arg (0, 1-3)` for several, `kwarg weight`, `kwarg out[1]`."""
    first, *rest = position
    if isinstance(first, str):
        return f"kwarg {first}{''.join(f'[{part}]' for part in rest)}"
    return f"arg {first}" if not rest else f"arg ({', '.join(map(str, position))})"


# -- frames
def _boxes(plan: Plan, data: TraceData, theme: Theme) -> list[SceneBox]:
    look = theme.roles["module"]
    deepest = max((box.level for box in plan.boxes), default=0)
    fill = look.fill or theme.page.background
    font_color = _readable(fill, look.font_color or theme.page.text)
    boxes: list[SceneBox] = []
    for box in plan.boxes:
        call = data.calls[box.calls[0]]
        module = data.modules[call.module]
        boxes.append(
            SceneBox(
                name=f"cluster:{module.address or 'self'}:{call.number}",
                title=tuple(wrap(call_title(data, box.calls), TITLE_WIDTH, (".",))),
                lines=class_lines(module.class_name),
                parent=box.parent,
                fill=fill,
                stroke=look.stroke or theme.page.text,
                stroke_width=_frame_width(box, deepest),
                font_color=font_color,
                dashed=not box.from_input,
                tooltip=f"{module.address or 'self'} · {module.class_name}" if theme.page.tooltips else "",
            )
        )
    return boxes


def class_lines(name: str) -> tuple[str, ...]:
    """A class name in brackets, broken between its words so that arrows into the middle of a narrow frame miss it."""
    first, *rest = wrap(_CASE_CHANGE.sub(_JOINT, name), TITLE_WIDTH, (_JOINT,))
    lines = [f"({first}", *rest]
    lines[-1] += ")"
    return tuple(line.replace(_JOINT, "") for line in lines)


def _frame_width(box: PlanBox, deepest: int) -> float:
    """Thick outside, thin at the deepest level on the page."""
    if deepest == 0:
        return OUTER_WIDTH
    return INNER_WIDTH + (OUTER_WIDTH - INNER_WIDTH) * (deepest - box.level) / deepest
