"""What a writer hands back: the bytes of a file and the size of its one page."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Page:
    """Size of the drawn page.

    width, height: in `unit`, points ("pt") of vector formats or pixels ("px") of raster ones. scale: file units per
    point of the layout, 1 unless a format had to shrink the page or rasterize it. smallest_text: size in points of the
    smallest text when the page is printed at its own size, None without text.
    """

    width: float
    height: float
    unit: str = "pt"
    scale: float = 1.0
    smallest_text: float | None = None

    @property
    def width_pt(self) -> float:
        """Width in points when the page is printed at its own size."""
        return self.width / self.scale if self.unit == "px" else self.width

    def text_at(self, width: float) -> float | None:
        """Size in points of the smallest text when the figure is scaled to this width in points; None without text."""
        return None if self.smallest_text is None else self.smallest_text * width / self.width_pt

    def with_text(self, smallest: float | None) -> Page:
        """The page with the size of its smallest text as the layout has it."""
        shrunk = smallest if smallest is None or self.unit == "px" else smallest * self.scale
        return replace(self, smallest_text=shrunk)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One rendered figure. page: None for formats without a layout, such as dot."""

    data: bytes
    file_format: str
    page: Page | None = None
