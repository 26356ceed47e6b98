"""The two languages of text in DOT: inside an HTML-like label, and inside quotes. The one place that escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchlens.base.text import clean, truncate

# Characters. An engine reads 16,384 bytes of one text, and escaping makes up to five of one.
TEXT_LIMIT, TOOLTIP_LIMIT = 4000, 2000

_HTML = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "[": "&#91;",
        "]": "&#93;",
        "\\": "&#92;&#92;",
        "\n": "<BR/>",
    }
)
_UNSAFE_ID = re.compile(r"[^A-Za-z0-9_.:>~-]")
_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="{}">{}</TABLE>'


def safe_id(name: str) -> str:
    """A name as an id of SVG: other characters than those of labels and addresses become `_`."""
    return _UNSAFE_ID.sub("_", name)


def html(text: str) -> str:
    """Text inside an HTML-like label."""
    return clean(text).translate(_HTML)


def quote(text: str) -> str:
    """A quoted attribute value; `\\N` and the like stay as they are written."""
    return f'"{clean(truncate(text, TEXT_LIMIT)).translate(_QUOTED)}"'


def quote_label(text: str) -> str:
    """A quoted label: an engine reads entities in it."""
    return quote(text).replace("&", "&amp;")


def quote_tooltip(text: str) -> str:
    """A quoted tooltip: an engine reads entities in it, and what a backslash stands for twice over."""
    return quote(truncate(text, TOOLTIP_LIMIT)).replace("&", "&amp;").replace("\\\\", "\\" * 4)


def number(value: float) -> str:
    """A number in a fixed form: two decimals at most, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Html(str):
    """Text that is an HTML-like label already, brackets included."""

    __slots__ = ()


def attribute_list(values: Mapping[str, str | float | None]) -> str:
    """`[name=value ...]`, unset ones left out."""
    parts: list[str] = []
    for name, value in values.items():
        if value is not None:
            parts.append(f"{name}={_value(name, value)}")
    return f"[{' '.join(parts)}]"


def _value(name: str, value: str | float) -> str:
    if isinstance(value, Html):
        return value
    if name == "tooltip":
        return quote_tooltip(str(value))
    return quote(value) if isinstance(value, str) else number(value)


def strong(escaped: str, bold: bool) -> str:
    """Bold text; an empty element would be a syntax error."""
    return f"<B>{escaped}</B>" if bold and escaped else escaped
