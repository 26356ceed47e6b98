"""Cutting, wrapping and cleaning of text that goes into a figure. Knows nothing of escaping or fonts."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from torchlens.base.units import ELLIPSIS

_OPENING, _CLOSING = "([{", ")]}"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def truncate(text: str, limit: int) -> str:
    """The text in at most `limit` characters (at least 1), its end replaced by an ellipsis if it is longer."""
    if len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)].rstrip() + ELLIPSIS


def wrap(text: str, limit: int, separators: Sequence[str]) -> list[str]:
    """Break a text into lines of at most `limit` characters, only behind one of the separators.

    A separator inside brackets is no place to break: `kernel_size=(3, 3)` stays together. A piece longer than the
    limit stays whole. The separator ends its line, without its trailing blank.
    """
    lines: list[str] = []
    line = ""
    for piece in _pieces(text, separators):
        if line and len((line + piece).rstrip()) > limit:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line or not lines else lines


def listing(parts: Sequence[str], limit: int) -> str:
    """Parts with commas between; of a list of more than `limit` characters the first ones and the last: `1,3,…,99`."""
    text = ",".join(parts)
    if len(text) <= limit or len(parts) < 4:
        return text
    kept = len(parts) - 2
    while kept > 1 and len(",".join([*parts[:kept], ELLIPSIS, parts[-1]])) > limit:
        kept = min(kept - 1, limit)
    return ",".join([*parts[:kept], ELLIPSIS, parts[-1]])


def fill(text: str, limit: int) -> list[str]:
    """Break prose into lines of at most `limit` characters, at blanks where it has any. A text that fits is kept."""
    return [text] if len(text) <= limit else textwrap.wrap(text, limit, break_on_hyphens=False)


def clean(text: str) -> str:
    """Replace each character that no figure format can hold by U+FFFD: controls, lone surrogates, non-characters.

    A line break stays: what it becomes is the business of the format's writer.
    """
    if text.isprintable():
        return text
    return "".join(_REPLACEMENT if _is_unprintable(char) else char for char in text)


def _pieces(text: str, separators: Sequence[str]) -> list[str]:
    """The text cut behind every separator that stands outside brackets; joined they give the text again."""
    paired = sum(char in _OPENING for char in text) == sum(char in _CLOSING for char in text)
    pieces: list[str] = []
    start = position = depth = 0
    while position < len(text):
        char = text[position]
        depth += (char in _OPENING) - (char in _CLOSING) if paired else 0
        found = next((s for s in separators if text.startswith(s, position)), None) if depth <= 0 else None
        if found:
            position += len(found)
            pieces.append(text[start:position])
            start = position
        else:
            position += 1
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _is_unprintable(char: str) -> bool:
    return (unicodedata.category(char) in ("Cc", "Cs") and char != "\n") or ord(char) & 0xFFFE == 0xFFFE
