"""The keywords of `Trace.draw` for editors and type checkers: those of `DrawOptions`, plus view and theme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class DrawKeywords(TypedDict, total=False):
    """What `draw(...)` accepts; a test keeps it in step with `DrawOptions`, which documents each."""

    view: str | Mapping[str, Any] | None
    theme: str | Mapping[str, Any]
    rolled: bool
    depth: int
    direction: Literal["bottomup", "topdown", "leftright", "rightleft"] | None
    collapse: Literal["none"]
    node_style: Literal["default", "profiling"]
    show_buffers: Literal["meaningful", "never", "always"]
    show_legend: bool | None
    show_redundant_args: bool
    color_by: Literal["time", "bytes", "flops"] | None
    color_scale: Literal["linear", "rank"]
    font_size: int | None
    graph_attrs: Mapping[str, str | int | float | bool] | None
    caption: str | None
    file_format: str | None
    dpi: int | None
    engine: Literal["embedded", "system"] | None
    pdf_font: str | None
    open_viewer: bool
