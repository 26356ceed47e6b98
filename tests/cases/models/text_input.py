"""forward takes a list of plain strings and builds its tensors itself; there is no tensor input at all."""

from __future__ import annotations

import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(16, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, texts, lower=True):
        ids = [[ord(c) % 16 for c in (t.lower() if lower else t)] for t in texts]
        flat = torch.tensor([i for row in ids for i in row])
        starts = torch.tensor([0] + [len(r) for r in ids[:-1]]).cumsum(0)
        return self.fc(self.emb(flat, starts))


def case():
    torch.manual_seed(0)
    return Bag(), (["Hello", "graph"],), {"lower": True}


EXPECT = {
    "n_inputs": 0,
    "n_outputs": 1,
    "ops": {"embedding_bag": 1, "cumsum": 1, "linear": 1},
    "edges": [("cumsum#1", "embedding_bag#1"), ("embedding_bag#1", "linear#1")],
}
