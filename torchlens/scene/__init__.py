"""How a plan looks: words, styles, header and key, in terms that any engine can write."""

from torchlens.scene.build import build as build
