"""The one place where settings meet: theme < view < collapse < encoding < figure entry < explicit keywords.

Folds the layers option by option and keeps who set what. A key that a layer leaves out does not override; an explicit
None does. The Python API and the runner both call `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from torchlens.base.errors import error, fail, nearest
from torchlens.records.trace_data import TraceData
from torchlens.settings import evidence
from torchlens.settings.options import DrawOptions, check_keywords, validate_option
from torchlens.settings.plain import is_mapping
from torchlens.settings.theme import DEFAULT, Theme, load_theme
from torchlens.settings.view import View, load_view, view_names

UNSET = "default"


class SettingLayer(IntEnum):
    """Where a setting may come from, lowest first. A later member wins."""

    THEME = 1
    VIEW = 2
    COLLAPSE = 3
    ENCODING = 4
    FIGURE = 5
    EXPLICIT = 6

    @classmethod
    def of(cls, label: str) -> SettingLayer:
        """The layer of a label such as `view:speed` or `explicit`."""
        return cls[label.partition(":")[0].upper()]


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """Everything a drawing needs to know apart from the trace.

    origin: option -> label of the layer that set it (`view:speed`, `explicit`, `default`); trail: option -> the
    (label, value) pairs of all layers that set it, lowest first.
    """

    options: DrawOptions
    theme: Theme
    view: View | None
    origin: Mapping[str, str]
    trail: Mapping[str, tuple[tuple[str, object], ...]]


Layer = tuple[str, Mapping[str, Any]]


def resolve(data: TraceData | None, given: Mapping[str, Any], *, layers: Sequence[Layer] = ()) -> DrawRequest:
    """Turn what the caller wrote into one request.

    given: exactly the keywords written, `view` and `theme` among them as name, mapping or loaded value; layers: further
    (label, options) of collapse, encoding and figure files, in any order; data: None leaves out the evidence check.
    Raises: TypeError for an unknown keyword; an option's code for a wrong value; the codes of `evidence.check`.
    """
    check_keywords(given)
    theme, view = _theme(given.get("theme")), _view(given.get("view"))
    explicit = {name: validate_option(name, value) for name, value in given.items() if name not in ("view", "theme")}
    stack: list[Layer] = [(f"theme:{theme.name}", theme.draw), *layers, ("explicit", explicit)]
    if view is not None:
        stack.append((f"view:{view.name}", view.draw))
    trail = fold(stack)
    options = DrawOptions(**{name: steps[-1][1] for name, steps in trail.items()})  # type: ignore[arg-type]
    origin = {name: trail[name][-1][0] if name in trail else UNSET for name in DrawOptions.__dataclass_fields__}
    _check_together(options, origin)
    if data is not None:
        evidence.check(data, view, options)
    return DrawRequest(options, theme, view, MappingProxyType(origin), MappingProxyType(trail))


def fold(stack: Iterable[Layer]) -> dict[str, tuple[tuple[str, object], ...]]:
    """Option -> (label, value) of every layer that set it, lowest layer first, in whatever order the stack is."""
    trail: dict[str, tuple[tuple[str, object], ...]] = {}
    for label, values in sorted(stack, key=lambda layer: SettingLayer.of(layer[0])):
        for name, value in values.items():
            trail[name] = (*trail.get(name, ()), (label, value))
    return trail


def _theme(source: object) -> Theme:
    if isinstance(source, Theme):
        return source
    if source is None:
        return load_theme(DEFAULT)
    if not isinstance(source, str) and not is_mapping(source):
        fail("visualization_theme_invalid", f"theme={source!r} is neither a name nor a mapping", got=source)
    return load_theme(source)


def _view(source: object) -> View | None:
    if source is None or isinstance(source, View):
        return source
    if is_mapping(source):
        return load_view(source)
    known = view_names()
    if source not in known:
        close = nearest(str(source), known, 1)
        fix = f'pass view="{close[0]}", or leave view= unset' if close else ""
        raise error("draw_view_invalid", f"view={source!r} is not a view", allowed=known, fix=fix, got=source)
    return load_view(str(source))


def _check_together(options: DrawOptions, origin: Mapping[str, str]) -> None:
    """A scale that somebody asked for needs a source; a default scale of a theme or view may stay unused."""
    label = origin["color_scale"]
    if options.color_by is not None or label == UNSET or SettingLayer.of(label) < SettingLayer.ENCODING:
        return
    switched_off = origin["color_by"]
    if switched_off == UNSET or SettingLayer.of(switched_off) <= SettingLayer.of(label):
        fail("scale_requires_color_by", f"color_scale={options.color_scale!r} has no colour source to scale")
