"""Colour by a value: source -> scale -> one style patch per node. Changes how a figure looks, not what it holds.

While it is on, the fill belongs to the scale: weights lose their fill, inputs and outputs keep theirs as a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlens.base.colors import Ramp
from torchlens.base.registry import Registry
from torchlens.plan.graph import MODULE, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.layers import Patch, StyleLayer
from torchlens.scene.model import Encoding, NodeStyle
from torchlens.scene.values import SOURCES, ValueSource, value_of
from torchlens.settings.options import DrawOptions
from torchlens.settings.theme import Theme

RING_WIDTH = 3.0
RAMP = "sequential"

Scale = Callable[[Sequence[float]], Callable[[float], float]]
SCALES: Registry[Scale] = Registry("colour scale", code="encoding_scale_invalid")


@SCALES.add("linear")
def linear(values: Sequence[float]) -> Callable[[float], float]:
    """Smallest value to 0, largest to 1, in proportion between."""
    low, high = min(values), max(values)
    return lambda value: (value - low) / (high - low)


@SCALES.add("rank")
def rank(values: Sequence[float]) -> Callable[[float], float]:
    """Place among the distinct values, in equal steps from 0 to 1; equal values share a place."""
    distinct = sorted(set(values))
    place = {value: k / (len(distinct) - 1) for k, value in enumerate(distinct)}
    return place.__getitem__


@dataclass(frozen=True, slots=True)
class Channel:
    """A colour channel that is on. patches: per node, None where it changes nothing; active: whether there is a range
    of values to colour; neutral, blank: whether a box, an op is left without a colour; rings: roles that are shown as
    one.
    """

    source: ValueSource
    encoding: Encoding
    ramp: Ramp
    patches: tuple[Patch | None, ...]
    active: bool
    neutral: bool
    blank: bool
    rings: tuple[str, ...]


def color_channel(
    data: TraceData, nodes: Sequence[PlanNode], roles: Sequence[str], theme: Theme, options: DrawOptions
) -> Channel | None:
    """The colour channel of a drawing, None without `color_by=`."""
    if options.color_by is None:
        return None
    source = SOURCES.get(options.color_by)
    values = [value_of(source, node, data) for node in nodes]
    known = [float(value) for value in values if value is not None]
    active = len(set(known)) > 1
    ramp = Ramp(theme.ramps[RAMP])
    encoding = _encoding(data, nodes, values, source, options.color_scale, known)
    if not active:
        return Channel(source, encoding, ramp, (None,) * len(nodes), False, False, False, ())
    place = SCALES.get(options.color_scale)(known)
    fills = {value: ramp.at(place(value)) for value in dict.fromkeys(known)}
    paint = _Painter(theme, f"color_by {source.name}")
    patches = tuple(
        paint.patch(node, role, None if value is None else fills[float(value)])
        for node, role, value in zip(nodes, roles, values, strict=True)
    )
    neutral = any(node.kind == MODULE and value is None for node, value in zip(nodes, values, strict=True))
    blank = any(node.kind == "op" and value is None for node, value in zip(nodes, values, strict=True))
    rings = tuple(kind for kind in ("input", "output") if any(node.kind == kind for node in nodes))
    return Channel(source, encoding, ramp, patches, True, neutral, blank, rings)


def _encoding(
    data: TraceData,
    nodes: Sequence[PlanNode],
    values: Sequence[float | None],
    source: ValueSource,
    scale: str,
    known: Sequence[float],
) -> Encoding:
    """What is encoded, counted in ops: those of coloured nodes among all ops of the trace."""
    active = len(set(known)) > 1
    encoded = 0
    boxes: list[bool] = []
    missing = 0
    for node, value in zip(nodes, values, strict=True):
        ops = sum(data.nodes.kind[i] == "op" for i in node.members)
        encoded += ops if value is not None and active else 0
        if node.kind == MODULE:
            boxes.append(value is not None)
        elif node.kind == "op" and value is None:
            missing += 1
    notes: list[str] = []
    if any(boxes):
        notes.append("module boxes: sum over member ops")
    if not all(boxes):
        notes.append(f"module boxes unencoded: an op inside has no {source.name}")
    if missing:
        notes.append(f"{missing} nodes have no {source.name}")
    if known and not active:
        notes.append("all values are equal: nothing is coloured")
    domain = (min(known), max(known)) if known else None
    return Encoding(source.name, source.unit, scale, domain, encoded, len(data.op_indexes), tuple(notes))


class _Painter:
    """Makes the patches of one channel, each look once."""

    def __init__(self, theme: Theme, source: str) -> None:
        self._theme, self._source = theme, source
        self._known: dict[tuple[str, str | None], Patch] = {}

    def patch(self, node: PlanNode, role: str, fill: str | None) -> Patch | None:
        if node.kind in ("buffer", "constant"):
            return None
        kind = node.kind if node.kind in ("input", "output", MODULE) else "op"
        known = self._known.get((kind, fill))
        if known is None:
            known = self._known[kind, fill] = Patch(StyleLayer.CHANNEL, self._source, self._style(kind, fill))
        return known

    def _style(self, kind: str, fill: str | None) -> NodeStyle:
        roles = self._theme.roles
        if kind in ("input", "output"):
            return NodeStyle(
                fill=fill or roles["op"].fill, stroke=roles[kind].ring or roles[kind].fill, stroke_width=RING_WIDTH
            )
        if fill is None:
            fill = roles["neutral" if kind == MODULE else "op"].fill
        return NodeStyle(fill=fill)
