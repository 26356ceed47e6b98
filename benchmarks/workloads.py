"""The models that are timed. Runs in any interpreter that has torch: it must not import our package."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Workload = tuple[nn.Module, torch.Tensor]


class RnnLoop(nn.Module):
    """A recurrent cell of two Linear layers, unrolled in Python: 4 ops and 2 module calls per step."""

    def __init__(self, steps: int, width: int = 16) -> None:
        super().__init__()
        self.steps = steps
        self.inner = nn.Linear(width, width)
        self.hidden = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x)
        for _ in range(self.steps):
            state = torch.tanh(self.inner(x) + self.hidden(state))
        return state


class Chain(nn.Module):
    """Small element-wise and matrix ops one after the other, in one module: as little real work per op as possible."""

    def __init__(self, ops: int) -> None:
        super().__init__()
        self.rounds = ops // 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(self.rounds):
            y = torch.tanh(y)
            y = y + x
            y = y.mul(0.5)
            y = y @ x
        return y


class Block(nn.Module):
    """Two normalised halves with residual additions: 14 ops, nested three modules deep."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.ReLU())
        self.gate = nn.Sequential(nn.Linear(width, width), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        y = self.mix(y) * self.gate(y) + x
        z = torch.softmax(y, dim=-1).transpose(0, 1).contiguous().transpose(0, 1)
        return y + 0.5 * z


def nested(ops: int, width: int = 16) -> Workload:
    """A stack of blocks with about that many ops."""
    return nn.Sequential(*(Block(width) for _ in range(max(1, ops // 15)))), torch.randn(4, width)


def _rnn() -> Workload:
    return RnnLoop(1000), torch.randn(2, 16)


def _chain(ops: int) -> Callable[[], Workload]:
    return lambda: (Chain(ops), torch.randn(8, 8) / 8)


def _resnet50() -> Workload:
    from torchvision.models import resnet50

    return resnet50(weights=None), torch.randn(1, 3, 224, 224)


def _vit_b_16() -> Workload:
    from torchvision.models import vit_b_16

    return vit_b_16(weights=None), torch.randn(1, 3, 224, 224)


def _gpt2_tiny() -> Workload:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=12, n_embd=16, n_head=2, vocab_size=100, n_positions=64, use_cache=False)
    return GPT2LMHeadModel(config), torch.arange(8).reshape(1, 8)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "rnn": _rnn,
    "chain2k": _chain(2_000),
    "chain5k": _chain(5_000),
    "chain20k": _chain(20_000),
    "chain50k": _chain(50_000),
    "resnet50": _resnet50,
    "vit_b_16": _vit_b_16,
    "gpt2_tiny": _gpt2_tiny,
}


def build(name: str) -> Workload:
    """The model in evaluation mode with its input, from a fixed seed."""
    torch.manual_seed(0)
    model, x = WORKLOADS[name]()
    return model.eval(), x
