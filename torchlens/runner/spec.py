"""What a job is to record, as checked plain values: the model's factory, its input, mode and seed. Knows no torch.

A factory may call only names that are trusted: configurations come from files that people share, and a `_target_` is
a call.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any, NoReturn

from torchlens.base.errors import TorchLensError, error, fail
from torchlens.runner.input_spec import INPUT_KEYS, InputSpec, read_input
from torchlens.settings.layers import check_keys, refuse
from torchlens.settings.plain import is_list, is_mapping

MODEL_KEYS = ("factory", "checkpoint", "tokenizer", "input", "mode", "seed")
MODES = ("eval", "train")
WEIGHTS = (".pt", ".pth", ".bin", ".safetensors")
TRUSTED = ("torch.nn.*", "torchvision.models.*", "timm.*", "transformers.*", "torchlens.examples.*")
# Packages that may be named in an install command. Others are never: a stranger may have registered a user's own name.
_INSTALLABLE = {"torchvision": "torchvision", "timm": "timm", "transformers": "transformers", "PIL": "pillow"}


@dataclass(frozen=True)
class ModelSpec:
    """One model with one input. Two figures share a recording if their specs have the same key.

    trust: patterns of names, besides the usual ones, that the factories may call; checkpoint: file of the weights;
    tokenizer: factory of what turns a text into the model's input, None for the model's own.
    """

    name: str
    factory: Mapping[str, Any]
    input: InputSpec
    mode: str
    seed: int
    trust: tuple[str, ...] = ()
    checkpoint: str | None = None
    tokenizer: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """Equal for specs that give the same recording."""
        parts = [self.factory, self.checkpoint, self.tokenizer, self.input.facts, self.mode, self.seed]
        return json.dumps(parts, sort_keys=True, default=str)

    @property
    def factories(self) -> dict[str, Any]:
        """Everything that is called, by the key of the model's file."""
        return {"factory": self.factory} | ({"tokenizer": self.tokenizer} if self.tokenizer else {})


def read_model(
    name: str, where: str, keys: object, chosen: Mapping[str, Any], *, trust: Sequence[str] = (), place: str = "input"
) -> ModelSpec:
    """Check the keys of a model file and combine them with the chosen input.

    where, place: words for errors about the model's and the input's keys; trust: further patterns of names.
    Raises: ConfigError[config_invalid] naming the key, ConfigError[config_target_untrusted],
    InputError[trace_input_missing] if neither says what goes in.
    """
    keys = check_keys(where, "", keys, MODEL_KEYS)
    factory = keys.get("factory")
    if not is_mapping(factory) or "_target_" not in factory:
        refuse(where, "factory", "is missing or has no _target_: the name of what builds the model")
    tokenizer, checkpoint = keys.get("tokenizer"), keys.get("checkpoint")
    if tokenizer is not None and (not is_mapping(tokenizer) or "_target_" not in tokenizer):
        refuse(where, "tokenizer", "has no _target_: the name of what makes it")
    if checkpoint is not None and (not isinstance(checkpoint, str) or PurePath(checkpoint).suffix not in WEIGHTS):
        refuse(where, "checkpoint", f"is not the name of a file of weights but {checkpoint!r}", WEIGHTS)
    check_targets(where, {"factory": factory, "tokenizer": tokenizer}, trust)
    mode, seed = keys.get("mode", "eval"), keys.get("seed", 0)
    if mode not in MODES:
        refuse(where, "mode", f"is {mode!r}", MODES, got=mode)
    if not _is_whole(seed):
        refuse(where, "seed", f"is not a whole number but {seed!r}")
    declared = check_keys(where, "input", keys.get("input") or {}, INPUT_KEYS[1:])
    given = read_input(declared, chosen, where=where, place=place)
    return ModelSpec(name, factory, given, mode, seed, tuple(trust), checkpoint, tokenizer)


# -- targets
def check_targets(where: str, factories: Mapping[str, Any], trust: Sequence[str] = ()) -> None:
    """Refuse a `_target_`, however deep, that no trusted pattern covers. Imports nothing."""
    for key, target in targets(factories):
        if not isinstance(target, str):
            refuse(where, key, f"is not a name but {target!r}")
        if not _trusted(target, trust):
            _refuse_target(target, target, f"{where}: {key} calls {target!r}", trust)


def check_origin(model: ModelSpec, target: str, origin: str) -> None:
    """Refuse a target whose written name is trusted but which is defined elsewhere: a package re-exports its imports.

    A pattern that is exactly the written name trusts what bears it, wherever that is defined.
    """
    check_home(f"model {model.name!r}", target, origin, model.trust)


def check_home(who: str, target: str, origin: str, trust: Sequence[str]) -> None:
    """The same of anything that is called; who: words for its start."""
    if target not in trust and not _trusted(origin, trust):
        _refuse_target(target, origin, f"{who} calls {target!r}, which is really {origin!r}", trust)


def check_present(model: ModelSpec) -> None:
    """Refuse, before anything runs, a package that is not installed and a file that is not there. Imports nothing.

    Raises: UnavailableError[model_package_missing], InputError[input_file_unreadable, model_checkpoint_invalid].
    """
    for _, target in targets(model.factories):
        package = str(target).partition(".")[0]
        if importlib.util.find_spec(package) is None:
            raise missing_package(model.name, package)
    for path in model.input.files:
        if not Path(path).is_file():
            fail("input_file_unreadable", f"input.path={path!r} is not a file", path=path)
    if model.checkpoint is not None and not Path(model.checkpoint).is_file():
        what = f"model {model.name!r}: checkpoint={model.checkpoint!r} is not a file"
        fail("model_checkpoint_invalid", what, path=model.checkpoint)


def missing_package(model: str, package: str) -> TorchLensError:
    """The refusal of a model whose package is not installed."""
    fix = "if it is your own code, run from its folder or set PYTHONPATH"
    if package in _INSTALLABLE:
        fix = f"pip install {_INSTALLABLE[package]}"
    what = f"model {model!r} needs the package {package!r}, which is not installed"
    return error("model_package_missing", what, fix=fix, package=package)


def targets(factories: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every `_target_` of named factories, however deep, with its key."""
    pending: list[tuple[str, Any]] = list(factories.items())
    while pending:
        key, value = pending.pop()
        if is_mapping(value):
            if "_target_" in value:
                yield f"{key}._target_", value["_target_"]
            pending.extend((f"{key}.{name}", item) for name, item in value.items())
        elif is_list(value):
            pending.extend((f"{key}[{index}]", item) for index, item in enumerate(value))


def _trusted(name: str, trust: Sequence[str]) -> bool:
    return any(fnmatchcase(name, text) for pattern in (*TRUSTED, *trust) for text in (pattern, f"{pattern}.*"))


def _refuse_target(target: str, origin: str, what: str, trust: Sequence[str]) -> NoReturn:
    fail(
        "config_target_untrusted",
        f"{what}{' and' if origin != target else ', which is'} not trusted",
        allowed=(*TRUSTED, *trust),
        fix=f"if you trust it, add 'trust=[{origin.partition('.')[0]}.*]' to the command",
        target=target,
        origin=origin,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
