"""The command that draws one figure of a set alone. Knows the entry as it was written, and Hydra's way to quote."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from torchlens.settings.plain import is_list, is_mapping

_GROUPS = ("model", "input", "view", "theme", "collapse", "encoding")
_BARE = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = ("true", "false", "null", "nan", "inf")


def command(entry: Mapping[str, Any]) -> str:
    """The command line of a figure. entry: its keys in the figure file."""
    words: list[str] = []
    for group in _GROUPS:
        value = entry.get(group)
        if is_mapping(value):
            kind = value.get("kind", "auto") if group == "input" else "auto"
            words += [f"input={kind}"] if kind != "auto" else []
            words += [f"{group}.{key}={_text(item)}" for key, item in value.items() if key != "kind"]
        elif value is not None:
            words.append(f"{group}={value}")
    words += [f"draw.{key}={_text(value)}" for key, value in (entry.get("draw") or {}).items()]
    if entry.get("kind") is not None:
        words.append(f"figures.main.kind={entry['kind']}")
    if "annotate" in entry:
        words.append(f"figures.main.annotate={_text(entry['annotate'])}")
    return " ".join(["torchlens", *map(shlex.quote, words)])


def _text(value: Any) -> str:
    """A value as Hydra's overrides write it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if is_mapping(value):
        return "{" + ",".join(f"{key}:{_text(item)}" for key, item in value.items()) + "}"
    if is_list(value):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, str) and not (_BARE.fullmatch(value) and value.lower() not in _WORDS):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
