"""The finished figure in neutral terms: rows of text, styles, arrows, frames, header and key.

An engine's writer needs nothing else: no theme, no trace, no option reaches it. Texts are plain, not yet escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Row(NamedTuple):
    """One row of a node. token: the name of the row function; lines: its text, wrapped."""

    token: str
    lines: tuple[str, ...]
    bold: bool = False


@dataclass(frozen=True, slots=True)
class NodeStyle:
    """How a node looks. None = not set here. Sizes and widths in points; fill may be two colours, `a:b`."""

    shape: str | None = None
    peripheries: int | None = None
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float | None = None
    dash: str | None = None
    font_color: str | None = None
    font_size: float | None = None


class SceneNode(NamedTuple):
    """One node. name: its stable id; members: the labels it stands for; origin: style attribute -> who set it."""

    name: str
    kind: str
    role: str
    rows: tuple[Row, ...]
    style: NodeStyle
    origin: Mapping[str, str]
    tooltip: str
    box: int | None
    members: tuple[str, ...]


class SceneEdge(NamedTuple):
    """One arrow between two nodes, by index. Its labels are lines of text: at the middle, the tail and the head."""

    source: int
    target: int
    middle: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    dashed: bool = False


class SceneBox(NamedTuple):
    """The frame of an open module. title: bold lines of its label, before the other lines; stroke_width in points."""

    name: str
    title: tuple[str, ...]
    lines: tuple[str, ...]
    parent: int | None
    fill: str
    stroke: str
    stroke_width: float
    font_color: str
    dashed: bool
    tooltip: str


class TextLine(NamedTuple):
    """One line of the root label. kind: header, caption or key."""

    kind: str
    text: str
    size: float
    color: str
    bold: bool = False


class BarLine(NamedTuple):
    """A colour bar between the texts of its two ends. cells: colours from low to high."""

    low: str
    high: str
    cells: tuple[str, ...]
    size: float
    color: str


class SwatchLine(NamedTuple):
    """A sample of a fill and border beside its meaning."""

    text: str
    fill: str
    stroke: str
    stroke_width: float
    size: float
    color: str


RootLine = TextLine | BarLine | SwatchLine


@dataclass(frozen=True, slots=True)
class Page:
    """The page and what every arrow and label shares. direction: BT, TB, LR or RL; margins: cluster in points, the
    rest in inches; bold: all text is; attributes: what the user set for the whole graph, by the engine's own names.
    """

    direction: str
    background: str
    font: str
    bold: bool
    font_size: float
    text: str
    cluster_margin: float
    pad: float
    nodesep: float
    ranksep: float
    tooltips: bool
    edge_color: str
    edge_width: float
    edge_font_color: str
    edge_font_size: float
    attributes: Mapping[str, str | int | float | bool]


class Encoding(NamedTuple):
    """What a colour channel did. domain: smallest and largest value in the source's unit, None without a range;
    encoded and eligible: ops whose value has a colour, and all ops; notes: what was left out and why.
    """

    source: str
    unit: str
    scale: str
    domain: tuple[float, float] | None
    encoded: int
    eligible: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """One figure. title: the model's class; root: header, caption and key from top to bottom."""

    title: str
    page: Page
    root: tuple[RootLine, ...]
    nodes: tuple[SceneNode, ...]
    edges: tuple[SceneEdge, ...]
    boxes: tuple[SceneBox, ...]
    encoding: Encoding | None = None
