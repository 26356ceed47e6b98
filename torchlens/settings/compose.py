"""The one place where settings meet: theme < view < collapse < encoding < figure entry < explicit keywords.

Folds the layers option by option and keeps who set what. A key that a layer leaves out does not override; an explicit
None does. The Python API and the runner both call `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import error, fail, nearest, warn
from torchlens.settings import evidence
from torchlens.settings.channel_checks import CHANNELS, check_channels
from torchlens.settings.deferred import FromTrace
from torchlens.settings.options import DrawOptions, check_keywords, validate_option
from torchlens.settings.options import options as declared
from torchlens.settings.plain import is_mapping
from torchlens.settings.resolvers import RESOLVERS
from torchlens.settings.theme import DEFAULT, Theme, load_theme
from torchlens.settings.view import View, load_view, view_names

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData

UNSET = "default"
# What shapes a channel -> the channel.
_SCALE_CODES = {"color_by": ("scale_requires_color_by", "colour"), "size_by": ("scale_requires_size_by", "size")}
_SCALED = {"color_scale": "color_by", "size_scale": "size_by", "size_cap": "size_by"}


class SettingLayer(IntEnum):
    """Where a setting may come from, lowest first. A later member wins. VERB: what `torchlens.draw` starts from."""

    VERB = 1
    THEME = 2
    VIEW = 3
    COLLAPSE = 4
    ENCODING = 5
    FIGURE = 6
    EXPLICIT = 7

    @classmethod
    def of(cls, label: str) -> SettingLayer:
        """The layer of a label such as `view:speed` or `explicit`."""
        return cls[label.partition(":")[0].upper()]


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """Everything a drawing needs to know apart from the trace.

    options: what only the trace can answer is at its default as long as there is none; origin: option -> label of the
    layer that set it (`view:speed`, `explicit`, `default`); trail: option -> the (label, value) pairs of all layers
    that set it, lowest first; left_out: wishes of the view that this drawing cannot have, in the words of a caption.
    """

    options: DrawOptions
    theme: Theme
    view: View | None
    origin: Mapping[str, str]
    trail: Mapping[str, tuple[tuple[str, object], ...]]
    left_out: tuple[str, ...] = ()


Layer = tuple[str, Mapping[str, Any]]
Trail = dict[str, tuple[tuple[str, object], ...]]


def resolve(data: TraceData | None, given: Mapping[str, Any], *, layers: Sequence[Layer] = ()) -> DrawRequest:
    """Turn what the caller wrote into one request.

    given: exactly the keywords written, `view` and `theme` among them as name, mapping or loaded value; layers: further
    (label, options) of collapse, encoding and figure files, in any order; data: None leaves out what only a trace can
    answer: settings of a view by resolver, and evidence.
    Raises: TypeError for an unknown keyword; an option's code for a wrong value; the codes of `evidence.check`.
    """
    check_keywords(given)
    theme, view = _theme(given.get("theme")), _view(given.get("view"))
    explicit = {name: validate_option(name, value) for name, value in given.items() if name not in ("view", "theme")}
    stack: list[Layer] = [(f"theme:{theme.name}", theme.draw), *layers, ("explicit", explicit)]
    if view is not None:
        stack.append((f"view:{view.name}", view.draw))
    trail = fold(stack)
    if data is not None:
        trail = _answered(data, trail)
    own = frozenset(name for name, steps in trail.items() if SettingLayer.of(steps[-1][0]) is SettingLayer.VIEW)
    if view is not None and data is not None:
        evidence.check(data, view.name, view.needs, _options(trail), own)
    trail, left_out = _without_misfits(data, view, trail, own)
    options = _options(trail)
    origin = {name: trail[name][-1][0] if name in trail else UNSET for name in DrawOptions.__dataclass_fields__}
    _check_together(options, origin)
    if data is not None:
        check_channels(data, options)
        evidence.warn_of(data, options, left_out)
    return DrawRequest(options, theme, view, MappingProxyType(origin), MappingProxyType(trail), left_out)


def with_direction(request: DrawRequest, direction: str) -> DrawRequest:
    """The request with the direction that `fit_width` picked, which counts as set by the same layer."""
    label = request.origin["fit_width"]
    options = replace(request.options, direction=direction)  # type: ignore[arg-type]
    origin = {**request.origin, "direction": label}
    trail = {**request.trail, "direction": (*request.trail.get("direction", ()), (label, direction))}
    return replace(request, options=options, origin=MappingProxyType(origin), trail=MappingProxyType(trail))


def without_callables(request: DrawRequest) -> DrawRequest:
    """The request with the names of functions in their place, so that keeping it keeps nothing else alive."""

    def plain(value: object) -> object:
        return str(getattr(value, "__qualname__", type(value).__name__)) if callable(value) else value

    values = {name: plain(getattr(request.options, name)) for name in DrawOptions.__dataclass_fields__}
    trail = {name: tuple((label, plain(value)) for label, value in steps) for name, steps in request.trail.items()}
    options = DrawOptions(**values)  # type: ignore[arg-type]
    return replace(request, options=options, trail=MappingProxyType(trail))


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


def _options(trail: Trail) -> DrawOptions:
    """The settings that won; what no trace has answered is at its default."""
    winners = {name: steps[-1][1] for name, steps in trail.items()}
    return DrawOptions(**{name: value for name, value in winners.items() if not isinstance(value, FromTrace)})  # type: ignore[arg-type]


def _answered(data: TraceData, trail: Trail) -> Trail:
    """The trail with the trace's answers in place of the resolvers that won. The others are never asked."""
    found = dict(trail)
    for name, steps in trail.items():
        label, value = steps[-1]
        if isinstance(value, FromTrace):
            answer = validate_option(name, RESOLVERS[value.name].answer(data), where=f"{value.name}: ")
            found[name] = (*steps[:-1], (label, answer))
    return found


def _without_misfits(
    data: TraceData | None, view: View | None, trail: Trail, own: frozenset[str]
) -> tuple[Trail, tuple[str, ...]]:
    """The trail without the wishes that a view gives up where they cannot be met, and the words for that."""
    found, words = dict(trail), list[str]()
    options = _options(trail)
    for name in view.fallback if view else ():
        lack = evidence.WISHES[name](data, options) if name in own else None
        if lack is not None:
            if data is not None:  # what is settled before a model runs is settled again with its trace
                warn(lack.code, lack.what, fix=lack.fix)
            found[name] = (*trail[name], (f"{trail[name][-1][0]}, left out", declared()[name].default))
            words.append(lack.what)
    return found, tuple(words)


def _check_together(options: DrawOptions, origin: Mapping[str, str]) -> None:
    """A scale that somebody asked for needs a source; a default scale of a theme or view may stay unused.

    A channel needs the layout of the engine, and columns the passes one by one.
    """
    on = [name for name in CHANNELS if getattr(options, name) is not None]
    if options.layout == "rank" and on:
        source = getattr(options, on[0])
        what = f"layout='rank' shows no channel, and {on[0]} is {source if isinstance(source, str) else 'a function'}"
        fail("encoding_requires_dot_layout", what)
    if options.stack_by is not None and options.rolled:
        fail("stack_by_requires_unrolled", "stack_by= puts single passes into columns, and rolled=True joins them")
    for name, source in _SCALED.items():
        label = origin[name]
        if getattr(options, source) is not None or label == UNSET or SettingLayer.of(label) < SettingLayer.ENCODING:
            continue
        switched_off = origin[source]
        if switched_off == UNSET or SettingLayer.of(switched_off) <= SettingLayer.of(label):
            code, word = _SCALE_CODES[source]
            fail(code, f"{name}={getattr(options, name)!r} has no {word} source to scale")
