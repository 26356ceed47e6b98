"""Rows and outlines of attention on hand-made traces; on models see the style of the same name."""

from __future__ import annotations

from collections.abc import Callable

from tests.builders import Builder
from torchlens.records.trace_data import TraceData
from torchlens.scene.attention_rows import KEY
from torchlens.scene.model import Scene, TextLine

MakeScene = Callable[..., Scene]


def attending(dropout: float = 0.0) -> TraceData:
    """Two projections and a fused attention, then a written-out softmax; and the same softmax outside."""
    b = Builder()
    x = b.input("x", (2, 5, 16))
    with b.module("attn", "SelfAttention") as call:
        q, k = (b.linear(f"attn.{name}", x, 16) for name in ("q_proj", "k_proj"))
        q, k = (b.op("view", [part], (2, 4, 5, 4)) for part in (q, k))
        mixed = b.op("scaled_dot_product_attention", [q, k, k], (2, 4, 5, 4), config=(("dropout_p", dropout),))
        soft = b.op("softmax", [mixed], (2, 4, 5, 4), config=(("dim", -1),))
        call.returns = [b.op("softmax", [soft], (2, 4, 5, 4), config=(("dim", 1),))]
    b.output(b.op("softmax", [call.returns[0]], (2, 4, 5, 4), config=(("dim", -1),)))
    return b.build()


def test_rows_come_with_the_style_only(scene: MakeScene) -> None:
    def rows(**given: object) -> list[str]:
        made = scene(attending(), **given)
        return [line for node in made.nodes for row in node.rows if row.token == "attention" for line in row.lines]

    assert rows() == []
    assert rows(node_style="attention") == [
        "(role=query)", "(role=key)", "heads=4 embed=16 head_dim=4", "(attn-softmax)",
    ]  # fmt: skip


def test_dropout_is_said_if_there_is_some(scene: MakeScene) -> None:
    made = scene(attending(0.25), node_style="attention")
    lines = [row.lines for node in made.nodes for row in node.rows if row.token == "attention"]
    assert ("heads=4 embed=16 head_dim=4", "dropout=0.25") in lines


def test_what_mixes_is_outlined_and_the_key_says_so(scene: MakeScene) -> None:
    made = scene(attending(), node_style="attention", show_legend=True)
    thick = [node.name for node in made.nodes if node.origin["stroke_width"] == "node_style attention"]
    assert len(thick) == 2
    assert thick[0].startswith("scaleddotproductattention")
    texts = [line.text for line in made.root if isinstance(line, TextLine)]
    assert KEY in texts
    quiet = scene(attending(), node_style="attention", show_legend=False)
    assert KEY not in [line.text for line in quiet.root if isinstance(line, TextLine)]
