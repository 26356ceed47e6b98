"""What a view may write in place of an option's value: an answer that the trace gives, or a size that a page is to get.

Knows no trace: the answers are in `settings.resolvers`, and the page is folded by the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torchlens.settings.plain import is_list, is_mapping

RESOLVE = "resolve"
BAND, TARGET = "band", "target"


class FromTrace(NamedTuple):
    """The answer of a resolver, by its name."""

    name: str

    def __str__(self) -> str:
        return f"by the trace: {self.name}"


class Band(NamedTuple):
    """How many nodes a page is to have: from low to high, and near target if there is a choice."""

    low: int
    high: int
    target: int

    def __str__(self) -> str:
        return f"{self.low} to {self.high} nodes, near {self.target}"


def is_from_trace(value: object) -> bool:
    """Whether a value of a view file names a resolver."""
    return is_mapping(value) and set(value) == {RESOLVE}


def is_band(value: object) -> bool:
    """Whether a value of a view file is meant as a band, right or wrong."""
    return is_mapping(value) and BAND in value


def read_band(value: Mapping[str, Any]) -> Band | None:
    """The band that a mapping holds; None if its keys or numbers are wrong."""
    ends = value.get(BAND)
    if set(value) - {BAND, TARGET} or not is_list(ends) or len(ends) != 2:
        return None
    numbers = [*ends, value.get(TARGET, ends[1])]
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return None
    low, high, target = numbers
    return Band(low, high, target) if 1 <= low <= target <= high else None
