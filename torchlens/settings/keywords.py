"""The keywords of `Trace.draw` for editors and type checkers: those of `DrawOptions`, plus view and theme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

from torchlens.settings.options import LabelField
from torchlens.settings.sources import ColorSource, SizeSource, StackSource


class Addressed(Protocol):
    """A record of a module: `trace.modules["blocks.1"]`."""

    @property
    def address(self) -> str:
        """Its dotted path."""
        ...


class DrawKeywords(TypedDict, total=False):
    """What `draw(...)` accepts; a test keeps it in step with `DrawOptions`, which documents each."""

    view: str | Mapping[str, Any] | None
    theme: str | Mapping[str, Any]
    rolled: bool
    depth: int
    module: str | Addressed | None
    direction: Literal["bottomup", "topdown", "leftright", "rightleft"] | None
    collapse: Literal["none", "auto", "max"] | float
    fold_repeats: bool | None
    collapse_rules: Sequence[Mapping[str, str]] | None
    node_style: Literal["default", "profiling", "attention"]
    node_label_fields: Sequence[LabelField] | None
    show_buffers: Literal["meaningful", "never", "always"]
    show_exceptions: bool
    show_nonfinite: bool
    show_orphans: bool
    show_legend: bool | None
    show_redundant_args: bool
    show_saved_for_backward: bool
    show_edge_shapes: bool
    show_containers: Literal["labels", False]
    color_by: ColorSource | Callable[..., Any] | None
    color_scale: Literal["linear", "rank", "log"]
    size_by: SizeSource | Callable[..., Any] | None
    size_scale: Literal["sqrt", "linear"]
    size_cap: float | None
    stack_by: StackSource | Callable[..., Any] | None
    node_spec_fn: Callable[..., Any] | None
    collapsed_node_spec_fn: Callable[..., Any] | None
    font_size: int | None
    graph_attrs: Mapping[str, str | int | float | bool] | None
    caption: str | None
    file_format: str | None
    dpi: int | None
    layout: Literal["auto", "dot", "rank"]
    fit_width: int | None
    engine: Literal["embedded", "system"] | None
    pdf_font: str | None
    open_viewer: bool
