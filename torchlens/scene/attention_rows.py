"""The row about attention: heads and sizes, the part that each linear plays, where the softmax is; and the ops that are
outlined for it. Written from recorded shapes, arguments and addresses; where these do not tell, nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchlens.ops.attention import FUNCTIONS, FUSED, SOFTMAX, is_attention, role_of
from torchlens.plan.graph import PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.layers import Patch, StyleLayer, overlay
from torchlens.scene.model import NodeStyle, SceneNode
from torchlens.scene.row_table import ROWS, RowContext

ATTENTION = "attention"
_LINEARS = ("linear", "addmm", "conv1d")
# The look of `node_style="attention"`: where the tokens are mixed.
OUTLINE = Patch(StyleLayer.VIEW_STYLE, "node_style attention", NodeStyle(stroke_width=3.0))
KEY = "thick border: attention mixes the tokens here"


@ROWS.add(ATTENTION)
def attention_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """`heads=12 embed=768 head_dim=64`, `(role=query)`, `(attn-softmax)`."""
    return attention_lines(context.data, node.members) if node.kind == "op" else ()


def attention_lines(data: TraceData, members: Sequence[int]) -> list[str]:
    """What there is to say about an op, given by its passes; of what they differ in, nothing."""
    func = data.nodes.func[members[0]]
    if func in FUNCTIONS:
        texts = {tuple(_heads(data, i)) for i in members}
        return list(texts.pop()) if len(texts) == 1 else []
    if func in _LINEARS and _in_attention(data, members[0]):
        role = role_of(_innermost(data, members[0]))
        return [f"(role={role})"] if role else []
    return ["(attn-softmax)"] if is_mixing(data, members) else []


def is_mixing(data: TraceData, members: Sequence[int]) -> bool:
    """Whether an op is attention itself, or the softmax at its heart."""
    func = data.nodes.func[members[0]]
    if func != SOFTMAX:
        return func in FUNCTIONS
    return _in_attention(data, members[0]) and all(_is_over_last_dim(data, i) for i in members)


def outlined(data: TraceData, node: PlanNode, drawn: SceneNode) -> SceneNode:
    """A node with its outline, if it is where tokens are mixed."""
    return overlay(drawn, OUTLINE) if node.kind == "op" and is_mixing(data, node.members) else drawn


def key_of(nodes: Iterable[SceneNode]) -> list[str]:
    """The line of the key about outlines, if a node has one."""
    return [KEY] if any(node.origin.get("stroke_width") == OUTLINE.source for node in nodes) else []


def _heads(data: TraceData, node: int) -> list[str]:
    """Sizes of one call."""
    config, shape = dict(data.nodes.config[node]), _input_shape(data, node)
    if data.nodes.func[node] == FUSED:
        if shape is None or len(shape) != 4:
            return []
        heads, head_dim = shape[1], shape[3]
        embed: object = heads * head_dim
    else:
        heads = config.get("num_heads")
        embed = config.get("embed_dim_to_check") or config.get("embed_dim") or (shape or (None,))[-1]
        if not isinstance(heads, int) or not isinstance(embed, int) or heads < 1:
            return []
        head_dim = embed // heads
    lines = [f"heads={heads} embed={embed} head_dim={head_dim}"]
    dropout = config.get("dropout_p", 0)
    return [*lines, f"dropout={dropout:g}"] if isinstance(dropout, (int, float)) and dropout else lines


def _input_shape(data: TraceData, node: int) -> tuple[int, ...] | None:
    """Shape of the first argument."""
    for ref in data.nodes.parents[node]:
        if ref.position == (0,) and not ref.late:
            return data.nodes.outs[ref.node][ref.output].shape
    return None


def _is_over_last_dim(data: TraceData, node: int) -> bool:
    outs = data.nodes.outs[node]
    rank = len((outs[0].shape if outs else None) or ())
    return dict(data.nodes.config[node]).get("dim") in (-1, rank - 1)


def _in_attention(data: TraceData, node: int) -> bool:
    """Whether a module around an op is attention by its class or its name."""
    for call in data.call_chain(data.nodes.call[node])[1:]:
        module = data.modules[data.calls[call].module]
        if is_attention(module.address, module.class_name):
            return True
    return False


def _innermost(data: TraceData, node: int) -> str:
    return data.modules[data.calls[data.nodes.call[node]].module].address
