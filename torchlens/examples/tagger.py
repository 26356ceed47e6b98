"""A tagger of words: two LSTMs over a sentence, one from each end, and a choice for every word."""

from __future__ import annotations

from torch import Tensor, nn


class Tagger(nn.Module):
    """Scores of the tags of each word. ids (N, length) -> (N, length, tags)."""

    def __init__(self, words: int = 100, width: int = 16, hidden: int = 16, tags: int = 5) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.embed(ids))
        return self.head(self.dropout(states))
