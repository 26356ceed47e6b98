"""The finished figure in neutral terms: rows of text, styles, arrows, frames, header and key.

An engine's writer needs nothing else: no theme, no trace, no option reaches it. Texts are plain, not yet escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from torchlens.scene.images import Picture


class Row(NamedTuple):
    """One row of a node. token: the name of the row function; lines: its text, wrapped."""

    token: str
    lines: tuple[str, ...]
    bold: bool = False


@dataclass(frozen=True, slots=True)
class NodeStyle:
    """How a node looks. None = not set here. Sizes and widths in points; fill may be two colours, `a:b`.

    split: the colours of the fill side by side instead of one running into the other, where the shape can be split;
    width, height: inches; fixed_size: true, false or shape; attributes: further ones by the engine's own names, which
    win over all others.
    """

    shape: str | None = None
    peripheries: int | None = None
    fill: str | None = None
    split: bool | None = None
    stroke: str | None = None
    stroke_width: float | None = None
    dash: str | None = None
    font_color: str | None = None
    font_size: float | None = None
    rounded: bool | None = None
    width: float | None = None
    height: float | None = None
    fixed_size: str | None = None
    attributes: tuple[tuple[str, str | int | float | bool], ...] | None = None


class SceneNode(NamedTuple):
    """One node. name: its stable id; members: the labels it stands for; origin: style attribute -> who set it;
    pictures: above its rows; trail: style attribute -> (layer, source, value) of all who set it, lowest first.
    """

    name: str
    kind: str
    role: str
    rows: tuple[Row, ...]
    style: NodeStyle
    origin: Mapping[str, str]
    tooltip: str
    box: int | None
    members: tuple[str, ...]
    pictures: tuple[Picture, ...] = ()
    trail: Mapping[str, tuple[Any, ...]] = MappingProxyType({})


class SceneEdge(NamedTuple):
    """One arrow between two nodes, by index. Its labels are lines of text: at the middle, the tail and the head.

    arms: lines that stand out, above the others at the middle; back: it points against the flow.
    """

    source: int
    target: int
    middle: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    dashed: bool = False
    arms: tuple[str, ...] = ()
    back: bool = False


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
    """A sample of a fill and border beside its meaning. split: as of a node's style; dash: of the border."""

    text: str
    fill: str
    stroke: str
    stroke_width: float
    size: float
    color: str
    split: bool = False
    dash: str = "solid"


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
    emphasis_size: float
    attributes: Mapping[str, str | int | float | bool]


class ChannelState(NamedTuple):
    """What one channel did. source: name of the value; unit: of the domain; scale: how values became places, empty for
    columns; domain: smallest and largest value, None without any; encoded and eligible: ops whose value is shown, and
    all ops; aggregation: how the numbers of boxes and of rolled nodes were made; notes: what was left out and why.
    """

    source: str
    unit: str
    scale: str
    domain: tuple[float, float] | None
    encoded: int
    eligible: int
    notes: tuple[str, ...] = ()
    aggregation: tuple[str, ...] = ()


class Encoding(NamedTuple):
    """What the channels of a drawing did, each None where it is off."""

    color: ChannelState | None = None
    size: ChannelState | None = None
    stack: ChannelState | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """One figure. title: the model's class; root: header, caption and key from top to bottom; columns: nodes that share
    a rank; encoding: None without a channel.
    """

    title: str
    page: Page
    root: tuple[RootLine, ...]
    nodes: tuple[SceneNode, ...]
    edges: tuple[SceneEdge, ...]
    boxes: tuple[SceneBox, ...]
    encoding: Encoding | None = None
    columns: tuple[tuple[int, ...], ...] = ()
