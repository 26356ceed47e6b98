"""torch.tensor() is called on a list of 0-d tensors inside forward; it must work while recording and must work exactly
as before afterwards.
"""

from __future__ import annotations

import torch
from torch import nn


class Maker(nn.Module):
    def forward(self, x):
        start = torch.tensor(-3.0)
        row = torch.tensor([start, 2.0, torch.tensor(4)])
        return x + row


def case():
    return Maker(), (torch.ones(2, 3),), {}


def after():
    probe = [torch.tensor(1.0), torch.tensor(2.0)]
    return (
        torch.tensor(probe).tolist() == [1.0, 2.0]
        and len(torch.tensor([1, 2])) == 2
        and isinstance(torch.ones(1), torch.Tensor)
    )


EXPECT = {"ops": {"add": 1}, "n_inputs": 1, "n_outputs": 1, "after": True, "edges": [("input:x", "add#1")]}
