"""A small decoder that hands out its cache: one key and one value per block beside the logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class Block(nn.Module):
    """Causal attention and a perceptron, each with a residual. (N, T, width) -> the same, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (self._split(part) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x)), key, value

    def _split(self, part: Tensor) -> Tensor:
        """(N, T, width) -> (N, heads, T, width / heads)."""
        return part.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Body(nn.Module):
    """Embeddings and blocks. (N, T) token ids -> (N, T, width), and the cache of every block."""

    def __init__(self, width: int, heads: int, blocks: int, tokens: int, length: int) -> None:
        super().__init__()
        self.token = nn.Embedding(tokens, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))

    def forward(self, ids: Tensor) -> tuple[Tensor, dict[str, list[Tensor]]]:
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        cache: dict[str, list[Tensor]] = {"keys": [], "values": []}
        for block in self.blocks:
            x, key, value = block(x)
            cache["keys"].append(key)
            cache["values"].append(value)
        return x, cache


class Decoder(nn.Module):
    """A body and a head over its vocabulary. (N, T) token ids -> logits and `past_key_values`."""

    def __init__(self, width: int = 16, heads: int = 2, blocks: int = 12, tokens: int = 100, length: int = 64) -> None:
        super().__init__()
        self.body = Body(width, heads, blocks, tokens, length)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens)

    def forward(self, ids: Tensor) -> dict[str, Tensor | dict[str, list[Tensor]]]:
        x, cache = self.body(ids)
        return {"logits": self.head(self.norm(x)), "past_key_values": cache}
