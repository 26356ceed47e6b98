"""The layers of a node's style: one merge, attribute by attribute, that remembers who won; and `explain`.

Settings are folded before (see `settings.compose`); here only what touches a single node's look meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import NamedTuple

from torchlens.base.errors import error, nearest
from torchlens.scene.model import NodeStyle, Scene, SceneNode
from torchlens.settings.compose import UNSET, DrawRequest


class StyleLayer(IntEnum):
    """Who may set a node's look, lowest first. A later layer wins; within one the later patch does."""

    THEME = 1
    VIEW = 2
    KEYWORD = 3
    MARK = 4
    CHANNEL = 5
    VIEW_STYLE = 6
    NODE_SPEC = 7


class Patch(NamedTuple):
    """Attributes that one source sets. source: words for `explain`, such as `theme paper, role input`."""

    layer: StyleLayer
    source: str
    style: NodeStyle


ATTRIBUTES = tuple(item.name for item in fields(NodeStyle))


def merge(patches: Iterable[Patch]) -> tuple[NodeStyle, Mapping[str, str]]:
    """Fold patches into one style; also which source set each attribute."""
    values: dict[str, object] = {}
    origin: dict[str, str] = {}
    for patch in sorted(patches, key=lambda patch: patch.layer):
        for name in ATTRIBUTES:
            value = getattr(patch.style, name)
            if value is not None:
                values[name] = value
                origin[name] = patch.source
    return NodeStyle(**values), origin  # type: ignore[arg-type]


def setting_layer(label: str) -> StyleLayer:
    """Where an option enters by the layer that set it: a theme's or a view's own, else the keywords'."""
    group = label.partition(":")[0]
    return {"theme": StyleLayer.THEME, "view": StyleLayer.VIEW}.get(group, StyleLayer.KEYWORD)


# -- explain
def explain(scene: Scene, label: str, request: DrawRequest) -> str:
    """Why a node looks as it does: its style with the source of each attribute, then the settings with their layers.

    label: a node's name, an op inside a box, or an address with or without `@`.
    Raises: UnknownNameError[label_not_found] naming the nearest nodes.
    """
    node = _find(scene, label)
    lines = [f"{node.name} ({node.kind}, role {node.role})"]
    if node.name != label and label in node.members:
        lines.append(f"{label} is drawn as part of it")
    lines += ["", "style"]
    style = [(name, getattr(node.style, name), node.origin.get(name, "")) for name in ATTRIBUTES]
    lines += _columns([(name, _value(value), source) for name, value, source in style if value is not None])
    lines += ["", "settings"]
    lines += _columns([_setting(name, request) for name in request.origin if request.origin[name] != UNSET])
    if lines[-1] == "settings":
        lines.append("  all at their defaults")
    return "\n".join(lines)


def _find(scene: Scene, label: str) -> SceneNode:
    wanted = label.removeprefix("@")
    by_name = {node.name: node for node in scene.nodes}
    if label in by_name:
        return by_name[label]
    for node in scene.nodes:
        address = next((row.lines[0] for row in node.rows if row.lines[0] == f"@{wanted}"), None)
        if label in node.members or address is not None:
            return node
    close = nearest(label, by_name)
    fix = f"use {close[0]!r}" if close else "use the name on the node's first row"
    raise error("label_not_found", f"no node of this figure is named {label!r}", fix=fix, label=label)


def _setting(name: str, request: DrawRequest) -> tuple[str, str, str]:
    steps = request.trail.get(name, ())
    beaten = ", ".join(f"{who}={_value(value)}" for who, value in reversed(steps[:-1]))
    source = request.origin[name] + (f" over {beaten}" if beaten else "")
    return name, _value(getattr(request.options, name)), source


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(2)]
    return [f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {source}".rstrip() for name, value, source in rows]
