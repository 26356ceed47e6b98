"""One head of attention: an op whose arguments are not alike."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    """Causal self-attention with one head. (N, length, width) -> (N, length, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        mixed = scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)
        return self.out(mixed)


class Attending(nn.Module):
    """Adds to a sequence what attention makes of it. (N, length, width) -> (N, length, width)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.attention = Attention(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(x)
