"""Every option of a drawing, declared once: name, type, default, allowed values, unit and meaning.

The fields of `DrawOptions` are the declaration; allowed values, the command line's schema, `--help` and the glossary
are derived from them. Knows nothing of themes, views or traces.
"""

from __future__ import annotations

import json
import operator
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, SupportsIndex, TypeGuard, Union, get_args, get_origin, get_type_hints

from torchlens.base.errors import error, fail, nearest
from torchlens.settings.plain import is_mapping

_LATER_COLLAPSE = ("auto", "max")


def _option(default: object, doc: str, *, code: str = "", minimum: int | None = None) -> Any:
    """Declare one option. code: what a wrong value raises, `draw_<name>_invalid` if empty; minimum: of a number."""
    return field(default=default, metadata={"doc": doc, "code": code, "minimum": minimum})


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """Every option of one drawing, fully resolved. The comments of `--help` and the glossary come from here."""

    rolled: bool = _option(False, "draw each layer once and turn repetition into loops")
    depth: int = _option(1000, "levels of the module tree drawn open; deeper modules are one box each", minimum=1)
    direction: Literal["bottomup", "topdown", "leftright", "rightleft"] | None = _option(
        None, "flow of the graph; unset: bottomup", code="visualization_direction_invalid"
    )
    collapse: Literal["none"] = _option(
        "none", "how much of the graph is folded into boxes", code="collapse_mode_invalid"
    )
    node_style: Literal["default", "profiling"] = _option(
        "default", "profiling adds rows for time, output size, code line and function"
    )
    show_buffers: Literal["meaningful", "never", "always"] = _option(
        "meaningful", "which buffers are drawn; meaningful leaves out routine bookkeeping"
    )
    show_legend: bool | None = _option(None, "key of fills and shapes; unset: only with a colour channel")
    show_redundant_args: bool = _option(False, "show arguments that the shapes already say")
    color_by: Literal["time", "bytes", "flops"] | None = _option(
        None, "fill nodes by this value", code="encoding_source_invalid"
    )
    color_scale: Literal["linear", "rank"] = _option(
        "linear", "how values map to the colour ramp", code="encoding_scale_invalid"
    )
    font_size: int | None = _option(None, "size of node text in points; unset: the theme's", minimum=1)
    graph_attrs: Mapping[str, str | int | float | bool] | None = _option(
        None, "Graphviz attributes of the whole graph, by name"
    )
    caption: str | None = _option(None, "an extra caption line")
    file_format: str | None = _option(None, "svg, png, pdf or dot; unset: by extension", code="file_format_invalid")
    dpi: int | None = _option(None, "dots per inch of raster formats", minimum=1)
    engine: Literal["embedded", "system"] | None = _option(None, "program that lays the graph out; unset: embedded")
    pdf_font: str | None = _option(None, "path of a TrueType font to embed in PDF; unset: Helvetica")
    open_viewer: bool = _option(False, "open the written file")


@dataclass(frozen=True, slots=True)
class Option:
    """One option as data.

    type: bool, int, str or dict; choices: its closed set, empty if open; nullable: whether None is a value; code: what
    a wrong value raises.
    """

    name: str
    default: object
    type: type
    choices: tuple[str, ...]
    nullable: bool
    minimum: int | None
    code: str
    doc: str

    @property
    def allowed(self) -> tuple[str, ...]:
        """The values in words, for errors and help."""
        if self.choices:
            words = self.choices
        elif self.type is bool:
            words = ("true", "false")
        elif self.type is int:
            words = (f"a whole number of at least {self.minimum}",)
        elif self.type is dict:
            words = ("a mapping of attribute names to values",)
        else:
            words = ("text",)
        return (*words, "null") if self.nullable else words


@cache
def options() -> Mapping[str, Option]:
    """The declaration table by name, in the order of the fields."""
    hints = get_type_hints(DrawOptions)
    table: dict[str, Option] = {}
    for item in fields(DrawOptions):
        kind, choices, nullable = _read_hint(hints[item.name])
        code = item.metadata["code"] or f"draw_{item.name}_invalid"
        table[item.name] = Option(
            item.name, item.default, kind, choices, nullable, item.metadata["minimum"], code, item.metadata["doc"]
        )
    return types.MappingProxyType(table)


def _read_hint(hint: object) -> tuple[type, tuple[str, ...], bool]:
    parts: tuple[object, ...] = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    nullable = type(None) in parts
    (main,) = [part for part in parts if part is not type(None)]
    if get_origin(main) is Literal:
        return str, tuple(str(value) for value in get_args(main)), nullable
    return (main if isinstance(main, type) and get_origin(main) is None else dict), (), nullable


# -- checks
def validate_option(name: str, value: object, *, where: str = "") -> object:
    """The value as `DrawOptions` stores it. Raises the option's own code; where: words for the error's start."""
    option = options()[name]
    if value is None and option.nullable:
        return None
    accepted, stored = _convert(option, value)
    if accepted:
        return stored
    if name == "collapse" and _is_later_collapse(value):
        fail("collapse_unavailable", f"{where}collapse={value!r} is not available yet", got=value)
    fix = ""
    if option.choices and isinstance(value, str) and (close := nearest(value, option.choices, 1)):
        fix = f"perhaps you meant {close[0]!r}"
    raise error(option.code, f"{where}{name}={value!r} is not allowed", allowed=option.allowed, fix=fix, got=value)


def _convert(option: Option, value: object) -> tuple[bool, object]:
    """Whether the option takes the value, and how it is stored."""
    if option.type is bool:
        return isinstance(value, bool), value
    if option.type is int:
        number = operator.index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None
        return number is not None and (option.minimum is None or number >= option.minimum), number
    if option.type is str:
        text = str(value) if isinstance(value, (str, Path)) else None
        return text is not None and (not option.choices or text in option.choices), text
    return (True, dict(value)) if _is_attributes(value) else (False, value)


def _is_attributes(value: object) -> TypeGuard[Mapping[str, Any]]:
    return is_mapping(value) and all(
        isinstance(key, str) and isinstance(item, (str, int, float, bool)) for key, item in value.items()
    )


def _is_later_collapse(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    return number or value in _LATER_COLLAPSE


def check_keywords(names: Iterable[str]) -> None:
    """Refuse a keyword that is no option, naming the nearest one. Raises TypeError, as Python does."""
    known = (*options(), "view", "theme")
    for name in names:
        if name not in known:
            close = nearest(name, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Options: {', '.join(known)}."
            raise TypeError(f"draw() has no option {name!r}.{hint}")


def document() -> str:
    """The options as text: one per line with default, allowed values and meaning."""
    rows = [(o.name, _default_text(o.default), " | ".join(o.allowed), o.doc) for o in options().values()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{name:<{widths[0]}}  {default:<{widths[1]}}  {doc} ({allowed})" for name, default, allowed, doc in rows
    )


def _default_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
