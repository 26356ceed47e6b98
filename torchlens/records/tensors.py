"""What is known of one tensor without holding it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Geometry of one tensor at the moment an op returned it.

    shape: dimensions, None where the tensor has no regular shape (nested); dtype: name without `torch.`;
    nbytes: logical size in bytes (numel x itemsize, also for views), None where the shape is.
    Capture interns specs: equal tensors of one trace share one object.
    """

    shape: tuple[int, ...] | None
    dtype: str
    device: str
    nbytes: int | None
    requires_grad: bool = False

    @property
    def numel(self) -> int | None:
        """Number of elements, None without a regular shape."""
        return None if self.shape is None else math.prod(self.shape)
