"""A perceptron with one hidden layer and dropout."""

from __future__ import annotations

from torch import Tensor, nn


class Mlp(nn.Module):
    """Two linear layers with ReLU and dropout between them. (N, in_features) -> (N, out_features)."""

    def __init__(self, in_features: int = 8, hidden: int = 16, out_features: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.fc1 = nn.Linear(in_features, hidden)
        self.act = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.dropout(self.act(self.fc1(x))))
