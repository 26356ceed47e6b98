"""One job as plain values, read from a composed configuration. Knows Hydra's nodes, and no torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from torchlens.base.errors import TorchLensError, error, fail
from torchlens.runner.figures import Choice, Figure, Run, plan_figures, read_formats
from torchlens.runner.groups import PROVIDER
from torchlens.runner.levels import GROUP, level
from torchlens.settings import catalog
from torchlens.settings.layers import check_keys
from torchlens.settings.options import options

PUBLISHED = "docs"
MEASURED, FROZEN = "measured", "frozen"
# Keys that change nothing of what is drawn: where it goes, and how the run is done.
UNDRAWN = ("out", "explain", "threads", "resume", "refreeze", "check")
_CHOSEN = ("model", "input", "view", "theme", "collapse", "encoding")


@dataclass(frozen=True)
class Job:
    """What one job draws.

    out: its folder; overrides: the words of its command line; folders: the users' configuration folders; published:
    its manifest goes where strangers read it, and names no folder of this machine; figure_set: name of the chosen set;
    config: the composed configuration, without the keys that change nothing of what is drawn; frozen: whether times
    come from the file of an earlier run, and refreeze: whether that file is written anew; swept: one of several jobs.
    """

    figures: tuple[Figure, ...]
    out: str
    overrides: tuple[str, ...]
    folders: tuple[str, ...]
    threads: int | None
    explain: bool
    published: bool = False
    figure_set: str = "one"
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frozen: bool = False
    refreeze: bool = False
    resume: bool = False
    check: bool = False
    swept: bool = False


def read_job(cfg: DictConfig, hydra: DictConfig) -> Job:
    """Read and check the whole configuration of a job. hydra: its `hydra` node.

    Raises: ConfigError[config_invalid] and every code of `plan_figures`.
    """
    texts = tuple(str(text) for text in hydra.overrides.task)
    overrides = OverridesParser.create().parse_overrides(list(texts))
    folders = tuple(source.path for source in hydra.runtime.config_sources if source.provider == PROVIDER)
    groups = {group: _choice(group, hydra.runtime.choices.get(group), cfg[group], folders) for group in _CHOSEN}
    drawn = check_keys("the command line", "draw", present(cfg.draw), options())
    explicit, base = _draw_keys(drawn, overrides)
    formats, optional = read_formats(_plain(cfg.formats))
    run = Run(
        **groups,
        explicit=explicit,
        base=base,
        formats=formats,
        optional=optional,
        trust=_trust(_plain(cfg.trust), overrides),
        folders=folders,
    )
    entries = {str(name): _entry(cfg.figures[name]) for name in cfg.figures}
    figures = plan_figures(run, entries)
    flags = {name: _flag(name, cfg[name]) for name in ("explain", "resume", "refreeze", "check")}
    if flags["resume"] and not any(_key(override) == "out" for override in overrides):
        fail("config_invalid", "resume=true does not say which run goes on", fix="add out=DIR, the folder of that run")
    return Job(
        figures,
        str(hydra.run.dir),
        texts,
        run.folders,
        _threads(cfg.threads),
        published=hydra.runtime.choices.get("output") == PUBLISHED,
        figure_set=str(hydra.runtime.choices.get("figures") or "figures"),
        config={key: value for key, value in present(cfg).items() if key not in (*UNDRAWN, "hydra")},
        frozen=_timings(cfg.capture) == FROZEN,
        swept=hydra.get("mode") == RunMode.MULTIRUN,
        **flags,
    )


def present(node: DictConfig) -> dict[str, Any]:
    """The keys of a node that have a value, as plain values. An empty nested node of the schema counts as unset."""
    found: dict[str, Any] = {}
    for key in node:
        if OmegaConf.is_missing(node, key):
            continue
        value = node[key]
        if isinstance(value, DictConfig):
            inner = present(value)
            if inner or OmegaConf.get_type(value) is dict:
                found[str(key)] = inner
        else:
            found[str(key)] = _plain(value)
    return found


def _choice(group: str, name: str | None, node: DictConfig, folders: Sequence[str]) -> Choice:
    """What was chosen. Its keys are kept only if they are no longer those of its file, so that errors name the file."""
    keys = present(node)
    if name is None:
        return Choice(None, keys or None)
    if group == GROUP and level(name) is not None:
        return Choice(name)
    declared = catalog.load(group, name, folders).data
    return Choice(name, None if _without_unset(keys) == _without_unset(declared) else keys)


def _without_unset(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys without empty blocks and missing values, which say nothing."""
    found: dict[str, Any] = {}
    for key, value in keys.items():
        inner = _without_unset(value) if isinstance(value, Mapping) else value
        if inner != {} and inner != "???":
            found[key] = inner
    return found


def _entry(node: Any) -> Any:
    return present(node) if isinstance(node, DictConfig) else node


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def _key(override: Override) -> str:
    return override.key_or_group


def _draw_keys(keys: Mapping[str, Any], overrides: Sequence[Override]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The draw options that the command line set, and those that a configuration file set."""
    named: set[str] = set()
    for override in overrides:
        head, _, rest = _key(override).partition(".")
        if head == "draw":
            value = override.value()
            named.update([rest.partition(".")[0]] if rest else map(str, value) if isinstance(value, dict) else [])
    explicit = {name: keys[name] for name in options() if name in keys and name in named}
    return explicit, {name: keys[name] for name in options() if name in keys and name not in named}


def _trust(value: Any, overrides: Sequence[Override]) -> tuple[str, ...]:
    """Further trusted names. Only the command line may give them: a shared file must not trust itself."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        fail("config_invalid", f"trust={value!r} is not a list of names", fix="write 'trust=[mypackage.*]'")
    if words and not any(_key(override) == "trust" for override in overrides):
        fail("config_invalid", "trust is set by a file", fix="give trust=[...] on the command line")
    return tuple(words)


def _threads(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        fail("config_invalid", f"threads={value!r} is not a whole number of at least 1", fix="write threads=2")
    return value


def _timings(node: DictConfig) -> str:
    value = present(node).get("timings", MEASURED)
    if value not in (MEASURED, FROZEN):
        fail("config_invalid", f"capture.timings={value!r} is not allowed", allowed=(MEASURED, FROZEN), fix="use one")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        fail("config_invalid", f"{name}={value!r} is neither true nor false", fix=f"write {name}=true")
    return value


# -- the folder
_ELSEWHERE = "choose another folder with out=DIR"


def check_out(out: str) -> None:
    """Refuse a folder that cannot be made or written, before anything runs."""
    path = Path(out)
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        fail("output_path_invalid", f"cannot write to {out!r}", fix=_ELSEWHERE)


def unwritable(exc: OSError, place: Path | None = None) -> TorchLensError:
    """The error for what the system did not let be written. place: what that was, else as the system says."""
    named = exc.filename if place is None else str(place)
    where = f" to {named!r}" if named else ""
    return error("output_path_invalid", f"cannot write{where}: {exc.strerror}", fix=f"make room, or {_ELSEWHERE}")
