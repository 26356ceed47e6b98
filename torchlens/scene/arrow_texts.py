"""What may be written on arrows beyond what tells them apart: how many ops are hidden on the way, the shape of the
tensor, the place in the result.

All stand in the middle, on lines of their own, together with the arrow's other labels. Knows nothing of looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import truncate
from torchlens.base.units import shape_text
from torchlens.plan.graph import Plan, PlanEdge
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import SceneEdge
from torchlens.settings.options import DrawOptions

# What the key says of an arrow around hidden ops.
AROUND = "dashed arrow: leads over operations that are not drawn"
# Shapes of one arrow that are written out, and characters of a key.
MOST_SHAPES, KEY_LIMIT = 3, 40


def describe(edges: list[SceneEdge], plan: Plan, data: TraceData, options: DrawOptions) -> list[SceneEdge]:
    """The arrows with the texts that the options ask for, and what arrows around hidden ops say of these."""
    if not (options.show_containers or options.show_edge_shapes or plan.left_out):
        return edges
    described: list[SceneEdge] = []
    for edge, planned in zip(edges, plan.edges, strict=True):
        key = _key(edge, plan, data) if options.show_containers else ""
        over = f"via {planned.over} hidden" if planned.over else ""
        shapes = _way(planned) if options.show_edge_shapes else ""
        described.append(_joined(edge, key, over, shapes) if key or over or shapes else edge)
    return described


def _way(edge: PlanEdge) -> str:
    """The shapes of an arrow; around hidden ops at its start and, where they differ, at its end: `2x16 -> 2x4x4`."""
    start, end = edge_shapes(edge.shapes), edge_shapes(edge.arriving)
    return start if not end or end == start else f"{start} -> {end}"


def _joined(edge: SceneEdge, key: str, over: str, shapes: str) -> SceneEdge:
    """All labels as lines of one: beside a label in the middle, a short arrow has no room for those at its ends."""
    lines = [truncate(key, KEY_LIMIT), *edge.head, *edge.middle, *edge.tail, over, shapes]
    return edge._replace(middle=tuple(line for line in lines if line), head=(), tail=())


def _key(edge: SceneEdge, plan: Plan, data: TraceData) -> str:
    """Where in the result the output behind an arrow stands: `state.0`; empty for a result that is one tensor."""
    target = plan.nodes[edge.target]
    return data.nodes.path[target.first] if target.kind == "output" else ""


def edge_shapes(shapes: Sequence[tuple[int, ...] | None]) -> str:
    """`2x16`; of several tensors each shape once, three at most: `2x16, 4x16, 8x16, +2 more`.

    One dimension reads `(16,)`: a number alone might be anything.
    """
    texts = ["x".join(map(str, shape)) if shape and len(shape) > 1 else shape_text(shape) for shape in shapes]
    more = [f"+{len(texts) - MOST_SHAPES} more"] if len(texts) > MOST_SHAPES else []
    return ", ".join(texts[:MOST_SHAPES] + more)
