"""Reads the command line into flags and overrides, in any order. Knows neither torch nor Hydra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torchlens.base.errors import fail, nearest

# Flag -> its long form. Those in the second table take a value.
_SWITCHES = {
    "-h": "--help", "--help": "--help", "--version": "--version", "-m": "--multirun", "--multirun": "--multirun",
    "-r": "--run", "--run": "--run", "--resolve": "--resolve", "--hydra-help": "--hydra-help",
    "-sc": "--shell-completion", "--shell-completion": "--shell-completion",
}  # fmt: skip
_VALUED = {
    "-cd": "--config-dir", "--config-dir": "--config-dir", "-cn": "--config-name", "--config-name": "--config-name",
    "-c": "--cfg", "--cfg": "--cfg", "-p": "--package", "--package": "--package", "-i": "--info", "--info": "--info",
}  # fmt: skip
# Flags that Hydra answers itself; no job runs.
_HYDRA = ("--cfg", "--info", "--hydra-help", "--shell-completion", "--resolve", "--package")
# Hydra's other spelling of --multirun.
_MULTIRUN = "hydra.mode=MULTIRUN"


@dataclass
class Arguments:
    """The command line taken apart. hydra: flags with values to hand on, none of which runs a job."""

    overrides: list[str] = field(default_factory=list)
    config_dirs: list[str] = field(default_factory=list)
    config_name: str = "config"
    help: bool = False
    version: bool = False
    multirun: bool = False
    hydra: list[str] = field(default_factory=list)


def read(argv: Sequence[str]) -> Arguments:
    """Take the words after the program's name apart. Raises ConfigError[config_invalid] for an unknown flag."""
    found = Arguments()
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            found.overrides.extend(words)
            break
        if not word.startswith("-"):
            found.overrides.append(word)
            continue
        name, equals, value = word.partition("=")
        if name in _VALUED:
            _take(found, _VALUED[name], value if equals else _next(_VALUED[name], words))
        elif name in _SWITCHES and not equals:
            _switch(found, _SWITCHES[name])
        else:
            close = nearest(name, (*_SWITCHES, *_VALUED), 1)
            fix = f"perhaps you meant {close[0]}" if close else "settings are written key=value, no dashes; see --help"
            fail("config_invalid", f"unknown flag {word!r}", fix=fix, got=word)
    if _MULTIRUN in found.overrides:
        found.overrides.remove(_MULTIRUN)
        found.multirun = True
    return found


def _next(name: str, words: list[str]) -> str:
    if not words or words[0].startswith("-"):
        if name == "--info":
            return "all"  # as Hydra reads it
        fail("config_invalid", f"{name} needs a value", fix="see --help")
    return words.pop(0)


def _take(found: Arguments, name: str, value: str) -> None:
    if name == "--config-dir":
        found.config_dirs.append(value)
    elif name == "--config-name":
        found.config_name = value
    else:
        found.hydra += [name, value]


def _switch(found: Arguments, name: str) -> None:
    if name in _HYDRA:
        found.hydra.append(name)
    elif name != "--run":
        setattr(found, name.lstrip("-"), True)
