"""Reads one settings file with its `extends` chain as one mapping, and checks its keys.

Shared by themes, views, collapse, encoding and figure entries. Errors name the file, the key and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from torchlens.base.errors import TorchLensError, error, fail, nearest
from torchlens.settings import catalog
from torchlens.settings.options import options, validate_option
from torchlens.settings.plain import is_list, is_mapping


def chain(
    group: str,
    source: str | Mapping[str, Any],
    extra: Sequence[str | Path] = (),
    *,
    base: str | None = None,
    code: str = "",
) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The name of a source and its ancestors as (place, keys), the base first.

    source: a name of the group, or a mapping with the keys of such a file. base: what a source without `extends`
    extends. A file that extends its own name means the next file of that name on the search path.
    Raises: the code for an unknown name, ConfigError[config_invalid] for a circle.
    """
    used: dict[str, int] = {}
    found: list[tuple[str, dict[str, Any]]] = []
    if isinstance(source, str):
        title, parent = source, source
    else:
        parent = _parent(source, base)
        title = f"{parent} (changed)" if parent else "given"
        found.append((f"the {group} given", {str(k): v for k, v in source.items() if k != "extends"}))
    explicit = True
    while parent is not None:
        if not isinstance(parent, str):
            refuse(found[-1][0], "extends", f"is not the name of a {group}", catalog.names(group, extra))
        skip = used.get(parent, 0)
        if skip >= len(catalog.find(group, parent, extra)):
            if skip == 0:
                raise _missing(group, parent, extra, code, found)
            if explicit:
                refuse(found[-1][0], "extends", f"leads back to {parent!r} in a circle")
            break
        entry = catalog.load(group, parent, extra, skip=skip)
        used[parent] = skip + 1
        explicit = entry.data.get("extends") is not None
        parent = _parent(entry.data, base)
        found.append((str(entry.path), {key: value for key, value in entry.data.items() if key != "extends"}))
    return title, found[::-1]


def _parent(keys: Mapping[str, Any], base: str | None) -> Any:
    named = keys.get("extends")
    return base if named is None else named


def _missing(
    group: str, name: str, extra: Sequence[str | Path], code: str, found: list[tuple[str, dict[str, Any]]]
) -> TorchLensError:
    if not found:
        return catalog.unknown(group, name, extra, code=code or "config_name_unknown")
    known = catalog.names(group, extra)
    return error("config_invalid", f"{found[-1][0]}: extends names no {group}: {name!r}", allowed=known, got=name)


def merge(maps: Iterable[Mapping[str, Any]], depth: int = 0) -> dict[str, Any]:
    """Later mappings over earlier ones, key by key down to this depth; below it a value replaces the whole value."""
    merged: dict[str, Any] = {}
    for mapping in maps:
        for key, value in mapping.items():
            old = merged.get(key)
            if depth > 0 and is_mapping(old) and is_mapping(value):
                merged[key] = merge((old, value), depth - 1)
            else:
                merged[key] = value
    return merged


# -- checks
def refuse(
    where: str, key: str, problem: str, allowed: Iterable[str] = (), *, got: object = None, fix: str = ""
) -> NoReturn:
    """Raise ConfigError[config_invalid] for one key of one file. fix: what helps where no allowed name is near."""
    allowed = tuple(allowed)
    close = nearest(str(got), allowed, 1) if got is not None else []
    fix = f"perhaps you meant {close[0]!r}" if close else fix
    fail("config_invalid", f"{where}: {key} {problem}", allowed=allowed, fix=fix, key=key, got=got)


def check_keys(where: str, prefix: str, mapping: object, allowed: Iterable[str]) -> Mapping[str, Any]:
    """The mapping, if it is one and has no other keys."""
    if not is_mapping(mapping):
        refuse(where, prefix, f"is not a mapping but {mapping!r}")
    allowed = tuple(allowed)
    for key in mapping:
        if key not in allowed:
            name = f"{prefix}.{key}" if prefix else str(key)
            refuse(where, name, "is not a known key", allowed, got=str(key), fix="leave it out")
    return mapping


def check_draw(where: str, mapping: object, skip: Iterable[str] = ()) -> dict[str, object]:
    """The options of a `draw:` block, each checked; None counts as an empty block. skip: those left out and unread."""
    block = check_keys(where, "draw", {} if mapping is None else mapping, options())
    read = (key for key in block if key not in skip)
    return {key: validate_option(key, block[key], where=f"{where}: draw.") for key in read}


def check_names(where: str, key: str, value: object, allowed: Iterable[str]) -> tuple[str, ...]:
    """A list of names out of a closed vocabulary; None counts as an empty list."""
    allowed = tuple(allowed)
    listed = () if value is None else value
    if not is_list(listed):
        refuse(where, key, f"is not a list but {value!r}")
    for name in listed:
        if name not in allowed:
            refuse(where, key, f"does not know {name!r}", allowed, got=name)
    return tuple(str(name) for name in listed)


def load_draw(group: str, name: str, extra: Sequence[str | Path] = ()) -> dict[str, object]:
    """The options of a file that holds a `draw:` block only, as collapse and encoding files do."""
    entry = catalog.load(group, name, extra)
    where = str(entry.path)
    return check_draw(where, check_keys(where, "", entry.data, ("draw",)).get("draw"))
