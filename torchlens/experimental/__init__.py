"""What may change in any release: node styles for special families of ops."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["node_styles"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"torchlens.experimental.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
