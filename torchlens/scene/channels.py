"""Colour by a value: source -> scale -> one style patch per node. Changes how a figure looks, not what it holds.

While it is on, the fill belongs to the scale: weights lose their fill, inputs and outputs keep theirs as a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchlens.base.colors import Ramp
from torchlens.plan.graph import FOLD, OUTPUTS, STUBS, Plan, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.encodings import Sources, account
from torchlens.scene.layers import Patch, StyleLayer
from torchlens.scene.model import ChannelState, NodeStyle
from torchlens.scene.scales import SCALES, on_scale
from torchlens.scene.values import SINGLE, Number, Readings, ValueSource
from torchlens.settings.options import DrawOptions
from torchlens.settings.theme import Theme

RING_WIDTH = 3.0
RAMP = "sequential"
# What has an outline in its role's colour while the fill is the scale's.
_RINGED = {"input": "input", "output": "output", OUTPUTS: "output"}


@dataclass(frozen=True, slots=True)
class Channel:
    """A colour channel that is on. patches: per node, None where it changes nothing; active: whether there is a range
    of values to colour; neutral, blank: whether a box, an op is left without a colour; rings: roles that are shown as
    one.
    """

    source: ValueSource
    encoding: ChannelState
    ramp: Ramp
    patches: tuple[Patch | None, ...]
    active: bool
    neutral: bool
    blank: bool
    rings: tuple[str, ...]


def color_channel(
    data: TraceData, plan: Plan, roles: Sequence[str], theme: Theme, options: DrawOptions, sources: Sources
) -> Channel | None:
    """The colour channel of a drawing, None without `color_by=`."""
    nodes = plan.nodes
    if options.color_by is None:
        return None
    readings = Readings(sources.get("color_by", options.color_by), data)
    source, scale = readings.source, options.color_scale
    values = [readings.value(node) for node in nodes]
    shown = [value if value is not None and on_scale(scale, value) else None for value in values]
    lost = sum(value is not None for value in values) - sum(value is not None for value in shown)
    words = ("are", "them") if lost > 1 else ("is", "it")
    notes = [f"{lost} of the values {words[0]} zero or less: a logarithm has no place for {words[1]}"] if lost else []
    known = [float(value) for value in shown if value is not None]
    active = len(set(known)) > 1
    ramp = Ramp(theme.ramps[RAMP])
    encoding = account(data, plan, readings, scale, shown, notes)
    if not active:
        return Channel(source, encoding, ramp, (None,) * len(nodes), False, False, False, ())
    fills = _fills(known, scale, ramp)
    paint = _Painter(theme, f"color_by {source.name}")
    patches = tuple(
        paint.patch(node, role, None if value is None else fills[float(value)])
        for node, role, value in zip(nodes, roles, shown, strict=True)
    )
    blank = [node.kind for node, value in zip(nodes, shown, strict=True) if value is None]
    rings = tuple(role for role in ("input", "output") if any(_RINGED.get(node.kind) == role for node in nodes))
    return Channel(
        source, encoding, ramp, patches, True, any(kind not in SINGLE for kind in blank), "op" in blank, rings
    )


def _fills(known: Sequence[Number], scale: str, ramp: Ramp) -> dict[float, str]:
    place = SCALES.get(scale)([float(value) for value in known])
    return {value: ramp.at(place(value)) for value in dict.fromkeys(map(float, known))}


class _Painter:
    """Makes the patches of one channel, each look once."""

    def __init__(self, theme: Theme, source: str) -> None:
        self._theme, self._source = theme, source
        self._known: dict[tuple[str, str | None], Patch] = {}

    def patch(self, node: PlanNode, role: str, fill: str | None) -> Patch | None:
        if node.kind in ("buffer", "constant", FOLD):
            return None
        kind = role if node.kind in STUBS else _RINGED.get(node.kind) or ("op" if node.kind in SINGLE else "neutral")
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
        return NodeStyle(fill=fill or roles["neutral" if kind == "neutral" else "op"].fill)
