"""Where everything stands on the page, in points, and how that is said in DOT. A plain figure has no placement.

The engine draws a placed figure as it is told and decides nothing: the DOT text stays the whole figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Point = tuple[float, float]
# Points per inch: the engine wants the sizes of nodes in inches.
INCH = 72


class Rect(NamedTuple):
    """A rectangle: its left, lower, right and upper side. y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def holds(self, other: Rect, slack: float = 0.0) -> bool:
        """Whether another lies inside."""
        return (
            self.left <= other.left + slack
            and self.bottom <= other.bottom + slack
            and self.right >= other.right - slack
            and self.top >= other.top - slack
        )

    def meets(self, other: Rect) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )


class Route(NamedTuple):
    """One arrow: cubic pieces (3n + 1 points) up to the base of its head, its tip, and where its label stands."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """All positions of one scene, by index. graph: attributes of the whole graph, ready to be written; borders: by how
    much a node's rectangle is larger than the size that the engine is told.

    Without nodes it only advises the engine, which then places everything itself.
    """

    graph: str = ""
    nodes: Sequence[Rect] = field(default_factory=tuple[Rect, ...])
    borders: Sequence[float] = field(default_factory=tuple[float, ...])
    frames: Sequence[Rect] = field(default_factory=tuple[Rect, ...])
    frame_labels: Sequence[Point] = field(default_factory=tuple[Point, ...])
    routes: Sequence[Route] = field(default_factory=tuple[Route, ...])
    page: Rect | None = None

    def node(self, k: int) -> str:
        """` pos=...` of a node, empty where the engine places it."""
        if not self.nodes:
            return ""
        box = self.nodes[k]
        border = self.borders[k]
        width, height = (box.right - box.left - border) / INCH, (box.top - box.bottom - border) / INCH
        x, y = (box.left + box.right) / 2, (box.bottom + box.top) / 2
        return f' pos="{_point((x, y))}" width={width:.3f} height={height:.3f}'

    def frame(self, k: int) -> str:
        """Attributes of a frame's rectangle."""
        if not self.frames:
            return ""
        corners = ",".join(_number(side) for side in self.frames[k])
        return f'bb="{corners}" lp="{_point(self.frame_labels[k])}"'

    def edge(self, k: int) -> str:
        """` pos=...` of an arrow."""
        if not self.routes:
            return ""
        route = self.routes[k]
        label = f' lp="{_point(route.label)}"' if route.label else ""
        path = " ".join(_point(point) for point in route.points)
        return f' pos="e,{_point(route.tip)} {path}"{label}'


FREE = Placement()


def root_attributes(page: Rect, label: Point) -> str:
    """The attributes that make an engine draw instead of placing. label: centre of header, caption and key."""
    corners = ",".join(_number(side) for side in page)
    return f'layout=nop2 bb="{corners}" lp="{_point(label)}"'


def _point(point: Point) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")
