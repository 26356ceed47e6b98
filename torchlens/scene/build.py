"""From a plan to a scene: words, looks, header and key. The last stage that knows trace, theme and options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from torchlens.base.colors import contrast, fill_colors, text_on
from torchlens.base.text import truncate, wrap
from torchlens.plan.graph import CLOSED, COPY, FOLD, MODULE, OUTPUTS, SEGMENT, Plan, PlanBox, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene import attention_rows, debug_caption
from torchlens.scene.arrow_texts import AROUND, describe
from torchlens.scene.arrows import make_arrows
from torchlens.scene.caption import About, caption_lines
from torchlens.scene.channels import Channel, color_channel
from torchlens.scene.encodings import RecordOf, Sources
from torchlens.scene.header import header_lines
from torchlens.scene.layers import Patch, StyleLayer, Trail, merge, setting_layer
from torchlens.scene.legend import key_lines
from torchlens.scene.marks import Readings, mark_of
from torchlens.scene.model import Encoding, NodeStyle, Page, RootLine, Row, Scene, SceneBox, SceneNode, TextLine
from torchlens.scene.node_spec import Callbacks, SpecWriter, has_hooks, plain_callbacks
from torchlens.scene.notes import with_pictures
from torchlens.scene.roles import CAPSULE_ROLES, roles_of
from torchlens.scene.rows import BRANCH, RowContext, call_title, tokens_of, write_rows
from torchlens.scene.sizes import SizeChannel, resize, size_channel
from torchlens.scene.stack import Stack, stack
from torchlens.settings.compose import DrawRequest
from torchlens.settings.evidence import lacking
from torchlens.settings.theme import Theme

# The file whose caption lines are registered by being imported.
_CAPTIONS = (debug_caption,)
DIRECTIONS = {"bottomup": "BT", "topdown": "TB", "leftright": "LR", "rightleft": "RL"}
DEFAULT_DIRECTION = "bottomup"
# The caption line of a view that says what its columns are, and inches between columns with frames: arrows along a
# column would run on the frames' lines.
COLUMNS, COLUMN_GAP = "columns", 0.9
OUTER_WIDTH, INNER_WIDTH = 5.0, 2.0
# Source: WCAG 2.2, contrast (minimum).
CONTRAST = 4.5
# Contrast below which a line cannot be meant.
FAINTEST = 1.2
# Characters of a frame's title that stay beside the arrows into the frame.
TITLE_WIDTH = 14
# Characters of an address or a class on a frame.
FRAME_LIMIT = 120
# Stands between the words of a class name while it is broken; no name holds it.
_JOINT = "\x1f"
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def build(
    plan: Plan,
    data: TraceData,
    request: DrawRequest,
    callbacks: Callbacks | None = None,
    record_of: RecordOf | None = None,
) -> Scene:
    """Write the figure of a plan. Linear in the plan; reads argument rows, and call sites only where they are shown.

    callbacks, record_of: what the user's hooks and the functions of channels are told about a node, by default its
    plain record.
    """
    theme, options = request.theme, request.options
    roles = roles_of(data, plan.nodes)
    sources = Sources(data, record_of)
    channel = color_channel(data, plan, roles, theme, options, sources)
    sizes, columns = size_channel(data, plan, options, sources), stack(data, plan, options, sources)
    dressed = _Dresser(plan, data, request).nodes(roles, channel.patches if channel else (None,) * len(roles))
    nodes = [with_pictures(data, node, drawn) for node, drawn in zip(plan.nodes, dressed, strict=True)]
    if options.node_style == attention_rows.ATTENTION:
        nodes = [attention_rows.outlined(data, *pair) for pair in zip(plan.nodes, nodes, strict=True)]
    if has_hooks(options):
        told = callbacks or plain_callbacks(data, rolled=options.rolled)
        writer = SpecWriter(options, told, _readable, theme.page.text)
        nodes = [writer.apply(node, drawn) for node, drawn in zip(plan.nodes, nodes, strict=True)]
    direction = DIRECTIONS[options.direction or DEFAULT_DIRECTION]
    page = _page(request, direction)
    if columns and plan.boxes:
        page = replace(page, ranksep=max(page.ranksep, COLUMN_GAP))
    nodes = resize(sizes, nodes, page) if sizes else nodes
    boxes = _boxes(plan, data, theme)
    notes = list(dict.fromkeys([*request.left_out, *(lack.what for lack in lacking(data, options))]))
    if columns and (request.view is None or COLUMNS not in request.view.caption):
        notes.insert(0, columns.caption)
    captions = [
        TextLine("caption", line, theme.fonts.secondary, theme.page.secondary)
        for line in (*caption_lines(About(data, plan, request, channel, sizes, columns)), *notes)
    ]
    further = [part.key for part in (sizes, columns) if part]
    if options.show_legend or plan.focus:
        further += attention_rows.key_of(nodes)
    if options.show_legend and any(edge.over for edge in plan.edges):
        further.append(AROUND)
    key = key_lines(channel, nodes, boxes, theme, options.show_legend, further)
    written: list[RootLine] = [*header_lines(data, request, plan), *captions, *key]
    root = [line._replace(color=_readable(page.background, line.color)) for line in written]
    return Scene(
        title=data.model_class,
        page=page,
        root=tuple(root),
        nodes=tuple(nodes),
        edges=tuple(describe(make_arrows(plan, direction), plan, data, options)),
        boxes=tuple(boxes),
        encoding=_encoding(channel, sizes, columns),
        columns=columns.columns if columns else (),
    )


def _encoding(channel: Channel | None, sizes: SizeChannel | None, columns: Stack | None) -> Encoding | None:
    states = [part.encoding if part else None for part in (channel, sizes, columns)]
    return Encoding(*states) if any(states) else None


def _page(request: DrawRequest, direction: str) -> Page:
    page, fonts, edge = request.theme.page, request.theme.fonts, request.theme.edges["data"]
    return Page(
        direction=direction,
        background=page.background,
        font=page.family,
        bold=page.bold,
        font_size=fonts.base,
        text=_readable(page.background, page.text),
        cluster_margin=page.cluster_margin,
        pad=page.pad,
        nodesep=page.nodesep,
        ranksep=page.ranksep,
        tooltips=page.tooltips,
        edge_color=_visible(edge.color, request.theme),
        edge_width=edge.width,
        edge_font_color=_readable(_grounds(request.theme), edge.font_color),
        edge_font_size=fonts.annotation,
        emphasis_size=fonts.emphasis,
        attributes=dict(request.options.graph_attrs or {}),
    )


# -- nodes
class _Dresser:
    """Gives every node its rows and its merged style; equal looks are merged once."""

    def __init__(self, plan: Plan, data: TraceData, request: DrawRequest) -> None:
        self._data, self._request, self._theme = data, request, request.theme
        self._context = RowContext(data, plan, request.options)
        self._tokens = tokens_of(request.options)
        self._settings = self._setting_patches()
        self._plan = plan
        self._look = cache(self._merge)
        self._readings = Readings.of(self._context) if request.options.show_nonfinite else None

    def nodes(self, roles: Sequence[str], channel: Sequence[Patch | None]) -> list[SceneNode]:
        return [
            self._node(node, role, patch) for node, role, patch in zip(self._plan.nodes, roles, channel, strict=True)
        ]

    def _node(self, node: PlanNode, role: str, channel: Patch | None) -> SceneNode:
        rows = write_rows(self._context, node, self._tokens)
        peripheries = 2 if (node.rectangle and node.hidden_buffers) or node.kind == OUTPUTS else 1
        mark = self._mark(node, covered=channel is not None and channel.style.fill is not None)
        style, origin, trail = self._look(role, _shape(node), peripheries, node.from_input, mark, channel)
        if node.kind == COPY:
            style = replace(style, font_size=self._theme.fonts.secondary)
            origin = {**origin, "font_size": "what the node is: a small stub"}
        members = tuple(self._data.nodes.label[i] for i in node.members)
        tooltip = self._tooltip(node, rows)
        return SceneNode(node.name, node.kind, role, rows, style, origin, tooltip, node.box, members, (), trail)

    def _merge(
        self, role: str, shape: str, peripheries: int, from_input: bool, mark: Patch | None, channel: Patch | None
    ) -> tuple[NodeStyle, dict[str, str], Trail]:
        look = self._theme.roles[role]
        themed = NodeStyle(
            fill=look.fill,
            stroke=look.stroke,
            stroke_width=look.stroke_width,
            dash=look.dash,
            font_color=look.font_color or self._theme.page.text,
            font_size=self._theme.fonts.base,
        )
        record = NodeStyle(
            shape=shape,
            peripheries=peripheries,
            dash=None if from_input else "dashed",
            rounded=True if role == CAPSULE_ROLES[SEGMENT] else None,
        )
        patches = [Patch(StyleLayer.THEME, f"theme {self._theme.name}, role {role}", themed)]
        patches.append(Patch(StyleLayer.THEME, "what the node is", record))
        patches += [*self._settings, *(patch for patch in (mark, channel) if patch is not None)]
        style, origin, trail = merge(patches)
        if style.font_color:
            readable = _readable(style.fill or _grounds(self._theme), style.font_color)
            if readable != style.font_color:
                style, origin = replace(style, font_color=readable), {**origin, "font_color": "contrast with the fill"}
        return style, dict(origin), trail

    def _mark(self, node: PlanNode, *, covered: bool) -> Patch | None:
        """The mark of a node. covered: its fill will be a channel's."""
        if self._readings is None:
            return None
        start = None if covered else self._theme.page.text
        return mark_of(self._readings.read(node), _shape(node), start, whole=node.kind not in CLOSED)

    def _setting_patches(self) -> list[Patch]:
        """What options say about a node's look, each layer's word on its place; nothing if the last word is null."""
        if self._request.options.font_size is None:
            return []
        return [
            Patch(setting_layer(label), f"font_size from {label}", NodeStyle(font_size=float(size)))
            for label, size in self._request.trail["font_size"]
            if isinstance(size, int)
        ]

    def _tooltip(self, node: PlanNode, rows: Sequence[Row]) -> str:
        """Where the node ran and what its module keeps unseen; empty where the theme wants none."""
        if not self._theme.page.tooltips:
            return ""
        lines = [next((row.lines[0] for row in rows if row.token != BRANCH), node.name)]
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


def _visible(line: str, theme: Theme) -> str:
    """The colour of an arrow or a frame, or that of text where the page has been given the same colour."""
    page = theme.page.background
    return line if contrast(line, page) >= FAINTEST else _readable(page, theme.page.text)


def _grounds(theme: Theme) -> str:
    """What may lie under a text that has no fill of its own: the page and the frames of modules."""
    page, frame = theme.page.background, theme.roles["module"].fill
    return page if frame in (None, page) else f"{page}:{frame}"


def _shape(node: PlanNode) -> str:
    if node.kind == MODULE:
        return "box3d"
    if node.kind == "buffer":
        return "cylinder"
    if node.kind in (SEGMENT, FOLD):
        return "box" if node.kind == SEGMENT else "plaintext"
    return "box" if node.rectangle else "oval"


# -- frames
def _boxes(plan: Plan, data: TraceData, theme: Theme) -> list[SceneBox]:
    look = theme.roles["module"]
    deepest = max((box.level for box in plan.boxes), default=0)
    fill = look.fill or theme.page.background
    font_color = _readable(fill, look.font_color or theme.page.text)
    boxes: list[SceneBox] = []
    for box in plan.boxes:
        if box.module is None:
            boxes.append(_orphan_box(fill, theme))
            continue
        call = data.calls[box.calls[0]]
        module = data.modules[box.module]
        boxes.append(
            SceneBox(
                name=f"cluster:{module.address or 'self'}:{call.number}",
                title=tuple(wrap(truncate(call_title(data, box.calls), FRAME_LIMIT), TITLE_WIDTH, (".",))),
                lines=class_lines(module.class_name),
                parent=box.parent,
                fill=fill,
                stroke=_visible(look.stroke or theme.page.text, theme),
                stroke_width=_frame_width(box, deepest),
                font_color=font_color,
                dashed=not box.from_input,
                tooltip=f"{module.address or 'self'} · {module.class_name}" if theme.page.tooltips else "",
            )
        )
    return boxes


def _orphan_box(fill: str, theme: Theme) -> SceneBox:
    """The frame of what no input leads to and that leads nowhere."""
    grey = theme.roles["ellipsis"].font_color or theme.page.secondary
    return SceneBox(
        name="cluster:orphans",
        title=("orphans",),
        lines=("no input leads here,", "no result depends on it"),
        parent=None,
        fill=fill,
        stroke=grey,
        stroke_width=INNER_WIDTH,
        font_color=_readable(fill, grey),
        dashed=True,
        tooltip="orphans" if theme.page.tooltips else "",
    )


def class_lines(name: str) -> tuple[str, ...]:
    """A class name in brackets, broken between its words so that arrows into the middle of a narrow frame miss it."""
    first, *rest = wrap(_CASE_CHANGE.sub(_JOINT, truncate(name, FRAME_LIMIT)), TITLE_WIDTH, (_JOINT,))
    lines = [f"({first}", *rest]
    lines[-1] += ")"
    return tuple(line.replace(_JOINT, "") for line in lines)


def _frame_width(box: PlanBox, deepest: int) -> float:
    """Thick outside, thin at the deepest level on the page."""
    if deepest == 0:
        return OUTER_WIDTH
    return INNER_WIDTH + (OUTER_WIDTH - INNER_WIDTH) * (deepest - box.level) / deepest
