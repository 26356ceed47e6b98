"""What a writer hands back: the bytes of a file and the size of its one page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """Size of the drawn page.

    width, height: in `unit`, points ("pt") of vector formats or pixels ("px") of raster ones. scale: file units per
    point of the layout, 1 unless a format had to shrink the page or rasterize it.
    """

    width: float
    height: float
    unit: str = "pt"
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Artifact:
    """One rendered figure. page: None for formats without a layout, such as dot."""

    data: bytes
    file_format: str
    page: Page | None = None
