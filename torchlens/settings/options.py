"""Every option of a drawing, declared once: name, type, default, allowed values, unit and meaning.

The fields of `DrawOptions` are the declaration; allowed values, the command line's schema, `--help` and the glossary
are derived from them. Knows nothing of themes, views or traces.
"""

from __future__ import annotations

import json
import math
import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, SupportsIndex, TypeGuard, Union, get_args, get_origin, get_type_hints

from torchlens.base.errors import error, fail, nearest
from torchlens.settings.deferred import Band
from torchlens.settings.plain import is_mapping
from torchlens.settings.rules import WORDS as RULES
from torchlens.settings.rules import check_rules
from torchlens.settings.sources import ColorSource, SizeSource, StackSource

FUNCTION = types.FunctionType
# What a hint may have beside its main type.
_BESIDE: tuple[object, ...] = (float, Band)
# Rows that `node_label_fields` may list; `label` and `memory` are other words for `name` and `bytes`.
LabelField = Literal[
    "name", "label", "type", "class", "shape", "shape_summary", "dtype", "device", "exceptions", "memory", "bytes",
    "nonfinite",
    "value", "saved", "args", "params", "module", "address", "pass", "contents", "flops", "time", "device_time", "call",
    "fn",
]  # fmt: skip


def _option(default: object, doc: str, *, code: str = "", minimum: float | None = None, level_code: str = "") -> Any:
    """Declare one option. code: what a wrong value raises, `draw_<name>_invalid` if empty; minimum: of a number;
    level_code: what a number outside 0 to 1 raises, where the words of the option are marks on that scale.
    """
    return field(default=default, metadata={"doc": doc, "code": code, "minimum": minimum, "level_code": level_code})


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """Every option of one drawing, fully resolved. The comments of `--help` and the glossary come from here."""

    rolled: bool = _option(False, "draw each layer once and turn repetition into loops")
    depth: int = _option(1000, "levels of the module tree drawn open; deeper modules are one box each", minimum=1)
    module: str | None = _option(
        None, "address of the module to draw the inside of, or of one call of it, `blocks.1:2`; unset: the whole model"
    )
    direction: Literal["bottomup", "topdown", "leftright", "rightleft"] | None = _option(
        None, "flow of the graph; unset: bottomup", code="visualization_direction_invalid"
    )
    # A band is what a view asks for; nobody else may, see `settings.view`.
    collapse: Literal["none", "auto", "max"] | float | Band = _option(  # noqa: RUF009
        "none", "how much of the graph is folded into boxes; auto: until it fits a readable page",
        code="collapse_mode_invalid", level_code="collapse_level_invalid",
    )  # fmt: skip
    fold_repeats: bool | None = _option(
        None, "draw the first of identical modules in a row and count the rest; unset: as collapse= needs it",
        code="fold_repeats_invalid",
    )  # fmt: skip
    collapse_rules: Sequence[Mapping[str, str]] | None = _option(
        None, "rules by class, address or op: fold modules to boxes, keep them open, hide ops behind dashed arrows",
        code="collapse_rules_invalid",
    )  # fmt: skip
    node_style: Literal["default", "profiling", "attention"] = _option(
        "default", "profiling adds rows for time, output size, code line and function; attention those of its parts"
    )
    node_label_fields: Sequence[LabelField] | None = _option(
        None, "rows of the node labels in this order; unset: the usual ones", code="node_label_field_invalid"
    )
    show_buffers: Literal["meaningful", "never", "always"] = _option(
        "meaningful", "which buffers are drawn; meaningful leaves out routine bookkeeping"
    )
    show_exceptions: bool = _option(False, "show dtype and device where they are not those of most tensors")
    show_nonfinite: bool = _option(False, "mark what holds NaN or Inf, where that starts, and what was not checked")
    show_orphans: bool = _option(False, "draw the ops that no input leads to and that lead nowhere")
    show_legend: bool | None = _option(
        None, "key of fills and shapes; unset: only with a colour channel or a focused module"
    )
    show_redundant_args: bool = _option(False, "show arguments that the shapes already say")
    show_saved_for_backward: bool = _option(False, "show how many tensors each op kept for the backward pass")
    show_edge_shapes: bool = _option(False, "write the shape of its tensor on each arrow")
    show_containers: Literal["labels", False] = _option(
        False, "labels: write the key or index of each result on the arrow to its output"
    )
    color_by: ColorSource | Callable[..., Any] | None = _option(  # noqa: RUF009 - the same field as all the others
        None, "fill nodes by this value, a field of their records or a function of one", code="encoding_source_invalid"
    )
    color_scale: Literal["linear", "rank", "log"] = _option(
        "linear", "how values map to the colour ramp", code="encoding_scale_invalid"
    )
    size_by: SizeSource | Callable[..., Any] | None = _option(  # noqa: RUF009
        None, "let the area of nodes grow with this value; dims: elements per item", code="encoding_source_invalid"
    )
    size_scale: Literal["sqrt", "linear"] = _option("sqrt", "how values map to area", code="encoding_scale_invalid")
    size_cap: float | None = _option(
        None, "area of the largest value in areas of the smallest; unset: 2, for dims 4", minimum=1
    )
    stack_by: StackSource | Callable[..., Any] | None = _option(  # noqa: RUF009
        None, "one column per value; true or auto: per pass of the loop", code="encoding_source_invalid"
    )
    node_spec_fn: Callable[..., Any] | None = _option(  # noqa: RUF009
        None, "function (record, spec) that has the last word on how each node is drawn"
    )
    collapsed_node_spec_fn: Callable[..., Any] | None = _option(  # noqa: RUF009
        None, "the same for modules drawn as one node"
    )
    font_size: int | None = _option(None, "size of node text in points; unset: the theme's", minimum=1)
    graph_attrs: Mapping[str, str | int | float | bool] | None = _option(
        None, "Graphviz attributes of the whole graph, by name"
    )
    caption: str | None = _option(None, "an extra caption line")
    file_format: str | None = _option(None, "pdf, svg, png, jpg, dot; unset: by extension", code="file_format_invalid")
    dpi: int | None = _option(None, "dots per inch of raster formats", minimum=1)
    layout: Literal["auto", "dot", "rank"] = _option(
        "auto", "how nodes are placed: dot by the engine, rank in plain layers for very large graphs; auto: by size"
    )
    fit_width: int | None = _option(
        None, "width in points the figure is to be printed at: picks the direction with the larger text", minimum=1
    )
    engine: Literal["embedded", "system"] | None = _option(None, "program that lays the graph out; unset: embedded")
    pdf_font: str | None = _option(None, "path of a TrueType font to embed in PDF; unset: Helvetica")
    open_viewer: bool = _option(False, "open the written file")


@dataclass(frozen=True, slots=True)
class Option:
    """One option as data.

    type: bool, int, float, str, dict, FUNCTION, or tuple for a list of words or rules; choices: the closed set of it or
    of a list's items, empty if open; nullable, off: whether None and False are values; on: whether True is one, another
    word for the first choice; calls: whether a function is one beside the words; levels: whether a number from 0 to 1
    is;
    code: what a wrong value raises, and level_code: a number outside of that.
    """

    name: str
    default: object
    type: type
    choices: tuple[str, ...]
    nullable: bool
    minimum: float | None
    code: str
    doc: str
    off: bool = False
    on: bool = False
    calls: bool = False
    levels: bool = False
    level_code: str = ""

    @property
    def allowed(self) -> tuple[str, ...]:
        """The values in words, for errors and help."""
        if self.type is tuple and not self.choices:
            words = (RULES,)
        elif self.type is tuple:
            words = ("a list of: " + ", ".join(self.choices),)
        elif self.choices:
            words = (*self.choices, *["false"] * self.off, *["true"] * self.on)
            words += ("a function (in YAML a _target_)",) * self.calls + ("a number from 0 to 1",) * self.levels
        elif self.type is bool:
            words = ("true", "false")
        elif self.type is int:
            words = (f"a whole number of at least {self.minimum}",)
        elif self.type is float:
            words = (f"a number of at least {self.minimum:g}",)
        elif self.type is FUNCTION:
            words = ("a function (in YAML a _target_)",)
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
        about = item.metadata
        code = about["code"] or f"draw_{item.name}_invalid"
        table[item.name] = Option(
            item.name,
            item.default,
            **_read_hint(hints[item.name]),
            minimum=about["minimum"],
            code=code,
            doc=about["doc"],
            level_code=about["level_code"],
        )
    return types.MappingProxyType(table)


def _read_hint(hint: object) -> dict[str, Any]:
    """What a type hint says about an option's values."""
    parts: tuple[object, ...] = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    nullable = type(None) in parts
    mains = [part for part in parts if part is not type(None)]
    levels = len(mains) > 1 and float in mains
    calls = len(mains) > 1 and not levels
    (main,) = [part for part in mains if len(mains) == 1 or (part not in _BESIDE and get_origin(part) is not Callable)]
    kind: type = main if isinstance(main, type) and get_origin(main) is None else dict
    words: tuple[object, ...] = ()
    if get_origin(main) is Sequence:
        kind, words = tuple, get_args(get_args(main)[0])
    elif get_origin(main) is Callable:
        kind = FUNCTION
    elif get_origin(main) is Literal:
        kind, words = str, get_args(main)
    choices = tuple(word for word in words if isinstance(word, str))
    return {
        "type": kind,
        "choices": choices,
        "nullable": nullable,
        "off": False in words,
        "on": True in words,
        "calls": calls,
        "levels": levels,
    }


# -- checks
def validate_option(name: str, value: object, *, where: str = "") -> object:
    """The value as `DrawOptions` stores it. Raises the option's own code; where: words for the error's start."""
    option = options()[name]
    if (value is None and option.nullable) or (value is False and option.off):
        return value
    if option.type is tuple and not option.choices:
        return check_rules(value, where)
    accepted, stored = _convert(option, value)
    if accepted:
        return stored
    if option.levels and _is_number(value):
        fail(option.level_code, f"{where}{name}={value!r} is no level", allowed=option.allowed, got=value)
    fix = _nearest_choice(option, value)
    raise error(option.code, f"{where}{name}={value!r} is not allowed", allowed=option.allowed, fix=fix, got=value)


def _nearest_choice(option: Option, value: object) -> str:
    """Advice where a word is no choice, or an item of a list is none."""
    if option.type is tuple and not _is_list(value):
        return f'write a list, such as ["{option.choices[0]}"]'
    for word in value if _is_list(value) else (value,):
        if isinstance(word, str) and word not in option.choices and (close := nearest(word, option.choices, 1)):
            return f"perhaps you meant {close[0]!r}" + (f" by {word!r}" if word is not value else "")
    return ""


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _convert(option: Option, value: object) -> tuple[bool, object]:
    """Whether the option takes the value, and how it is stored."""
    if option.type is bool:
        return isinstance(value, bool), value
    if option.type is int:
        number = operator.index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None
        return number is not None and (option.minimum is None or number >= option.minimum), number
    if option.type is float:
        good = _is_number(value) and math.isfinite(value) and (option.minimum is None or value >= option.minimum)
        return good, float(value) if _is_number(value) else value
    if option.on and value is True:
        return True, option.choices[0]
    if option.levels and _is_number(value):
        return 0 <= value <= 1, float(value)
    if option.calls and callable(value) and not isinstance(value, type):
        return True, value
    if option.type is str:
        text = str(value) if isinstance(value, (str, Path)) else None
        return text is not None and (not option.choices or text in option.choices), text
    if option.type is tuple:
        return (
            (True, tuple(value))
            if _is_list(value) and all(item in option.choices for item in value)
            else (False, value)
        )
    if option.type is FUNCTION:
        return callable(value) and not isinstance(value, type), value
    return (True, dict(value)) if _is_attributes(value) else (False, value)


def _is_attributes(value: object) -> TypeGuard[Mapping[str, Any]]:
    return is_mapping(value) and all(
        isinstance(key, str) and isinstance(item, (str, int, float, bool)) for key, item in value.items()
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
