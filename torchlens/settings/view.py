"""A premade view: settings that answer one question, the evidence they need, and the caption lines to go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torchlens.settings import catalog
from torchlens.settings.deferred import RESOLVE, FromTrace, is_band, is_from_trace, read_band
from torchlens.settings.evidence import NEEDS, WISHES
from torchlens.settings.layers import chain, check_draw, check_keys, check_names, merge, refuse
from torchlens.settings.plain import is_mapping
from torchlens.settings.resolvers import RESOLVERS

KEYS = ("question", "extends", "draw", "needs", "caption", "fallback")
# The words of the caption lines belong to the figure; here is only which ones exist.
CAPTION_LINES = (
    "coverage", "quantity", "rank_order", "instrumented", "area", "focus", "columns", "usual", "nonfinite", "first",
)  # fmt: skip
# What may be done with a wish that cannot be met.
FALLBACKS = ("drop",)
# The configuration's word for "no view"; the API says it with None.
PLAIN = "plain"
_COLLAPSE = "collapse"


@dataclass(frozen=True, slots=True)
class View:
    """A view, ready to fold.

    draw: option -> value, `FromTrace` where a trace has to answer, `Band` where a page is to have a size; needs: names
    of what a trace must hold; caption: names of caption lines in order; fallback: option -> what is done where the
    wish for it cannot be met.
    """

    name: str
    question: str
    draw: Mapping[str, object]
    needs: tuple[str, ...]
    caption: tuple[str, ...]
    fallback: Mapping[str, str]


def view_names(extra: Sequence[str | Path] = ()) -> list[str]:
    """The names that `view=` takes."""
    return [name for name in catalog.names("view", extra) if name != PLAIN]


def load_view(source: str | Mapping[str, Any], extra: Sequence[str | Path] = (), *, name: str = "") -> View:
    """Read a view by name or from a mapping with the keys of a view file.

    extra: folders searched first; name: what the view is called, if not as the file or mapping says.

    Raises: InvalidArgumentError[draw_view_invalid] for an unknown name; ConfigError[config_invalid] naming file and
    key for anything wrong inside; an option's own code for a wrong value in `draw:`.
    """
    title, parts = chain("view", source, extra, code="draw_view_invalid")
    for where, part in parts:
        _check(where, part)
    merged = merge((part for _, part in parts), depth=1)
    if not merged.get("question"):
        refuse(parts[-1][0], "question", "is missing", fix="say in one line what the view answers")
    return View(
        name=name or title,
        question=merged["question"],
        draw=MappingProxyType(_read_draw(parts[-1][0], merged.get("draw"))),
        needs=tuple(merged.get("needs") or ()),
        caption=tuple(merged.get("caption") or ()),
        fallback=MappingProxyType(dict(merged.get("fallback") or {})),
    )


def _check(where: str, part: Mapping[str, Any]) -> None:
    check_keys(where, "", part, KEYS)
    if not isinstance(part.get("question", ""), str):
        refuse(where, "question", f"is not a text but {part['question']!r}")
    _read_draw(where, part.get("draw"))
    check_names(where, "needs", part.get("needs"), NEEDS)
    check_names(where, "caption", part.get("caption"), CAPTION_LINES)
    for option, action in check_keys(where, "fallback", part.get("fallback") or {}, WISHES).items():
        if action not in FALLBACKS:
            refuse(where, f"fallback.{option}", f"does not know {action!r}", FALLBACKS, got=action)


def _read_draw(where: str, block: object) -> dict[str, object]:
    """The options of a `draw:` block; what only a view may write becomes a value of its own."""
    if not is_mapping(block):
        return check_draw(where, block)
    deferred = {str(key): value for key, value in block.items() if is_from_trace(value)}
    found: dict[str, object] = {key: _resolver(where, key, value[RESOLVE]) for key, value in deferred.items()}
    if is_band(block.get(_COLLAPSE)):
        found[_COLLAPSE] = _band(where, block[_COLLAPSE])
    plain = check_draw(where, block, skip=found)
    return {str(key): found[key] if key in found else plain[key] for key in block}


def _resolver(where: str, option: str, name: object) -> FromTrace:
    if name not in RESOLVERS:
        refuse(where, f"draw.{option}", f"does not know the resolver {name!r}", RESOLVERS, got=name)
    answers = RESOLVERS[str(name)].options
    if option not in answers:
        refuse(where, f"draw.{option}", f"is no option that {name} answers", answers)
    return FromTrace(str(name))


def _band(where: str, value: Mapping[str, Any]) -> object:
    band = read_band(value)
    if band is None:
        example = "{band: [100, 220], target: 160}, target within the band"
        refuse(where, "draw.collapse", f"is no band of nodes but {dict(value)!r}", (example,))
    return band
