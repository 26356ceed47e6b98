"""A figure that is no graph, in neutral terms: shapes, lines and lines of text at fixed places.

Points from the upper left corner, y grows downwards. Texts are plain, not yet escaped. Knows no trace and no theme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torchlens.scene.model import NodeStyle

LEFT, CENTER, RIGHT = "LEFT", "CENTER", "RIGHT"


class Area(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    width: float
    height: float


class Shape(NamedTuple):
    """A node's outline without any text. name: its id; ground: a plain rectangle behind everything else."""

    name: str
    area: Area
    style: NodeStyle
    ground: bool = False


class Words(NamedTuple):
    """One line of text in an area: at its left, right or centre, halfway down. It must be wide enough for the text."""

    name: str
    text: str
    area: Area
    size: float
    color: str
    align: str = LEFT
    bold: bool = False


class Line(NamedTuple):
    """Straight pieces through points. arrow: ends in a head; width in points."""

    name: str
    points: tuple[tuple[float, float], ...]
    color: str
    width: float
    dashed: bool = False
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """One such figure. marks: the ground is painted first, then lines, then shapes and words; margin: around it."""

    title: str
    width: float
    height: float
    background: str
    font: str
    bold: bool
    margin: float
    marks: tuple[Shape | Words | Line, ...]
