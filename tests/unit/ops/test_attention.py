"""What names say of attention."""

from __future__ import annotations

import pytest

from torchlens.ops.attention import is_attention, role_of


@pytest.mark.parametrize(
    ("address", "class_name", "found"),
    [
        ("h.0.attn", "Block", True),
        ("encoder.self_attention", "Part", True),
        ("layer.0.mixer", "CausalAttn", True),
        ("layer.0.mixer", "MultiheadAttention", True),
        ("blocks.1.mha", "Part", True),
        ("blocks.1.sdpa_2", "Part", True),
        ("alphas", "Part", False),
        ("attn.mlp", "Mlp", False),
        ("blocks.1.mharness", "Flatten", False),
        ("", "Net", False),
    ],
)
def test_attention_by_the_class_or_the_own_name(address: str, class_name: str, found: bool) -> None:
    assert is_attention(address, class_name) is found


@pytest.mark.parametrize(
    ("address", "role"),
    [
        ("h.0.attn.q_proj", "query"), ("h.0.attn.c_attn", "qkv"), ("attn.out_proj", "out"), ("value", "value"),
        ("q_proj.inner", None), ("", None),
    ],
)  # fmt: skip
def test_the_part_of_a_linear_by_the_end_of_its_address(address: str, role: str | None) -> None:
    assert role_of(address) == role
