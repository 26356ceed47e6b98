"""Turns what Hydra and OmegaConf raise over a configuration into one coded line with the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from torchlens.base.errors import TorchLensError, causes, error, first_line, nearest
from torchlens.runner.levels import GROUP, level
from torchlens.runner.schema import Config
from torchlens.settings import catalog
from torchlens.settings.layers import load_draw
from torchlens.settings.options import options, validate_option
from torchlens.settings.theme import load_theme
from torchlens.settings.view import load_view

# What a wrong configuration raises. Anything else is a mistake of ours and keeps its traceback.
RECOGNISED = (TorchLensError, HydraException, OmegaConfBaseException, ValueError, OSError)


def translate(exc: BaseException) -> TorchLensError:
    """The coded error behind an exception that was raised while a configuration was composed."""
    chain = causes(exc)
    for cause in chain:
        if isinstance(cause, TorchLensError):
            return cause
    for cause in chain:
        if isinstance(cause, OverrideParseException):
            return _bad_override(cause)
        if isinstance(cause, MissingConfigException):
            return _missing_file(cause)
    for cause in reversed(chain):
        if isinstance(cause, OmegaConfBaseException) and cause.full_key:
            return _bad_key(cause)
    text = " ".join(str(chain[0]).split())
    return error("config_invalid", text or type(exc).__name__, fix="see --help")


def _bad_override(exc: OverrideParseException) -> TorchLensError:
    reason = first_line(exc)
    what = f"cannot read {exc.override!r}: {reason}"
    if "=" not in exc.override:
        return error("config_invalid", what, fix="settings are written key=value; see --help", got=exc.override)
    return error("config_invalid", what, fix="put values with special characters in quotes", got=exc.override)


def _missing_file(exc: MissingConfigException) -> TorchLensError:
    name = str(exc.missing_cfg_file or "").removesuffix(".yaml")
    group, _, option = name.rpartition("/")
    if group in catalog.GROUPS:
        return catalog.unknown(group, option)
    options = tuple(exc.options or ())
    close = nearest(option, options, 1)
    fix = f"perhaps you meant {close[0]!r}" if close else ""
    return error("config_name_unknown", f"no configuration is named {name!r}", allowed=options, fix=fix, got=name)


# What OmegaConf says where a group of settings is given one value: a word, null or a list.
_NO_GROUP = ("is not a subclass of", "is not Optional", "Cannot merge DictConfig with")


def _bad_key(exc: OmegaConfBaseException) -> TorchLensError:
    key, reason = str(exc.full_key), first_line(exc)
    added = "." not in key and "subclass of Figure" in reason  # by a plus: the key of such a one is cut off
    if not added and any(words in reason for words in _NO_GROUP):
        what = f"{key} is a group of settings and takes no value of its own"
        return error("config_invalid", what, fix=f"write {key}.NAME=VALUE, or leave it out", key=key)
    if added or (key.startswith("figures.") and key.count(".") == 1):
        what = f"the chosen set of figures has no {key.rpartition('.')[2]!r}"
        fix = "add figures in a file of your own, figures/NAME.yaml in a --config-dir"
        return error("config_invalid", what, allowed=_siblings(exc) if "." in key else (), fix=fix, key=key)
    if isinstance(exc, (ConfigKeyError, ConfigAttributeError)):
        siblings = _siblings(exc)
        name = key.rpartition(".")[2]
        close = nearest(name, siblings, 1)
        if key in options():
            fix = f"options of the drawing are written draw.{key}=VALUE"
        elif key.startswith("draw.graph_attrs."):
            fix = f"write +{key}=VALUE, with a plus"
        else:
            fix = f"perhaps you meant {close[0]!r}" if close else _plus(key)
        return error("config_invalid", f"unknown setting {key!r}", allowed=siblings, fix=fix, key=key)
    return error("config_invalid", f"{key}: {reason}", fix="correct that value", key=key)


# Parts of files that may have any names.
_OPEN = ("model.factory.", "theme.ramps.")


def _plus(key: str) -> str:
    """A key that its file leaves open is added with a plus."""
    return f"write +{key}=... if its file does not name it" if key.startswith(_OPEN) else ""


def _siblings(exc: OmegaConfBaseException) -> list[str]:
    kind: Any = exc.object_type
    node = exc.parent_node
    if isinstance(kind, type) and is_dataclass(kind):
        return [item.name for item in fields(kind)]
    if node is not None and hasattr(node, "keys"):
        return [str(key) for key in node.keys()]  # noqa: SIM118 - an OmegaConf node, not a dict
    return [item.name for item in fields(Config)]


# -- checks before Hydra composes
def check_choices(
    overrides: Iterable[Override], texts: Sequence[str], config_dirs: Sequence[str], multirun: bool
) -> None:
    """Refuse what Hydra would refuse at length: names that a group does not have, and lists of values without -m.

    Raises: UnknownNameError[config_name_unknown], ConfigError[config_invalid].
    """
    for override, text in zip(overrides, texts, strict=True):
        key = override.key_or_group
        if not key:
            raise error("config_invalid", f"cannot read {text!r}", fix="settings are written key=value; see --help")
        if override.is_sweep_override() and not multirun:
            fix = "add --multirun (-m) to run each, write [a,b] for a list, or put a text with commas in quotes"
            raise error("config_invalid", f"{text} lists several values", fix=fix)
        if key in catalog.GROUPS and not override.is_delete():
            for value in _values(override):
                _check_choice(key, value, config_dirs)


def _values(override: Override) -> list[object]:
    value = override.value()
    if not override.is_sweep_override():
        return [value]
    choices = getattr(value, "list", None)
    return [] if choices is None else [_unquoted(item) for item in choices]


def _unquoted(value: object) -> object:
    return getattr(value, "text", value)


def _check_choice(group: str, value: object, config_dirs: Sequence[str]) -> None:
    if isinstance(value, str) and value in catalog.names(group, config_dirs):
        _check_file(group, value, config_dirs)
        return
    if value is None:
        raise error("config_invalid", f"{group}=null chooses nothing", allowed=catalog.names(group, config_dirs))
    if group == GROUP:
        if level(value) is not None:
            return
        validate_option(GROUP, value)
    raise catalog.unknown(group, value, config_dirs)


def _check_file(group: str, name: str, config_dirs: Sequence[str]) -> None:
    """Refuse a slip in a chosen file naming the file; Hydra would name the key alone, as if it had been typed."""
    if group == "view":
        load_view(name, config_dirs)
    elif group == "theme":
        load_theme(name, config_dirs)
    elif group in ("collapse", "encoding"):
        load_draw(group, name, config_dirs)
