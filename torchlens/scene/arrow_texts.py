"""What may be written on arrows beyond what tells them apart: the shape of the tensor, the place in the result.

Both stand in the middle, on lines of their own, together with the arrow's other labels. Knows nothing of looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import truncate
from torchlens.base.units import shape_text
from torchlens.plan.graph import Plan
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import SceneEdge
from torchlens.settings.options import DrawOptions

# Shapes of one arrow that are written out, and characters of a key.
MOST_SHAPES, KEY_LIMIT = 3, 40


def describe(edges: list[SceneEdge], plan: Plan, data: TraceData, options: DrawOptions) -> list[SceneEdge]:
    """The arrows with the texts that the options ask for."""
    if not (options.show_containers or options.show_edge_shapes):
        return edges
    described: list[SceneEdge] = []
    for edge, planned in zip(edges, plan.edges, strict=True):
        key = _key(edge, plan, data) if options.show_containers else ""
        shapes = edge_shapes(planned.shapes) if options.show_edge_shapes else ""
        described.append(_joined(edge, key, shapes) if key or shapes else edge)
    return described


def _joined(edge: SceneEdge, key: str, shapes: str) -> SceneEdge:
    """All labels as lines of one: beside a label in the middle, a short arrow has no room for those at its ends."""
    lines = [truncate(key, KEY_LIMIT), *edge.head, *edge.middle, *edge.tail, shapes]
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
