"""What the attention style writes, and that it stays silent where the facts do not tell."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import torchlens as tl
from torchlens.experimental.node_styles import attention_node_mode
from torchlens.trace_view import Trace


class SelfAttention(nn.Module):
    def __init__(self, dropout: float = 0.0, fused: bool = True) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(16, 16) for _ in range(4))
        self.other = nn.Linear(16, 16)
        self.dropout, self.fused = dropout, fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).view(2, 5, 4, 4).transpose(1, 2) for layer in (self.q_proj, self.k_proj, self.v_proj))
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        else:
            y = torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v
        return self.other(self.out_proj(y.transpose(1, 2).reshape(2, 5, 16)))


class Net(nn.Module):
    def __init__(self, **options: object) -> None:
        super().__init__()
        self.attn = SelfAttention(**options)  # type: ignore[arg-type]
        self.q_proj = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.q_proj(self.attn(x)), dim=-1)


def added(trace: Trace, **options: object) -> dict[str, list[str]]:
    """The lines that the style adds, by node."""
    plain = {node.name: node.rows for node in trace.draw(**options)._scene.nodes}  # type: ignore[arg-type]
    styled = trace.draw(node_spec_fn=attention_node_mode, **options)._scene.nodes  # type: ignore[arg-type]
    new = {node.name: [row.lines[0] for row in node.rows[len(plain[node.name]) :]] for node in styled}
    return {name: lines for name, lines in new.items() if lines}


def test_a_fused_attention_tells_its_sizes_and_its_linears_their_parts() -> None:
    trace = tl.trace(Net(), torch.randn(2, 5, 16))
    lines = added(trace)
    heads = [name for name in lines if name.startswith("scaled")]
    assert [lines[name] for name in heads] == [["heads=4 embed=16 head_dim=4"]]
    roles = [lines[name][0] for name in lines if name.startswith("linear")]
    assert roles == ["(role=query)", "(role=key)", "(role=value)", "(role=out)"]


def test_dropout_is_written_if_there_is_some() -> None:
    lines = added(tl.trace(Net(dropout=0.25), torch.randn(2, 5, 16)))
    (found,) = [text for name, text in lines.items() if name.startswith("scaled")]
    assert found == ["heads=4 embed=16 head_dim=4", "dropout=0.25"]


def test_only_the_softmax_inside_attention_is_named() -> None:
    trace = tl.trace(Net(fused=False), torch.randn(2, 5, 16))
    softmaxes = [op.label for op in trace.ops if op.func_name == "softmax"]
    assert len(softmaxes) == 2
    lines = added(trace)
    assert lines[softmaxes[0]] == ["(attn-softmax)"]
    assert softmaxes[1] not in lines


@pytest.mark.parametrize("rolled", [False, True])
def test_a_module_of_torch_tells_its_heads(rolled: bool) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mha = nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(2):
                x = self.mha(x, x, x, need_weights=False)[0]
            return x

    lines = added(tl.trace(Wrapped().train(), torch.randn(2, 5, 12)), rolled=rolled)
    assert {text for found in lines.values() for text in found if text.startswith("heads")} == {
        "heads=3 embed=12 head_dim=4"
    }


def test_nothing_is_written_outside_attention() -> None:
    assert not added(tl.trace(nn.Sequential(nn.Linear(4, 4), nn.Softmax(dim=-1)), torch.randn(2, 4)))
