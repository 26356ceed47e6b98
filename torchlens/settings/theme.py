"""What a figure looks like: page, fills and borders by role, edges, fonts, colour ramps. Values only, from YAML.

A theme file extends another (the theme torchlens unless it says so) and may leave out anything; what it leaves out of
a role comes from the role `op`. Knows nothing of traces, and holds no rule about which node has which role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torchlens.base.colors import fill_colors, is_color, to_hex
from torchlens.settings.layers import chain, check_draw, check_keys, merge, refuse
from torchlens.settings.plain import is_list

DEFAULT = "torchlens"
# End of the name of a font that is its family in bold.
_BOLD = "-Bold"
ROLES = (
    "op", "input", "output", "trainable", "frozen", "mixed", "branch_test", "buffer", "constant", "module", "box",
    "segment", "ellipsis", "neutral", "edit", "changed", "backward",
)  # fmt: skip
EDGES = ("data",)
PAGE = "page"
DASHES = ("solid", "dashed", "dotted")
KEYS = ("extends", "page", "roles", "edges", "ramps", "fonts", "draw")
_EMPTY: Mapping[str, Any] = MappingProxyType({})


def _attribute(kind: str) -> Any:
    """kind: how the loader checks the attribute, see `_CHECKS`."""
    return field(metadata={"kind": kind})


@dataclass(frozen=True, slots=True)
class PageStyle:
    """The page. secondary: text colour of header, caption and key; cluster_margin in points, the rest in inches."""

    background: str = _attribute("color")
    text: str = _attribute("color")
    secondary: str = _attribute("color")
    font: str = _attribute("text")
    tooltips: bool = _attribute("flag")
    cluster_margin: float = _attribute("size")
    pad: float = _attribute("size")
    nodesep: float = _attribute("size")
    ranksep: float = _attribute("size")

    @property
    def family(self) -> str:
        """The font without its weight: engines know the widths of families only."""
        return self.font.removesuffix(_BOLD)

    @property
    def bold(self) -> bool:
        """Whether all text is bold."""
        return self.font.endswith(_BOLD)


@dataclass(frozen=True, slots=True)
class RoleStyle:
    """How nodes of one role look. None: the role does not set this; stroke_width in points; fill may be `a:b`.

    ring: the outline that stands for the fill while a colour channel has it; None: the fill's own colour.
    """

    fill: str | None = _attribute("fill")
    stroke: str | None = _attribute("color")
    stroke_width: float | None = _attribute("size")
    font_color: str | None = _attribute("color")
    dash: str | None = _attribute("dash")
    ring: str | None = _attribute("color")


@dataclass(frozen=True, slots=True)
class EdgeStyle:
    """How arrows of one kind look. width in points."""

    color: str = _attribute("color")
    width: float = _attribute("size")
    font_color: str = _attribute("color")


@dataclass(frozen=True, slots=True)
class FontSizes:
    """Sizes in points: node rows, edge labels, header notes with captions and key, and words that stand out."""

    base: float = _attribute("size")
    annotation: float = _attribute("size")
    secondary: float = _attribute("size")
    emphasis: float = _attribute("size")


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme with every role resolved. ramps: stops from low to high as drawn on this theme's page."""

    name: str
    page: PageStyle
    roles: Mapping[str, RoleStyle]
    edges: Mapping[str, EdgeStyle]
    fonts: FontSizes
    ramps: Mapping[str, tuple[str, ...]]
    draw: Mapping[str, object]


def load_theme(source: str | Mapping[str, Any] = DEFAULT, extra: Sequence[str | Path] = (), *, name: str = "") -> Theme:
    """Read a theme by name or from a mapping with the keys of a theme file.

    extra: folders searched first; name: what the theme is called, if not as the file or mapping says.

    Raises: InvalidArgumentError[visualization_theme_invalid] for an unknown name; ConfigError[config_invalid] naming
    file and key for anything wrong inside; an option's own code for a wrong value in `draw:`.
    """
    title, parts = chain("theme", source, extra, base=DEFAULT, code="visualization_theme_invalid")
    for where, part in parts:
        _check(where, part)
    merged = merge((part for _, part in parts), depth=2)
    where = parts[-1][0]
    page = _make(PageStyle, where, "page", merged["page"])
    return Theme(
        name=name or title,
        page=page,
        roles=_read_only({role: _role(where, role, merged["roles"], page) for role in ROLES}),
        edges=_read_only({kind: _make(EdgeStyle, where, kind, merged["edges"][kind]) for kind in EDGES}),
        fonts=_make(FontSizes, where, "fonts", merged["fonts"]),
        ramps=_read_only(_ramps(where, merged["ramps"])),
        draw=_read_only(check_draw(where, merged.get("draw"))),
    )


# -- checks of one file
def _check(where: str, part: Mapping[str, Any]) -> None:
    check_keys(where, "", part, KEYS)
    _check_style(where, "page", part.get("page", _EMPTY), PageStyle)
    _check_style(where, "fonts", part.get("fonts", _EMPTY), FontSizes)
    for key, names, style in (("roles", ROLES, RoleStyle), ("edges", EDGES, EdgeStyle)):
        for name, attributes in check_keys(where, key, part.get(key, _EMPTY), names).items():
            _check_style(where, f"{key}.{name}", attributes, style)
    for name, ramp in check_keys(where, "ramps", part.get("ramps", _EMPTY), part.get("ramps", ())).items():
        _check_ramp(where, f"ramps.{name}", ramp)
    check_draw(where, part.get("draw"))


def _check_style(where: str, prefix: str, attributes: object, style: type[Any]) -> None:
    kinds = {item.name: item.metadata["kind"] for item in fields(style)}
    for name, value in check_keys(where, prefix, attributes, kinds).items():
        accepts, wanted = _CHECKS[kinds[name]]
        if not (accepts(value) or (value is None and style is RoleStyle)):
            refuse(where, f"{prefix}.{name}", f"is not {wanted} but {value!r}")


def _check_ramp(where: str, key: str, ramp: object) -> None:
    if isinstance(ramp, str) or (is_list(ramp) and len(ramp) > 1 and all(map(is_color, ramp))):
        return
    refuse(where, key, f"is neither a list of two or more colours nor the name of another ramp but {ramp!r}")


def _is_fill(value: object) -> bool:
    return isinstance(value, str) and all(word in (PAGE, *ROLES) or is_color(word) for word in value.split(":"))


def _is_size(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "color": (is_color, "a colour"),
    "fill": (_is_fill, "a colour, a role or page, or several as a:b"),
    "size": (_is_size, "a number of at least 0"),
    "text": (lambda v: isinstance(v, str) and v.strip() != "", "a text"),
    "flag": (lambda v: isinstance(v, bool), "true or false"),
    "dash": (lambda v: v in DASHES, " or ".join(DASHES)),
}


# -- building
def _make(style: type[Any], where: str, prefix: str, attributes: Mapping[str, Any]) -> Any:
    """Build one style from checked attributes: colours as `#rrggbb`, numbers as floats."""
    values: dict[str, object] = {}
    for item in fields(style):
        if item.name not in attributes:
            refuse(where, f"{prefix}.{item.name}", "is set neither here nor in a theme it extends")
        values[item.name] = _plain(item.metadata["kind"], attributes[item.name])
    return style(**values)


def _role(where: str, role: str, roles: Mapping[str, Mapping[str, Any]], page: PageStyle) -> RoleStyle:
    """One role, completed from `op`."""
    attributes = {**roles["op"], **roles.get(role, {})}
    fill = attributes.get("fill")
    if fill is not None:
        attributes["fill"] = ":".join(_color_of(where, role, part, roles, page) for part in fill.split(":"))
    return _make(RoleStyle, where, f"roles.{role}", attributes)


def _color_of(where: str, role: str, word: str, roles: Mapping[str, Mapping[str, Any]], page: PageStyle) -> str:
    """The colour behind one word of a fill: `page`, another role with a colour of its own, or the colour itself."""
    if word == PAGE:
        return page.background
    color = roles[word].get("fill") if word in roles else word
    if not is_color(color):
        refuse(where, f"roles.{role}.fill", f"names a role without one colour of its own: {word!r}", got=word)
    return str(color)


def _plain(kind: str, value: Any) -> object:
    if value is None or kind in ("text", "flag", "dash"):
        return value
    if kind == "size":
        return float(value)
    return ":".join(map(to_hex, fill_colors(value)))


def _ramps(where: str, ramps: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for name in ramps:
        value, seen = ramps[name], [name]
        while isinstance(value, str):
            if value not in ramps or value in seen:
                refuse(where, f"ramps.{name}", f"names no ramp of its own colours: {value!r}", ramps, got=value)
            seen.append(value)
            value = ramps[value]
        table[name] = tuple(map(to_hex, value))
    return table


def _read_only(mapping: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(mapping)
