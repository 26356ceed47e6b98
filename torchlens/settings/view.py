"""A premade view: settings that answer one question, the evidence they need, and the caption lines to go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torchlens.settings import catalog
from torchlens.settings.evidence import FAMILIES
from torchlens.settings.layers import chain, check_draw, check_keys, check_names, merge, refuse

KEYS = ("question", "extends", "draw", "needs", "caption")
# The words of the caption lines belong to the figure; here is only which ones exist.
CAPTION_LINES = ("coverage", "quantity", "rank_order", "instrumented")
# The configuration's word for "no view"; the API says it with None.
PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class View:
    """A view, ready to fold. caption: names of caption lines in order."""

    name: str
    question: str
    draw: Mapping[str, object]
    needs: tuple[str, ...]
    caption: tuple[str, ...]


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
        refuse(parts[-1][0], "question", "is missing: say in one line what the view answers")
    return View(
        name=name or title,
        question=merged["question"],
        draw=MappingProxyType(check_draw(parts[-1][0], merged.get("draw"))),
        needs=tuple(merged.get("needs") or ()),
        caption=tuple(merged.get("caption") or ()),
    )


def _check(where: str, part: Mapping[str, Any]) -> None:
    check_keys(where, "", part, KEYS)
    if not isinstance(part.get("question", ""), str):
        refuse(where, "question", f"is not a text but {part['question']!r}")
    check_draw(where, part.get("draw"))
    check_names(where, "needs", part.get("needs"), FAMILIES)
    check_names(where, "caption", part.get("caption"), CAPTION_LINES)
