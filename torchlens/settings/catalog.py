"""Finds and reads the files of `conf/`: views, themes, models and the other groups, by name.

Group names are singular; their folder may be singular or plural. Searched in order: the folders handed in, those of
the environment variable TORCHLENS_CONF, the packaged ones; never the working directory. Knows no group's meaning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from torchlens.base.errors import TorchLensError, error, fail, nearest

GROUPS = {
    "model": "models",
    "input": "inputs",
    "view": "views",
    "theme": "themes",
    "collapse": "collapse",
    "encoding": "encodings",
    "figures": "figures",
    "output": "output",
}
VARIABLE = "TORCHLENS_CONF"
# Files of a group's folder that hold numbers and are no choice of the group.
DATA_FILES = {("collapse", "limits")}


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the catalog: its group and name, its keys as plain values, and where it was found."""

    group: str
    name: str
    data: dict[str, Any]
    path: Path


def packaged() -> Path:
    """The folder that came with this package, beside it when installed, one level up in a checkout.

    Found by path: `importlib.resources` answers with another checkout's folder when an editable install points there.
    """
    package = Path(__file__).resolve().parents[1]
    beside, above = package / "conf", package.parent / "conf"
    if beside.is_dir():
        return beside
    config = above / "config.yaml"
    if config.is_file() and config.read_text(encoding="utf-8").startswith("# torchlens"):
        return above
    raise error("config_invalid", f"the packaged configuration folder is missing: {beside}", fix="reinstall torchlens")


def folders(extra: Sequence[str | Path] = ()) -> list[Path]:
    """The search path, first match wins. Raises ConfigError[config_invalid] for a folder that does not exist."""
    listed = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    found: list[Path] = []
    for folder, source in (*((f, "--config-dir") for f in extra), *((f, VARIABLE) for f in listed)):
        path = Path(folder).expanduser().resolve()
        if not path.is_dir():
            fail(
                "config_invalid", f"{source} names a folder that does not exist: {path}", fix="give an existing folder"
            )
        found.append(path)
    return [*dict.fromkeys(found), packaged()]


def group_folders(folder: Path, group: str) -> list[Path]:
    """The existing spellings of a group's folder, singular first."""
    return [path for name in dict.fromkeys((group, GROUPS[group])) if (path := folder / name).is_dir()]


def names(group: str, extra: Sequence[str | Path] = ()) -> list[str]:
    """The names of a group, in alphabetical order."""
    return sorted({path.stem for path in _files(group, extra)})


def find(group: str, name: str, extra: Sequence[str | Path] = ()) -> list[Path]:
    """Every file of this name along the search path; the first one counts, the others can be extended by it."""
    return [path for path in _files(group, extra) if path.stem == name]


def load(group: str, name: str, extra: Sequence[str | Path] = (), *, skip: int = 0) -> Entry:
    """Read one file of a group. skip: how many earlier matches to pass over.

    Raises: UnknownNameError[config_name_unknown] naming the nearest and all names; ConfigError[config_invalid].
    """
    paths = find(group, name, extra)[skip:]
    if not paths:
        raise unknown(group, name, extra)
    return read(group, name, paths[0])


def unknown(
    group: str, name: object, extra: Sequence[str | Path] = (), *, code: str = "config_name_unknown"
) -> TorchLensError:
    """The error for a name that the group does not have."""
    known = names(group, extra)
    close = nearest(str(name), known, 1)
    fix = f"perhaps you meant {close[0]!r}" if close else ""
    word = "set of figures" if group == "figures" else group
    return error(code, f"no {word} is named {name!r}", allowed=known, fix=fix, got=name)


def read(group: str, name: str, path: Path) -> Entry:
    """Read one file as plain values; the caller gets a copy of its own."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        data = OmegaConf.to_container(parse(path), resolve=True)
    except OmegaConfBaseException as exc:
        what = f"{path}: an interpolation has no value: {str(exc).splitlines()[0]}"
        raise error("config_invalid", what, fix="write the value itself") from exc
    return Entry(group, name, cast("dict[str, Any]", data), path)


def question(path: Path) -> str:
    """What a file is for in one line: its `question:`, else its first comment. Reads no YAML, so that help is quick."""
    lines = path.read_text(encoding="utf-8").splitlines()
    asked = next((line.partition(":")[2] for line in lines if line.startswith("question:")), "")
    said = next((line.lstrip("# ") for line in lines if line.startswith("#") and not line.startswith("# @")), "")
    return asked.strip().strip("\"'") or said.strip()


def data_file(group: str, name: str) -> Path:
    """The first file of this name along the search path, one of DATA_FILES."""
    return next(path for path in _all_files(group, ()) if path.stem == name)


def _files(group: str, extra: Sequence[str | Path]) -> Iterator[Path]:
    return (path for path in _all_files(group, extra) if (group, path.stem) not in DATA_FILES)


def _all_files(group: str, extra: Sequence[str | Path]) -> Iterator[Path]:
    for folder in folders(extra):
        for place in group_folders(folder, group):
            yield from sorted(place.glob("*.yaml"))


def parse(path: Path) -> Any:
    """The parsed file, as an OmegaConf node shared by all callers.

    Raises: ConfigError[config_invalid] with file and line if it is not YAML, or not a mapping.
    """
    return _parse(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _parse(path: str, stamp: int) -> Any:
    """The parsed file, kept for as long as the file is unchanged (stamp: its modification time in nanoseconds)."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        node = OmegaConf.load(path)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        raise error("config_invalid", f"{place}: not valid YAML: {exc.problem}", fix="correct that line") from exc
    except (yaml.YAMLError, OmegaConfBaseException, UnicodeDecodeError, OSError) as exc:
        raise error("config_invalid", f"{path}: cannot be read: {exc}", fix="correct the file") from exc
    if not OmegaConf.is_dict(node):
        fail("config_invalid", f"{path}: the file is not a mapping of keys to values", fix="write key: value lines")
    return node
