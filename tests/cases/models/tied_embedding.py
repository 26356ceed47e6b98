"""The output layer shares the embedding matrix; totals must count it once while both ops name it."""

from __future__ import annotations

import torch
from torch import nn


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 6)
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 20, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.mix(self.emb(ids))))


def case():
    torch.manual_seed(0)
    return TinyLM(), (torch.randint(0, 20, (2, 4)),), {}


EXPECT = {
    "params_total": 162,
    "ops": {"embedding": 1, "linear": 2, "tanh": 1},
    "op_params": {"embedding#1": ["weight"], "linear#2": ["weight"]},
    "n_inputs": 1,
    "passes": {"linear": [1, 1]},
}
