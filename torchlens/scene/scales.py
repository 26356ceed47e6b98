"""How numbers become places between 0 and 1. Knows nothing of colours, sizes or nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torchlens.base.registry import Registry

# From the values on the page, not all equal, to the place of each: smallest to 0, largest to 1, in order.
Scale = Callable[[Sequence[float]], Callable[[float], float]]
SCALES: Registry[Scale] = Registry("colour scale", code="encoding_scale_invalid")
SIZE_SCALES: Registry[Scale] = Registry("size scale", code="encoding_scale_invalid")


def _proportional(transform: Callable[[float], float]) -> Scale:
    def half(value: float) -> float:  # halves lie in reach of each other wherever the values are
        return transform(value) / 2

    def scale(values: Sequence[float]) -> Callable[[float], float]:
        low, high = half(min(values)), half(max(values))
        if low == high:  # closer together than the transform can tell
            return rank(values)
        return lambda value: (half(value) - low) / (high - low)

    return scale


@SCALES.add("linear")
@SIZE_SCALES.add("linear")
def linear(values: Sequence[float]) -> Callable[[float], float]:
    """In proportion between the ends."""
    return _proportional(float)(values)


@SCALES.add("rank")
def rank(values: Sequence[float]) -> Callable[[float], float]:
    """Place among the distinct values, in equal steps; equal values share a place."""
    distinct = sorted(set(values))
    place = {value: k / (len(distinct) - 1) for k, value in enumerate(distinct)}
    return place.__getitem__


@SCALES.add("log")
def log(values: Sequence[float]) -> Callable[[float], float]:
    """In proportion to the logarithm; `on_scale` says which values have one."""
    return _proportional(math.log)(values)


@SIZE_SCALES.add("sqrt")
def square_root(values: Sequence[float]) -> Callable[[float], float]:
    """In proportion to the square root, so that one large value leaves the others apart."""
    return _proportional(math.sqrt)(values)


def on_scale(name: str, value: float) -> bool:
    """Whether a scale has a place for a value."""
    return name != "log" or value > 0
