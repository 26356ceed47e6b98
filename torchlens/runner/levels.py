"""Numbers as options of the group `collapse`: `collapse=0.25`, and lists and ranges of them in a sweep.

Hydra takes names only as options of a group. A number becomes one here: it is registered as a configuration of that
name, and written as text on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep

from torchlens.settings.options import validate_option

GROUP = "collapse"
# Digits that tell two levels apart; steps of a range are not exact.
_DIGITS = 10


def level(name: object) -> float | None:
    """The number that an option of the group is, None if it is a name. Raises: the code of a level out of bounds."""
    if isinstance(name, str):
        try:
            name = float(name)
        except ValueError:
            return None
    if isinstance(name, bool) or not isinstance(name, (int, float)):
        return None
    return cast("float", validate_option(GROUP, float(name)))


def with_named_levels(overrides: Sequence[Override], texts: Sequence[str]) -> list[str]:
    """The words of the command line with every level as a quoted name that Hydra knows from now on."""
    return [_named(override, text) for override, text in zip(overrides, texts, strict=True)]


def _named(override: Override, text: str) -> str:
    if override.key_or_group != GROUP or override.is_delete():
        return text
    value: Any = override.value()
    if isinstance(value, RangeSweep):
        items: list[Any] = list(cast("Iterable[Any]", value.range()))
    elif isinstance(value, ChoiceSweep) and value.simple_form:
        items = list(value.list)
    else:
        items = [value]
    words = [_option(getattr(item, "text", item)) for item in items]
    return text if None in words else f"{text.partition('=')[0]}={','.join(str(word) for word in words)}"


def _option(item: object) -> str | None:
    """An option as it is written, None if it is neither a level nor a plain name."""
    number = level(item)
    if number is None:
        return item if isinstance(item, str) and item.isidentifier() else None
    name = f"{number:.{_DIGITS}g}"
    ConfigStore.instance().store(group=GROUP, name=name, node={"draw": {GROUP: float(name)}})
    return f"'{name}'"
