"""Parameters and buffers: the model's state as the forward met it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ParamRecord:
    """One parameter tensor. nbytes in bytes; used_by: indexes of the nodes that read it."""

    index: int
    address: str
    aliases: tuple[str, ...]
    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    trainable: bool
    used_by: tuple[int, ...] = ()

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(slots=True)
class BufferRecord:
    """One registered buffer. versions: its buffer nodes in order; version 1 is the value before the forward."""

    index: int
    address: str
    aliases: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    versions: tuple[int, ...] = ()
