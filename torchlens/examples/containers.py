"""Results in a mapping with a tuple inside: outputs that have names."""

from __future__ import annotations

from torch import Tensor, nn


class Heads(nn.Module):
    """One trunk, a classifier and the best class with its score. (N, width) -> a mapping."""

    def __init__(self, width: int = 8, classes: int = 4) -> None:
        super().__init__()
        self.trunk = nn.Linear(width, width)
        self.classify = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> dict[str, Tensor | tuple[Tensor, Tensor]]:
        logits = self.classify(self.trunk(x))
        score, index = logits.max(dim=1)
        return {"logits": logits, "best": (score, index)}
