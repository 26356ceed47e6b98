"""A variational autoencoder: what it draws is random, and the loss needs the two numbers it was drawn from."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """Mean and logarithm of the variance of each latent. (N, width) -> 2 x (N, latent)."""

    def __init__(self, width: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.relu(self.fc(x))
        return self.mean(h), self.log_variance(h)


class Decoder(nn.Sequential):
    """The picture that a latent stands for. (N, latent) -> (N, width)."""

    def __init__(self, width: int, hidden: int, latent: int) -> None:
        super().__init__(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.Sigmoid())


class Vae(nn.Module):
    """Encodes, draws a latent, decodes. (N, width) -> (N, width), and mean and log variance, each (N, latent)."""

    def __init__(self, width: int = 784, hidden: int = 64, latent: int = 8) -> None:
        super().__init__()
        self.encoder = Encoder(width, hidden, latent)
        self.decoder = Decoder(width, hidden, latent)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        mean, log_variance = self.encoder(x)
        noise = torch.randn_like(mean)
        latent = mean + noise * torch.exp(0.5 * log_variance)
        return {"picture": self.decoder(latent), "mean": mean, "log_variance": log_variance}
