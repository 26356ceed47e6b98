"""The layers of a node's style: one merge, attribute by attribute, that remembers who won; and `explain`.

Settings are folded before (see `settings.compose`); here only what touches a single node's look meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from enum import IntEnum
from typing import NamedTuple

from torchlens.base.errors import error, nearest
from torchlens.plan.graph import STUBS
from torchlens.scene.model import NodeStyle, Scene, SceneNode
from torchlens.settings.compose import UNSET, DrawRequest, SettingLayer


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


# Part of the source of whatever a user's own function set.
HOOK = "node_spec_fn "
# What else of a node such a function may set; `origin` then names it too.
CONTENTS = ("lines", "tooltip", "image")
ATTRIBUTES = tuple(item.name for item in fields(NodeStyle))


class Step(NamedTuple):
    """One layer's word on one attribute. value: what it set."""

    layer: int
    source: str
    value: object


# A name, its value, who set it, and over whom.
_Line = tuple[str, str, str, str]
# Attribute -> every word on it, lowest layer first; the last one counts.
Trail = Mapping[str, tuple[Step, ...]]


def merge(patches: Iterable[Patch]) -> tuple[NodeStyle, Mapping[str, str], Trail]:
    """Fold patches into one style; which source set each attribute; and what it overruled."""
    trail: dict[str, tuple[Step, ...]] = {}
    for patch in sorted(patches, key=lambda patch: patch.layer):
        for name, value in _set_by(patch):
            trail[name] = (*trail.get(name, ()), Step(patch.layer, patch.source, value))
    style = NodeStyle(**{name: steps[-1].value for name, steps in trail.items()})  # type: ignore[arg-type]
    return *_unsplit(style, {name: steps[-1].source for name, steps in trail.items()}), trail


def overlay(drawn: SceneNode, patch: Patch) -> SceneNode:
    """A finished node with one more patch, which takes its place among the layers that are there already."""
    values: dict[str, object] = {}
    trail: dict[str, tuple[Step, ...]] = dict(drawn.trail)
    for name, value in _set_by(patch):
        steps = trail.get(name, ())
        below = sum(step.layer <= patch.layer for step in steps)
        trail[name] = (*steps[:below], Step(patch.layer, patch.source, value), *steps[below:])
        if below == len(steps):
            values[name] = value
    if not values:
        return drawn._replace(trail=trail)
    origin = {**drawn.origin, **dict.fromkeys(values, patch.source)}
    style, origin = _unsplit(replace(drawn.style, **values), origin)  # type: ignore[arg-type]
    return drawn._replace(style=style, origin=origin, trail=trail)


def _unsplit(style: NodeStyle, origin: dict[str, str]) -> tuple[NodeStyle, dict[str, str]]:
    """How a fill is laid out is the word of whoever set the fill: it goes with that fill when another one wins."""
    if style.split is None or origin.get("fill") == origin.get("split"):
        return style, origin
    return replace(style, split=None), {name: source for name, source in origin.items() if name != "split"}


def _set_by(patch: Patch) -> list[tuple[str, object]]:
    return [(name, value) for name in ATTRIBUTES if (value := getattr(patch.style, name)) is not None]


def setting_layer(label: str) -> StyleLayer:
    """Where an option enters by the layer that set it: a theme's or a view's own, else the keywords'."""
    group = label.partition(":")[0]
    return {"theme": StyleLayer.THEME, "view": StyleLayer.VIEW}.get(group, StyleLayer.KEYWORD)


# -- explain
# The layers in the words of their users.
WORDS = {
    StyleLayer.THEME: "theme",
    StyleLayer.VIEW: "view",
    StyleLayer.KEYWORD: "keyword",
    StyleLayer.MARK: "mark",
    StyleLayer.CHANNEL: "channel",
    StyleLayer.VIEW_STYLE: "view's own styling",
    StyleLayer.NODE_SPEC: "node_spec_fn",
}
_STYLE_ORDER = " < ".join(WORDS[layer] for layer in StyleLayer)
# `verb` is what `torchlens.draw` starts from, and no choice of a user.
_SETTINGS = " < ".join(layer.name.lower() for layer in SettingLayer if layer is not SettingLayer.VERB)
_SETTING_ORDER = f"{_SETTINGS} (keyword or command line)"


def explain(scene: Scene, label: str, request: DrawRequest) -> str:
    """Why a node looks as it does: its style with the source of each attribute, then the settings with their layers.

    label: a node's name, an op inside a box, or an address with or without `@`.
    Raises: UnknownNameError[label_not_found] naming the nearest nodes.
    """
    node = _find(scene, label)
    lines = [f"{node.name} ({node.kind}, role {node.role})"]
    if node.name != label and label in node.members:
        lines.append(f"{label} is drawn as part of it")
    lines += ["", *_table("style", [_attribute(node, name) for name in ATTRIBUTES if _is_set(node, name)])]
    changed = [(name, "changed", node.origin[name], "") for name in CONTENTS if name in node.origin]
    lines += ["", *_table("contents", changed)] if changed else []
    lines += [f"the later one wins: {_STYLE_ORDER}", ""]
    named = [("theme", request.theme.name, "", ""), ("view", request.view.name if request.view else "none", "", "")]
    chosen = [_setting(name, request) for name in request.origin if request.origin[name] != UNSET]
    lines += _table("setting", [*named, *chosen])
    lines += [f"the later one wins: {_SETTING_ORDER}"] if chosen else ["all others are at their defaults"]
    return "\n".join(lines)


def _find(scene: Scene, label: str) -> SceneNode:
    by_name = {node.name: node for node in scene.nodes}
    if label in by_name:
        return by_name[label]
    for node in scene.nodes:
        if _bears(node, label):
            return node
    close = nearest(label, by_name)
    fix = f"use {close[0]!r}" if close else "use the name on the node's first row"
    raise error("label_not_found", f"no node of this figure is named {label!r}", fix=fix, label=label)


def _bears(node: SceneNode, label: str) -> bool:
    """Whether a label or an address means this node. A stub is meant by the op that it names, not by where that ran."""
    if node.kind in STUBS:
        return node.name.split(":", 2)[2] == label
    return label in node.members or any("".join(row.lines) == f"@{label.removeprefix('@')}" for row in node.rows)


def _is_set(node: SceneNode, name: str) -> bool:
    return getattr(node.style, name) is not None


def _attribute(node: SceneNode, name: str) -> _Line:
    """An attribute, its value, who set it, and whom that overruled."""
    source = node.origin.get(name, "")
    beaten = [step for step in node.trail.get(name, ()) if step.source != source]
    over = "; ".join(f"{step.source} = {_value(step.value)}" for step in reversed(beaten))
    return name, _value(getattr(node.style, name)), source, over


def _setting(name: str, request: DrawRequest) -> _Line:
    steps = request.trail.get(name, ())
    over = "; ".join(f"{who} = {_value(value)}" for who, value in reversed(steps[:-1]))
    return name, _value(getattr(request.options, name)), request.origin[name], over


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(title: str, lines: Sequence[_Line]) -> list[str]:
    """Lines below a head, in columns; the last one only where something was overruled."""
    over = "over" if any(line[3] for line in lines) else ""
    table = [(title, "value", "set by", over), *lines]
    widths = [max(len(line[k]) for line in table) for k in range(3)]
    return ["  ".join([*map(str.ljust, line[:3], widths), line[3]]).rstrip() for line in table]
