"""What is known of attention by names: its functions, the parts that linears play in it, and what modules are called.

Knows only names; where an op or a module stands in a trace is for those who ask.
"""

from __future__ import annotations

import re

FUSED = "scaled_dot_product_attention"
MULTI_HEAD = "multi_head_attention_forward"
FUNCTIONS = (FUSED, MULTI_HEAD)
# Inside attention it is the weights of what attends to what.
SOFTMAX = "softmax"
# Class of the module of torch that is attention whatever it is called.
MODULE_CLASS = "MultiheadAttention"
# The part a linear plays inside attention -> the last parts of addresses that say so.
_ROLES = {
    "query": ("q", "q_proj", "query", "q_lin", "wq", "to_q", "q_linear", "query_proj"),
    "key": ("k", "k_proj", "key", "k_lin", "wk", "to_k", "k_linear", "key_proj"),
    "value": ("v", "v_proj", "value", "v_lin", "wv", "to_v", "v_linear", "value_proj"),
    "qkv": ("qkv", "qkv_proj", "c_attn", "in_proj", "query_key_value", "wqkv", "to_qkv", "Wqkv"),
    "out": (
        "out", "o", "o_proj", "out_proj", "out_lin", "proj", "c_proj", "wo", "to_out", "dense", "output", "out_linear",
    ),
}  # fmt: skip
_ROLE_OF = {part: role for role, parts in _ROLES.items() for part in parts}
# What is in the class or the own name of a module that is attention, or a whole part of the own name.
_WORDS = ("attn", "attention")
_PART = re.compile(r"(?:^|_)(?:mha|sdpa)(?:$|_|\d)", re.IGNORECASE)


def role_of(address: str) -> str | None:
    """The part that the module at an address plays inside attention, by the last part of the address.

    Example: role_of("blocks.0.attn.q_proj") == "query"
    """
    return _ROLE_OF.get(address.rpartition(".")[2])


def is_attention(address: str, class_name: str) -> bool:
    """Whether a module is attention by its class or its own name."""
    own = address.rpartition(".")[2]
    named = any(word in name.lower() for name in (class_name, own) for word in _WORDS)
    return named or _PART.search(own) is not None
