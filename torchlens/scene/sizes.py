"""Size by a value: the area of a node grows with it, from the room that its own text needs. Text is never scaled.

Nodes whose text needs no more than usual start from the same box, so that their areas compare; any other starts from
the box of its own text and grows by the same factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from torchlens.base.errors import fail
from torchlens.base.units import range_text
from torchlens.plan.graph import Plan
from torchlens.records.trace_data import TraceData
from torchlens.scene.encodings import Sources, account
from torchlens.scene.label_size import natural_size
from torchlens.scene.layers import Patch, StyleLayer, overlay
from torchlens.scene.model import ChannelState, NodeStyle, Page, SceneNode
from torchlens.scene.scales import SIZE_SCALES
from torchlens.scene.values import Number, Readings, ValueSource
from torchlens.settings.options import DrawOptions

# Area of the largest value in areas of the smallest.
CAP, DIMS_CAP = 2.0, 4.0
DIMS = "dims"


@dataclass(frozen=True, slots=True)
class SizeChannel:
    """A size channel that is on. areas: per node its area in base boxes, None where its value says nothing."""

    source: ValueSource
    encoding: ChannelState
    areas: tuple[float | None, ...]

    @property
    def key(self) -> str:
        """`size: output bytes, 15 KB ... 60 KB`."""
        words, domain = f"size: {self.source.quantity}", self.encoding.domain
        if domain is None:
            return f"{words}, no values"
        low, high = range_text(*domain, self.source.unit)
        return f"{words}, {low} ... {high}" if domain[0] < domain[1] else f"{words}, all {high}"


def size_channel(data: TraceData, plan: Plan, options: DrawOptions, sources: Sources) -> SizeChannel | None:
    """The size channel of a drawing, None without `size_by=`.

    Raises: InvalidArgumentError[size_by_rolled_varying, encoding_value_invalid].
    """
    if options.size_by is None:
        return None
    readings = Readings(sources.get("size_by", options.size_by), data)
    values = [readings.value(node) for node in plan.nodes]
    _check(plan, readings, values)
    known = [float(value) for value in values if value is not None]
    encoding = account(data, plan, readings, options.size_scale, values)
    if len(set(known)) < 2:
        return SizeChannel(readings.source, encoding, (None,) * len(values))
    cap = options.size_cap or (DIMS_CAP if options.size_by == DIMS else CAP)
    place = SIZE_SCALES.get(options.size_scale)(known)
    areas = tuple(None if value is None else 1 + (cap - 1) * place(float(value)) for value in values)
    return SizeChannel(readings.source, encoding, areas)


def _check(plan: Plan, readings: Readings, values: Sequence[Number | None]) -> None:
    name = readings.source.name
    for node, value in zip(plan.nodes, values, strict=True):
        if readings.varies(node):
            what = f"{name} differs between the {node.passes} passes of {node.name}, which is one node here"
            fail("size_by_rolled_varying", what, source=name, node=node.name)
        if value is not None and value < 0:
            what = f"{name} of {node.name} is {value:.3g}, and nothing has a negative area"
            fail(
                "encoding_value_invalid",
                what,
                fix="size by a value that is never negative",
                source=name,
                node=node.name,
            )


def resize(channel: SizeChannel, nodes: Sequence[SceneNode], page: Page) -> list[SceneNode]:
    """The nodes with the least sizes of their values, once all their texts are there."""
    sized = [natural_size(node, page) for node, area in zip(nodes, channel.areas, strict=True) if area is not None]
    if not sized:
        return list(nodes)
    usual = median(width for width, _ in sized), median(height for _, height in sized)
    rest = iter(sized)
    source = f"size_by {channel.source.name}"
    made: list[SceneNode] = []
    for node, area in zip(nodes, channel.areas, strict=True):
        if area is None:
            made.append(node)
            continue
        own = next(rest)
        base = own if own[0] > usual[0] or own[1] > usual[1] else usual
        width, height = (round(side * area**0.5 / 72, 3) for side in base)
        # Said, not assumed: these are least sizes, whatever a function of the user sets for all nodes.
        least = NodeStyle(width=width, height=height, fixed_size="false")
        made.append(overlay(node, Patch(StyleLayer.CHANNEL, source, least)))
    return made
