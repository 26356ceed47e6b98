"""Hooks that say more about attention: heads and sizes, the part that each linear plays, where the softmax is.

    trace.draw(node_spec_fn=torchlens.experimental.node_styles.attention_node_mode)

The rows are those of `node_style="attention"`, for figures that want them beside another style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens.scene.node_spec import NodeSpec


def attention_node_mode(record: Any, spec: NodeSpec) -> None:
    """Rows for attention: `heads=12 embed=768 head_dim=64`, `(role=query)`, `(attn-softmax)`."""
    if getattr(record, "kind", "") != "op":
        return
    from torchlens.scene.attention_rows import attention_lines  # a hook is named long before anything is drawn

    passes = getattr(record, "ops", None) or (record,)
    spec.lines += attention_lines(record._trace.data, [op.record.index for op in passes])
