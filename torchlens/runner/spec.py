"""What a job is to record, as checked plain values: the model's factory, its input, mode and seed. Knows no torch.

A factory may call only names that are trusted: configurations come from files that people share, and a `_target_` is
a call.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any, NoReturn

from torchlens.base.errors import TorchLensError, error, fail
from torchlens.settings.layers import check_keys, refuse
from torchlens.settings.plain import is_list, is_mapping

MODEL_KEYS = ("factory", "input", "mode", "seed")
INPUT_KEYS = ("kind", "shape", "dtype", "low", "high", "path")
KINDS = ("auto", "shape", "tensor")
MODES = ("eval", "train")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")
FILES = (".pt", ".pth", ".npy")
TRUSTED = ("torch.nn.*", "torchvision.models.*", "timm.*", "transformers.*", "torchlens.examples.*")
_VALUES = ("dtype", "low", "high")
# Packages that may be named in an install command. Others are never: a stranger may have registered a user's own name.
_INSTALLABLE = {"torchvision": "torchvision", "timm": "timm", "transformers": "transformers", "PIL": "pillow"}


@dataclass(frozen=True)
class InputSpec:
    """Where the arguments come from: a file, or random values of a shape.

    shape: a list of sizes, a list of such lists (positional arguments), or a mapping keyword -> list. values: dtype,
    low and high as far as they were given.
    """

    path: str | None = None
    shape: Any = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ModelSpec:
    """One model with one input. Two figures share a recording if their specs have the same key.

    trust: patterns of names, besides the usual ones, that the factory may call.
    """

    name: str
    factory: Mapping[str, Any]
    input: InputSpec
    mode: str
    seed: int
    trust: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for specs that give the same recording."""
        inputs = (self.input.path, self.input.shape, dict(self.input.values))
        return json.dumps([self.factory, inputs, self.mode, self.seed], sort_keys=True, default=str)


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
    check_targets(where, factory, trust)
    mode, seed = keys.get("mode", "eval"), keys.get("seed", 0)
    if mode not in MODES:
        refuse(where, "mode", f"is {mode!r}", MODES, got=mode)
    if not _is_whole(seed):
        refuse(where, "seed", f"is not a whole number but {seed!r}")
    declared = check_keys(where, "input", keys.get("input") or {}, INPUT_KEYS[1:])
    return ModelSpec(name, factory, read_input(declared, chosen, where=where, place=place), mode, seed, tuple(trust))


# -- targets
def check_targets(where: str, factory: Mapping[str, Any], trust: Sequence[str] = ()) -> None:
    """Refuse a `_target_`, however deep, that no trusted pattern covers. Imports nothing."""
    for key, target in targets(factory):
        if not isinstance(target, str):
            refuse(where, key, f"is not a name but {target!r}")
        if not _trusted(target, trust):
            _refuse_target(target, target, f"{where}: {key} calls {target!r}", trust)


def check_origin(model: ModelSpec, target: str, origin: str) -> None:
    """Refuse a target whose written name is trusted but which is defined elsewhere: a package re-exports its imports.

    A pattern that is exactly the written name trusts what bears it, wherever that is defined.
    """
    if target not in model.trust and not _trusted(origin, model.trust):
        what = f"model {model.name!r} calls {target!r}, which is really {origin!r}"
        _refuse_target(target, origin, what, model.trust)


def check_present(model: ModelSpec) -> None:
    """Refuse, before anything runs, a package that is not installed and a file that is not there. Imports nothing.

    Raises: UnavailableError[model_package_missing], InputError[input_file_unreadable].
    """
    for _, target in targets(model.factory):
        package = str(target).partition(".")[0]
        if importlib.util.find_spec(package) is None:
            raise missing_package(model.name, package)
    path = model.input.path
    if path is not None and not Path(path).is_file():
        fail("input_file_unreadable", f"input.path={path!r} is not a file", path=path)


def missing_package(model: str, package: str) -> TorchLensError:
    """The refusal of a model whose package is not installed."""
    fix = "if it is your own code, run from its folder or set PYTHONPATH"
    if package in _INSTALLABLE:
        fix = f"pip install {_INSTALLABLE[package]}"
    what = f"model {model!r} needs the package {package!r}, which is not installed"
    return error("model_package_missing", what, fix=fix, package=package)


def targets(factory: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every `_target_` of a factory, however deep, with its key."""
    pending: list[tuple[str, Any]] = [("factory", factory)]
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


# -- inputs
def read_input(declared: Mapping[str, Any], chosen: Mapping[str, Any], *, where: str, place: str) -> InputSpec:
    """The input of a model: `auto` lays the chosen keys over the declared ones, other kinds take the chosen alone."""
    chosen = {key: value for key, value in check_keys(place, "", chosen, INPUT_KEYS).items() if value is not None}
    kind = chosen.pop("kind", "auto")
    if kind not in KINDS:
        refuse(place, "kind", f"is {kind!r}", KINDS, got=kind)
    if kind == "auto":
        if "shape" in chosen or "path" in chosen:
            declared = {key: value for key, value in declared.items() if key not in ("shape", "path")}
        chosen = {**declared, **chosen}
    wanted = {"shape": "shape", "tensor": "path"}.get(kind)
    if wanted is not None and wanted not in chosen:
        refuse(place, wanted, f"is missing: input={kind} needs input.{wanted}=")
    return _check_input(chosen, where, place)


def _check_input(keys: Mapping[str, Any], where: str, place: str) -> InputSpec:
    path, shape = keys.get("path"), keys.get("shape")
    if path is None and shape is None:
        fix = "write input: {shape: [1, 3, 224, 224]} in its file, or pass input.shape=[1,3,224,224]"
        fail("trace_input_missing", f"{where}: nothing says what goes into the model", fix=fix)
    if path is not None:
        extra = [key for key in keys if key != "path"]
        if extra:
            refuse(place, extra[0], "goes with random values, and input.path names a file")
        if not isinstance(path, str) or PurePath(path).suffix not in FILES:
            refuse(place, "path", f"is not the name of a tensor file but {path!r}", FILES)
        return InputSpec(path=path)
    names = _check_shape(place, shape)
    values = {key: keys[key] for key in _VALUES if keys.get(key) is not None}
    for key, value in values.items():
        _check_value(place, key, value, names)
    return InputSpec(shape=shape, values=values)


def _check_shape(place: str, shape: object) -> Sequence[str | int]:
    """The shape's places: keywords, positions, or nothing for a single tensor."""
    if is_mapping(shape) and shape:
        names, sizes = [*map(str, shape)], list(shape.values())
    elif is_list(shape) and shape and is_list(shape[0]):
        names, sizes = [*range(len(shape))], [*shape]
    else:
        names, sizes = [], [shape]
    for size in sizes:
        if not is_list(size) or not size or not all(_is_whole(n) and n > 0 for n in size):
            refuse(
                place, "shape", f"is not a list of positive whole numbers, nor a list or mapping of such, but {shape!r}"
            )
    return names


def _check_value(place: str, key: str, value: object, names: Sequence[str | int]) -> None:
    parts = list(value.items()) if is_mapping(value) else list(enumerate(value)) if is_list(value) else [(None, value)]
    for name, part in parts:
        if name is not None and name not in names:
            refuse(place, key, f"says something of {name!r}, which the shape does not have", map(str, names))
        if key == "dtype" and part not in DTYPES:
            refuse(place, key, f"is {part!r}", DTYPES, got=part)
        if key != "dtype" and (not isinstance(part, (int, float)) or isinstance(part, bool)):
            refuse(place, key, f"is not a number but {part!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
