"""What a drawing says about how it was folded: the value behind `drawing.collapse_plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# Why nothing was planned: more ops than any planner takes.
CEILING = "collapse_ops_ceiling"


class Gathered(NamedTuple):
    """Nodes drawn as one. name: the id of the node; members: addresses of blocks, or labels of ops and outputs."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CollapsePlan:
    """How a drawing was folded.

    mode: the request's `collapse=`, `budget` where a view wants a number of nodes; context: the options it was planned
    under; planner: quality, linear_fallback or none; nodes: drawn, and total: in the full drawing; collapsed: addresses
    of the modules drawn as one node, those in folds and segments among them; folds, segments, bundles: nodes that stand
    for several; reason: why this one; manifest: where the page is above its band, what could be opened and how; level:
    the level of the schedule that was used, 0 if nothing but repeats is folded, None without a schedule; depth: the
    level of the module tree instead.
    """

    mode: str | float
    context: Mapping[str, object]
    planner: str
    nodes: int
    total: int
    collapsed: tuple[str, ...]
    folds: tuple[Gathered, ...]
    segments: tuple[Gathered, ...]
    bundles: tuple[Gathered, ...]
    reason: str
    manifest: tuple[Mapping[str, Any], ...] = ()
    band: int = 0
    level: float | None = None
    depth: int | None = None
