"""The only place where a number becomes text: bytes, counts, seconds, FLOPs, shapes, pass lists, argument values.

Promises one spelling per quantity, so that a row, a key and a table never disagree. Knows nothing of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, cast

# The empty unit is that of plain numbers.
Unit = Literal["s", "ns", "B", "FLOPs", ""]

# (factor, name) from the smallest unit to the largest, in the base unit of the quantity.
_BYTES = ((1, "B"), (1024, "KB"), (1024**2, "MB"), (1024**3, "GB"), (1024**4, "TB"))
_COUNTS = ((1, ""), (10**3, "K"), (10**6, "M"), (10**9, "B"), (10**12, "T"))
_FLOPS = ((1, "FLOPs"), (10**3, "KFLOPs"), (10**6, "MFLOPs"), (10**9, "GFLOPs"), (10**12, "TFLOPs"))
_SECONDS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))
_NANOSECONDS = ((1, "ns"), (10**3, "us"), (10**6, "ms"), (10**9, "s"))
_SCALES: dict[str, Sequence[tuple[float, str]]] = {"s": _SECONDS, "ns": _NANOSECONDS, "B": _BYTES, "FLOPs": _FLOPS}

_SHARE_OF_UNIT, _SHARE_OF_BYTES = 0.001, 1
_ARGUMENT_LIMIT = 40
ELLIPSIS = "…"


def bytes_text(n: int) -> str:
    """Size in bytes: whole below 1 KB, else one decimal in steps of 1024. bytes_text(4096) == "4.0 KB"."""
    if abs(n) < 1024:
        return f"{n} B"
    # A value that rounds up to 1024.0 belongs to the next unit.
    scaled, name = _scaled(n, _BYTES, lambda value: round(abs(value), 1) >= 1024)
    return f"{scaled:.1f} {name}"


def count_text(n: int) -> str:
    """Count: exact below 1000, else three significant digits with K, M, B or T. count_text(1610) == "1.61K"."""
    if abs(n) < 1000:
        return str(n)
    scaled, name = _scaled(n, _COUNTS, _reaches_thousand)
    return f"{_digits(scaled)}{name}"


def counted(n: int, noun: str) -> str:
    """A count with its noun, which takes an s. counted(1, "op") == "1 op", counted(1610, "op") == "1.61K ops"."""
    return f"{count_text(n)} {noun}{'' if n == 1 else 's'}"


def seconds_text(s: float) -> str:
    """Duration: three significant digits in ns, us, ms or s. seconds_text(0.0182) == "18.2 ms"."""
    if s == 0:
        return "0 s"
    scaled, name = _scaled(s, _SECONDS, _reaches_thousand)
    return f"{_digits(scaled, keep_zeros=True)} {name}"


def flops_text(n: int) -> str:
    """FLOPs: exact below 1000, else three significant digits. flops_text(4190000) == "4.19 MFLOPs"."""
    if abs(n) < 1000:
        return f"{n} FLOPs"
    scaled, name = _scaled(n, _FLOPS, _reaches_thousand)
    return f"{_digits(scaled, keep_zeros=True)} {name}"


def number_text(value: float) -> str:
    """Plain number: three significant digits, with K, M, B or T from a thousand on. number_text(4096) == "4.1K"."""
    if not math.isfinite(value) or value == 0 or not 1e-3 <= abs(value) < 1e15:
        return f"{value:.3g}"
    scaled, name = _scaled(value, _COUNTS, _reaches_thousand)
    return f"{_digits(scaled)}{name}"


def shape_text(shape: tuple[int, ...] | None) -> str:
    """Shape as a Python tuple; `scalar` for 0 dimensions, `irregular` where a tensor has none (nested)."""
    if shape is None:
        return "irregular"
    return str(tuple(shape)) if shape else "scalar"


def value_text(v: object) -> str:
    """Value of a 0-d tensor: ints exact, floats with three significant digits. value_text(-0.4921) == "-0.492"."""
    if isinstance(v, complex):
        return f"{v:.3g}"
    return f"{v:.3g}" if isinstance(v, float) else str(v)


def passes_text(passes: Iterable[int]) -> str:
    """Pass numbers sorted, each once, neighbours joined: passes_text([5, 1, 2, 3]) == "1-3,5"."""
    runs: list[list[int]] = []
    for number in sorted(set(passes)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def range_text(lo: float, hi: float, unit: Unit) -> tuple[str, str]:
    """Both ends of a key in the unit of the larger one, three significant digits, trailing zeros dropped.

    An end below a thousandth of that unit has a unit of its own, so that no end is a row of zeros; of bytes one that is
    less than the unit, as no byte is broken.
    lo and hi are in the base unit, the plain numbers of the empty unit have their own each. A time that is both ends
    reads in milliseconds from a tenth of one on.
    range_text(98e-6, 1.46e-3, "s") == ("0.098 ms", "1.46 ms").
    """
    if not unit:
        return number_text(lo), number_text(hi)
    largest = max(abs(lo), abs(hi))
    if largest == 0:
        return f"0 {unit}", f"0 {unit}"
    full = _reaches_kilobyte if unit == "B" else _reaches_thousand
    scaled, name = _scaled(largest, _SCALES[unit], full)
    if lo == hi and name == "us" and round(abs(scaled), 1) >= 100:
        scaled, name = scaled / 1000, "ms"
    factor = largest / scaled

    def text(end: float) -> str:
        if 0 < abs(end) < factor * (_SHARE_OF_BYTES if unit == "B" else _SHARE_OF_UNIT):
            own, own_name = _scaled(end, _SCALES[unit], full)
            return f"{_digits(own)} {own_name}"
        return f"{_digits(end / factor)} {name}"

    return text(lo), text(hi)


def argument_text(value: object) -> str:
    """Argument value: repr of numbers, strings bare, tuples in Python form, a tensor as `tensor`.

    At most 40 characters: a longer text is cut with an ellipsis, inside the closing bracket if it has one, so that
    brackets stay paired.
    """
    text = _argument(value)
    if len(text) <= _ARGUMENT_LIMIT:
        return text
    closing = text[-1] if text[0] in "([" and text[-1] in ")]" else ""
    return text[: _ARGUMENT_LIMIT - 1 - len(closing)].rstrip() + ELLIPSIS + closing


def _argument(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (bool, int, float, complex)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        items = cast("Sequence[object]", value)
        inner = ", ".join(_argument(item) for item in items)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    # A tensor spec is known here by its geometry alone, so that this module needs no record type.
    return "tensor" if hasattr(value, "shape") and hasattr(value, "dtype") else str(value)


def _scaled(value: float, scale: Sequence[tuple[float, str]], full: Callable[[float], bool]) -> tuple[float, str]:
    """The value in its largest unit of at least 1, moved up once more if rounding fills that unit."""
    position = 0
    while position + 1 < len(scale) and abs(value) >= scale[position + 1][0]:
        position += 1
    scaled = value / scale[position][0]
    if position + 1 < len(scale) and full(scaled):
        position += 1
        scaled = value / scale[position][0]
    return scaled, scale[position][1]


def _reaches_kilobyte(value: float) -> bool:
    return round(abs(value)) >= 1024


def _reaches_thousand(value: float) -> bool:
    return float(f"{abs(value):.3g}") >= 1000


def _digits(value: float, *, keep_zeros: bool = False) -> str:
    """Three significant digits, never with an exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1000:
        return f"{value:.0f}"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return text if keep_zeros or "." not in text else text.rstrip("0").rstrip(".")
