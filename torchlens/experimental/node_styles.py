"""Hooks that say more about attention: heads and sizes, the part that each linear plays, where the softmax is.

    trace.draw(node_spec_fn=torchlens.experimental.node_styles.attention_node_mode)

What is written comes from recorded shapes, arguments and addresses; where they do not tell, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens.scene.node_spec import NodeSpec

_FUSED = "scaled_dot_product_attention"
_MULTI_HEAD = "multi_head_attention_forward"
# The last part of an address -> the part a linear plays inside attention.
_ROLES = {
    "query": ("q", "q_proj", "query", "q_lin", "wq", "to_q", "q_linear", "query_proj"),
    "key": ("k", "k_proj", "key", "k_lin", "wk", "to_k", "k_linear", "key_proj"),
    "value": ("v", "v_proj", "value", "v_lin", "wv", "to_v", "v_linear", "value_proj"),
    "qkv": ("qkv", "qkv_proj", "c_attn", "in_proj", "query_key_value", "wqkv", "to_qkv", "Wqkv"),
    "out": (
        "out",
        "o",
        "o_proj",
        "out_proj",
        "out_lin",
        "proj",
        "c_proj",
        "wo",
        "to_out",
        "dense",
        "output",
        "out_linear",
    ),
}
_ROLE_OF = {part: role for role, parts in _ROLES.items() for part in parts}
_ATTENTION = re.compile(r"(?:^|_)(?:attn|attention|selfattention|mha|sdpa)(?:$|_|\d)", re.IGNORECASE)


def attention_node_mode(record: Any, spec: NodeSpec) -> None:
    """Rows for attention: `heads=12 embed=768 head_dim=64`, `(role=query)`, `(attn-softmax)`."""
    if getattr(record, "kind", "") != "op":
        return
    func = _same(record, "func_name")
    if func in (_FUSED, _MULTI_HEAD):
        spec.lines += _heads(record, func)
    elif func in ("linear", "addmm", "conv1d") and _in_attention(record):
        role = next((_ROLE_OF[part] for part in _parts(record) if part in _ROLE_OF), None)
        spec.lines += [f"(role={role})"] if role else []
    elif func == "softmax" and _in_attention(record) and _over_last_dim(record):
        spec.lines.append("(attn-softmax)")


def _heads(record: Any, func: str) -> list[str]:
    """Sizes of one attention call; those of a rolled layer only if all its passes agree."""
    texts = {tuple(_texts(op, func)) for op in _passes(record)}
    return list(texts.pop()) if len(texts) == 1 else []


def _texts(op: Any, func: str) -> list[str]:
    config = op.func_config
    if func == _FUSED:
        shape = _input_shape(op, 0)
        if shape is None or len(shape) != 4:
            return []
        heads, head_dim = shape[1], shape[3]
        embed = heads * head_dim
    else:
        heads = config.get("num_heads")
        embed = config.get("embed_dim_to_check") or config.get("embed_dim") or (_input_shape(op, 0) or (None,))[-1]
        if not isinstance(heads, int) or not isinstance(embed, int) or heads < 1:
            return []
        head_dim = embed // heads
    lines = [f"heads={heads} embed={embed} head_dim={head_dim}"]
    dropout = config.get("dropout_p", 0)
    return [*lines, f"dropout={dropout:g}"] if isinstance(dropout, (int, float)) and dropout else lines


def _input_shape(op: Any, position: int) -> tuple[int, ...] | None:
    """Shape of the tensor at a place among the arguments."""
    for ref in op.record.inputs:
        if ref.position == (position,) and not ref.late:
            return op._trace.data.nodes.outs[ref.node][ref.output].shape
    return None


def _over_last_dim(record: Any) -> bool:
    return all(op.func_config.get("dim") in (-1, len(op.shape or ()) - 1) for op in _passes(record))


def _in_attention(record: Any) -> bool:
    """Whether a module around the op is an attention by its class or its name."""
    data = record._trace.data
    for key in _same(record, "modules") or ():
        address = key.rpartition(":")[0]
        module = data.modules[data.module_of[address]]
        if "attention" in module.class_name.lower() or any(map(_ATTENTION.search, address.split(".")[-1:])):
            return True
    return False


def _parts(record: Any) -> Iterable[str]:
    """The last parts of the addresses around the op, innermost first."""
    for key in reversed(_same(record, "modules") or ()):
        yield key.rpartition(":")[0].rpartition(".")[2]
        return


def _passes(record: Any) -> tuple[Any, ...]:
    return getattr(record, "ops", None) or (record,)


def _same(record: Any, name: str) -> Any:
    """A field that all passes share, else that of the first: module keys differ in their call number only."""
    return getattr(_passes(record)[0], name)
