"""The user's own word on a node: `node_spec_fn` and `collapsed_node_spec_fn`, called with a record and a `NodeSpec`.

Only what the callback changed counts as set by it, on the last style layer. What a record is and how a picture is read
is handed in; a failing callback is named together with the node it failed at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn, cast

from torchlens.base.colors import fill_colors, is_color
from torchlens.base.errors import error, fail, first_line
from torchlens.plan.graph import CAPSULES, MODULE, STUBS, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.images import Picture, lay_out
from torchlens.scene.layers import CONTENTS, HOOK, Patch, StyleLayer, overlay
from torchlens.scene.model import NodeStyle, Row, SceneNode
from torchlens.settings.options import DrawOptions

TOKEN = HOOK.strip()
# Their names are how the parts of a figure are found.
_OWN_ATTRIBUTES = {"id": "", "class": "", "label": "set spec.lines", "tooltip": "set spec.tooltip"}
_DASHES = ("solid", "dashed", "dotted", "bold")
_NO_COLORS = ("none", "transparent")
# Attributes of a style by the engine's names.
_COLORS = {"fillcolor": "fill", "fontcolor": "font_color", "color": "stroke"}
_SIZES = {"penwidth": "stroke_width", "fontsize": "font_size", "width": "width", "height": "height"}


@dataclass
class NodeSpec:
    """How one node is about to be drawn; change what you like and return it, or None.

    lines: one text per row, the first one bold; shape, fillcolor, fontcolor, style, color (of the border), penwidth,
    tooltip, fixedsize: as in Graphviz; width, height: inches, the least the node gets; image: a path or a PIL image,
    drawn above the text, None for no picture; extra_attrs: further Graphviz attributes, which win over everything.
    """

    lines: list[str] = field(default_factory=list[str])
    shape: str = "oval"
    fillcolor: str | None = None
    fontcolor: str | None = None
    style: str = "filled,solid"
    color: str | None = None
    penwidth: float = 1.0
    tooltip: str = ""
    image: object = None
    width: float | None = None
    height: float | None = None
    fixedsize: bool | str | None = None
    extra_attrs: dict[str, str | int | float | bool] = field(default_factory=dict[str, "str | int | float | bool"])

    def replace(self, **changes: Any) -> NodeSpec:
        """A copy with these fields changed. Raises TypeError for a name that is no field."""
        return replace(self, **changes)


Hook = Callable[[Any, NodeSpec], "NodeSpec | None"]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What calling a hook needs from above: the record that it is told about, and the PNG of an image it sets."""

    record_of: Callable[[PlanNode], object]
    png_of: Callable[[object], bytes]


def has_hooks(options: DrawOptions) -> bool:
    """Whether a drawing calls a function of the user."""
    return options.node_spec_fn is not None or options.collapsed_node_spec_fn is not None


def plain_callbacks(data: TraceData, *, rolled: bool) -> Callbacks:
    """Callbacks for a trace that has no views: records as they are stored, and images as the bytes of a PNG."""

    def record_of(node: PlanNode) -> object:
        if node.kind == MODULE:
            return data.modules[data.calls[node.calls[0]].module]
        return data.layers[data.nodes.layer[node.first]] if rolled and node.kind == "op" else data.record(node.first)

    def png_of(image: object) -> bytes:
        return image if isinstance(image, bytes) else b""

    return Callbacks(record_of, png_of)


class SpecWriter:
    """Calls the hooks of a drawing on its nodes."""

    def __init__(
        self, options: DrawOptions, callbacks: Callbacks, readable: Callable[[str, str], str], text: str
    ) -> None:
        """readable: the text colour for a fill and a preferred colour; text: the colour preferred."""
        self._plain, self._collapsed = options.node_spec_fn, options.collapsed_node_spec_fn
        self._callbacks, self._readable, self._text = callbacks, readable, text

    def apply(self, node: PlanNode, drawn: SceneNode) -> SceneNode:
        """The node as its hook leaves it; boxes have a hook of their own, stubs and nodes for several things none."""
        option, hook = (TOKEN, self._plain) if node.kind != MODULE else ("collapsed_node_spec_fn", self._collapsed)
        if hook is None or node.kind in (*STUBS, *CAPSULES):
            return drawn
        who = _Who(f"{option} {name_of(hook)}", drawn.name)
        before, given = _spec(drawn), _spec(drawn)
        after = _call(hook, self._callbacks.record_of(node), given, who)
        return self._changed(drawn, before, after, who)

    def _changed(self, drawn: SceneNode, before: NodeSpec, after: NodeSpec, who: _Who) -> SceneNode:
        changed = {item.name for item in fields(NodeSpec) if not _same(getattr(before, item.name), after, item.name)}
        changes = _Reader(after, who).style(changed)
        pictures = drawn.pictures
        if "image" in changed:
            pictures = () if after.image is None else self._pictures(after.image, who)
            if "shape" not in changed and pictures:
                changes |= {"shape": "box", "rounded": True}
        patch = Patch(StyleLayer.NODE_SPEC, who.callback, NodeStyle(**changes))
        drawn = overlay(drawn, patch)
        style, origin = drawn.style, drawn.origin
        if "fill" in changes and "font_color" not in changes and style.fill and is_color(fill_colors(style.fill)[0]):
            readable = self._readable(style.fill, self._text)
            if readable != style.font_color:
                style, origin = replace(style, font_color=readable), {**origin, "font_color": "contrast with the fill"}
        rows = _rows(after.lines, drawn.rows, who) if "lines" in changed else drawn.rows
        tooltip = _text(after.tooltip or "", "tooltip", who)
        origin = {**origin, **{name: who.callback for name in CONTENTS if name in changed}}
        return drawn._replace(rows=rows, style=style, origin=origin, tooltip=tooltip, pictures=pictures)

    def _pictures(self, image: object, who: _Who) -> tuple[Picture, ...]:
        try:
            return lay_out([self._callbacks.png_of(image)])
        except Exception as cause:
            raise error("node_spec_invalid", f"{who}: {first_line(cause)}", fix="give a path or a PIL image") from cause


@dataclass(frozen=True, slots=True)
class _Who:
    """Which callback speaks about which node."""

    callback: str
    node: str

    def __str__(self) -> str:
        return f"{self.callback} at {self.node}"


def name_of(hook: object) -> str:
    """The name of a callable as its author knows it."""
    return str(getattr(hook, "__qualname__", "") or getattr(hook, "__name__", "") or type(hook).__name__)


def _call(hook: Hook, record: object, spec: NodeSpec, who: _Who) -> NodeSpec:
    try:
        made = hook(record, spec)
    except Exception as cause:
        what = f"{who} raised {type(cause).__name__}: {first_line(cause)}"
        raise error("node_spec_failed", what, callback=who.callback, node=who.node) from cause
    if made is None:
        return spec
    if not isinstance(cast("object", made), NodeSpec):
        _refuse(who, f"it returned {type(made).__name__}, not a NodeSpec or None")
    return made


def _spec(node: SceneNode) -> NodeSpec:
    style = node.style
    parts = ["filled", *(["rounded"] if style.rounded else []), style.dash or "solid"]
    return NodeSpec(
        lines=["\n".join(row.lines) for row in node.rows],
        shape=style.shape or "oval",
        fillcolor=style.fill,
        fontcolor=style.font_color,
        style=",".join(parts),
        color=style.stroke,
        penwidth=1.0 if style.stroke_width is None else style.stroke_width,
        tooltip=node.tooltip,
        image=node.pictures or None,
        width=style.width,
        height=style.height,
        fixedsize=style.fixed_size,
        extra_attrs=dict(style.attributes or ()),
    )


def _same(old: object, after: NodeSpec, name: str) -> bool:
    new = getattr(after, name)
    if new is old:
        return True
    # An image may be an array, whose comparison is no bool.
    return name != "image" and type(new) is type(old) and bool(new == old)


def _rows(lines: object, old: Sequence[Row], who: _Who) -> tuple[Row, ...]:
    """Rows of the new lines; a line that was there before keeps its own row."""
    if isinstance(lines, str) or not isinstance(lines, Sequence):
        _refuse(who, f"lines is {type(lines).__name__}, not a list of text")
    known = {"\n".join(row.lines): row for row in reversed(old)}
    rows: list[Row] = []
    for k, line in enumerate(cast("Sequence[object]", lines)):
        text = _text(line, "a line", who)
        row = known.get(text)
        rows.append(row._replace(bold=row.bold or k == 0) if row else Row(TOKEN, tuple(text.split("\n")), k == 0))
    return tuple(rows)


def _text(value: object, name: str, who: _Who) -> str:
    if not isinstance(value, str):
        _refuse(who, f"{name} is {type(value).__name__}, not text")
    return value


def _refuse(who: _Who, why: str, fix: str = "") -> NoReturn:
    fail("node_spec_invalid", f"{who}: {why}", fix=fix, callback=who.callback, node=who.node)


def _named_by_engine(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a style that are set by their engine's names, so that what explains a figure knows them too."""
    found: dict[str, Any] = {}
    for name, value in extra.items():
        parts = fill_colors(str(value))
        if name in _COLORS and parts and all(map(is_color, parts)):
            found[_COLORS[name]] = str(value)
        elif name in _SIZES and re.fullmatch(r"\d+(\.\d+)?", str(value)):
            found[_SIZES[name]] = float(value)
    return found


class _Reader:
    """Reads the changed fields of a spec as attributes of a `NodeStyle`."""

    def __init__(self, spec: NodeSpec, who: _Who) -> None:
        self._spec, self._who = spec, who

    def style(self, changed: set[str]) -> dict[str, Any]:
        """Attributes by name, for the fields that were changed."""
        spec, found = self._spec, dict[str, Any]()
        if "shape" in changed:
            found["shape"] = _text(spec.shape, "shape", self._who)
        for name, attribute in _COLORS.items():
            if name in changed:
                found[attribute] = self._color(name)
        for name, attribute in (("penwidth", "stroke_width"), ("width", "width"), ("height", "height")):
            if name in changed:
                found[attribute] = self._number(name)
        if "fixedsize" in changed:
            found["fixed_size"] = self._fixed_size()
        extra = self._extra() if "extra_attrs" in changed else dict(spec.extra_attrs)
        if "style" in changed:
            found |= self._line_style(extra)
        if peripheries := str(extra.get("peripheries", "")):
            if not peripheries.isdecimal():
                _refuse(self._who, f"peripheries is {peripheries!r}, not a whole number")
            found["peripheries"] = int(peripheries)
        if "extra_attrs" in changed:
            found |= _named_by_engine(extra)
        if extra:
            found["attributes"] = tuple(extra.items())
        return found

    def _color(self, name: str) -> str:
        value = getattr(self._spec, name)
        if value is None or value == "":
            return "none"
        text = _text(value, name, self._who)
        parts = fill_colors(text) if name == "fillcolor" else (text,)
        if text not in _NO_COLORS and not (parts and all(map(is_color, parts))):
            _refuse(self._who, f"{name}={text!r} is not a colour", "write #rrggbb or a CSS colour name")
        return text

    def _number(self, name: str) -> float | None:
        value = getattr(self._spec, name)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not good or value < 0 or (value == 0 and name != "penwidth"):
            _refuse(self._who, f"{name}={value!r} is not a size", "give a positive number")
        return float(value)

    def _fixed_size(self) -> str:
        value = self._spec.fixedsize
        if value not in (True, False, None, "true", "false", "shape"):
            _refuse(self._who, f"fixedsize={value!r} is not allowed", 'use True, False or "shape"')
        return str(value or False).lower()

    def _line_style(self, extra: dict[str, Any]) -> dict[str, Any]:
        """A style in Graphviz's words: known ones as attributes of their own, any others just as they are."""
        text = _text(self._spec.style or "", "style", self._who)
        parts = [part.strip() for part in text.split(",") if part.strip()]
        dashes = [part for part in parts if part in _DASHES]
        found: dict[str, Any] = {"dash": dashes[0] if dashes else "solid", "rounded": "rounded" in parts}
        if "filled" not in parts or len(dashes) > 1 or set(parts) - {"filled", "rounded", *_DASHES}:
            extra["style"] = text
        return found

    def _extra(self) -> dict[str, Any]:
        extra = cast("object", self._spec.extra_attrs)
        if not isinstance(extra, Mapping):
            _refuse(self._who, f"extra_attrs is {type(extra).__name__}, not a mapping")
        for name, value in cast("Mapping[object, object]", extra).items():
            if not isinstance(name, str) or not isinstance(value, (str, int, float, bool)):
                _refuse(self._who, f"extra_attrs[{name!r}]={value!r} is no Graphviz attribute")
            if name in _OWN_ATTRIBUTES:
                _refuse(self._who, f"extra_attrs sets {name!r}", _OWN_ATTRIBUTES[name] or "leave it out")
        return dict(cast("Mapping[str, Any]", extra))
