"""Where a model's arguments come from, as checked plain values. Opens no file and knows no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from torchlens.base.errors import fail
from torchlens.settings.layers import check_keys, refuse
from torchlens.settings.plain import is_list, is_mapping

INPUT_KEYS = ("kind", "shape", "dtype", "low", "high", "path", "text", "mean", "std", "kwargs")
KINDS = ("auto", "shape", "tensor", "image", "text", "kwargs")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")
FILES = (".pt", ".pth", ".npy")
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
_VALUES = ("dtype", "low", "high")
# Kind -> the keys it may have besides `kind`.
_KEYS = {
    "shape": ("shape", *_VALUES),
    "tensor": ("path",),
    "image": ("path", "shape", "mean", "std"),
    "text": ("text",),
    "kwargs": ("kwargs",),
}
# Keys that say what goes in; the others only refine it.
_SOURCES = ("shape", "path", "text", "kwargs")
# Keys of one keyword argument that is made or read; any other value is passed on as it is.
_MADE = ("shape", "path", *_VALUES)


@dataclass(frozen=True)
class InputSpec:
    """Where the arguments come from: a file, a picture, a text, or random values of a shape.

    kind: one of KINDS without auto. shape: a list of sizes, a list of such lists (positional arguments), or a mapping
    keyword -> list. values: dtype, low and high as far as they were given. path: of tensors or of a picture; without
    it, a picture is generated. mean, std: per channel, what a picture is normalised with. kwargs: keyword -> value.
    """

    path: str | None = None
    shape: Any = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: str = ""
    text: str | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "shape" if self.path is None else "tensor")

    @property
    def facts(self) -> dict[str, Any]:
        """What was given, for manifests and for telling inputs apart; the kind only where the keys do not show it."""
        found: dict[str, Any] = {} if self.kind in ("shape", "tensor") else {"kind": self.kind}
        named = {"path": self.path, "shape": self.shape, "text": self.text, **self.values}
        named |= {"mean": list(self.mean), "std": list(self.std), "kwargs": dict(self.kwargs)}
        return found | {key: value for key, value in named.items() if value is not None and value not in ([], {})}

    @property
    def files(self) -> tuple[str, ...]:
        """The files it is read from."""
        named = [value["path"] for value in self.kwargs.values() if is_made(value) and "path" in value]
        return (*([self.path] if self.path is not None else []), *named)


def is_made(value: object) -> bool:
    """Whether a keyword's value describes a tensor, by shape or by file, and is not the value itself."""
    return is_mapping(value) and bool({"shape", "path"} & set(value))


def read_input(declared: Mapping[str, Any], chosen: Mapping[str, Any], *, where: str, place: str) -> InputSpec:
    """The input of a model: `auto` lays the chosen keys over the declared ones, other kinds take the chosen alone.

    A picture takes its size and normalisation from the declared keys all the same.
    """
    chosen = {key: value for key, value in check_keys(place, "", chosen, INPUT_KEYS).items() if value is not None}
    kind = chosen.pop("kind", "auto")
    if kind not in KINDS:
        refuse(place, "kind", f"is {kind!r}", KINDS, got=kind)
    if kind == "auto":
        keys = _overlaid(declared, chosen)
        kind = _kind(keys)
        keys = {key: value for key, value in keys.items() if key in chosen or key in _KEYS[kind]}
        if not set(_SOURCES) & {key for key, value in keys.items() if value is not None}:
            fix = "write input: {shape: [1, 3, 224, 224]} in its file, or pass input.shape=[1,3,224,224]"
            fail("trace_input_missing", f"{where}: nothing says what goes into the model", fix=fix)
    elif kind == "image":
        keys = {key: value for key, value in declared.items() if key in ("shape", "mean", "std")} | chosen
    else:
        keys = chosen
    return _CHECKS[kind](keys, place)


def _overlaid(declared: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    replaced = [key for key in _SOURCES if key in chosen]
    if replaced:
        kept = ("shape",) if _is_image(chosen.get("path")) else ()
        declared = {key: value for key, value in declared.items() if key not in _SOURCES or key in kept}
    return {**declared, **chosen}


def _kind(keys: Mapping[str, Any]) -> str:
    if "path" in keys:
        return "image" if _is_image(keys["path"]) else "tensor"
    return next((kind for kind in ("text", "kwargs") if kind in keys), "shape")


def _is_image(path: object) -> bool:
    return isinstance(path, str) and PurePath(path).suffix.lower() in IMAGES


# -- one check per kind
def _check_shape(keys: Mapping[str, Any], place: str) -> InputSpec:
    shape = keys.get("shape")
    if shape is None:
        refuse(place, "shape", "is missing: input=shape needs input.shape=")
    _only(keys, "shape", place, "does not go with random values")
    names = _check_sizes(place, "shape", shape)
    values = {key: keys[key] for key in _VALUES if keys.get(key) is not None}
    for key, value in values.items():
        _check_value(place, key, value, names)
    return InputSpec(shape=shape, values=values)


def _check_tensor(keys: Mapping[str, Any], place: str) -> InputSpec:
    if "path" not in keys:
        refuse(place, "path", "is missing: input=tensor needs input.path=")
    _only(keys, "tensor", place, "goes with random values, and input.path names a file")
    return InputSpec(path=_check_file(place, "path", keys["path"], FILES), kind="tensor")


def _check_image(keys: Mapping[str, Any], place: str) -> InputSpec:
    _only(keys, "image", place, "does not go with a picture")
    shape = keys.get("shape")
    sizes = list(shape) if is_list(shape) and all(_is_whole(size) and size > 0 for size in shape) else []
    if len(sizes) not in (3, 4) or sizes[-3] not in (1, 3):
        what = "is missing" if shape is None else f"is {shape!r}"
        refuse(place, "shape", f"{what}: a picture needs [N, C, H, W], with 1 or 3 channels C")
    path = keys.get("path")
    if path is not None:
        path = _check_file(place, "path", path, IMAGES)
    mean, std = (_check_channels(place, key, keys.get(key), sizes[-3]) for key in ("mean", "std"))
    if 0 in std:
        refuse(place, "std", "has a zero")
    return InputSpec(path=path, shape=sizes, kind="image", mean=mean, std=std)


def _check_text(keys: Mapping[str, Any], place: str) -> InputSpec:
    if "text" not in keys:
        refuse(place, "text", "is missing: input=text needs input.text=")
    _only(keys, "text", place, "does not go with a text")
    text = keys["text"]
    if not isinstance(text, str) or not text:
        refuse(place, "text", f"is not a text but {text!r}")
    return InputSpec(text=text, kind="text")


def _check_kwargs(keys: Mapping[str, Any], place: str) -> InputSpec:
    _only(keys, "kwargs", place, "does not go with keywords: write it below input.kwargs.NAME")
    named = keys.get("kwargs")
    if not is_mapping(named) or not named:
        what = "is missing" if named is None else f"is not a mapping but {named!r}"
        refuse(place, "kwargs", f"{what}: write input.kwargs.NAME=VALUE, or {{shape: [1, 8]}} or {{path: x.pt}} for it")
    for name, value in named.items():
        if is_made(value):
            _check_made(f"{place}: kwargs.{name}", value)
    return InputSpec(kind="kwargs", kwargs={str(name): value for name, value in named.items()})


def _check_made(place: str, value: Mapping[str, Any]) -> None:
    check_keys(place, "", value, _MADE)
    if "path" in value:
        extra = [key for key in value if key != "path"]
        if extra:
            refuse(place, extra[0], "goes with random values, and path names a file")
        _check_file(place, "path", value["path"], FILES)
        return
    if is_mapping(value["shape"]) or (is_list(value["shape"]) and value["shape"] and is_list(value["shape"][0])):
        refuse(place, "shape", "is one shape, a list of sizes")
    _check_sizes(place, "shape", value["shape"])
    for key in _VALUES:
        if value.get(key) is not None:
            _check_value(place, key, value[key], ())


_CHECKS = {
    "shape": _check_shape,
    "tensor": _check_tensor,
    "image": _check_image,
    "text": _check_text,
    "kwargs": _check_kwargs,
}


# -- parts
def _only(keys: Mapping[str, Any], kind: str, place: str, why: str) -> None:
    for key in keys:
        if key not in _KEYS[kind]:
            refuse(place, key, why)


def _check_file(place: str, key: str, path: object, endings: Sequence[str]) -> str:
    if not isinstance(path, str) or PurePath(path).suffix.lower() not in endings:
        kind = "a picture" if endings is IMAGES else "a tensor file"
        refuse(place, key, f"is not the name of {kind} but {path!r}", endings)
    return path


def _check_channels(place: str, key: str, value: object, count: int) -> tuple[float, ...]:
    if value is None:
        return ()
    numbers: list[Any] = list(value) if is_list(value) else [value] * count
    if len(numbers) != count or not all(_is_number(number) for number in numbers):
        refuse(place, key, f"is not one number per channel but {value!r}")
    return tuple(float(number) for number in numbers)


def _check_sizes(place: str, key: str, shape: object) -> Sequence[str | int]:
    """The shape's places: keywords, positions, or nothing for a single tensor."""
    if is_mapping(shape) and shape:
        names, sizes = [*map(str, shape)], list(shape.values())
    elif is_list(shape) and shape and is_list(shape[0]):
        names, sizes = [*range(len(shape))], [*shape]
    else:
        names, sizes = [], [shape]
    for size in sizes:
        if not is_list(size) or not size or not all(_is_whole(n) and n > 0 for n in size):
            what = f"is not a list of positive whole numbers, nor a list or mapping of such, but {shape!r}"
            refuse(place, key, what)
    return names


def _check_value(place: str, key: str, value: object, names: Sequence[str | int]) -> None:
    parts = list(value.items()) if is_mapping(value) else list(enumerate(value)) if is_list(value) else [(None, value)]
    for name, part in parts:
        if name is not None and name not in names:
            refuse(place, key, f"says something of {name!r}, which the shape does not have", map(str, names))
        if key == "dtype" and part not in DTYPES:
            refuse(place, key, f"is {part!r}", DTYPES, got=part)
        if key != "dtype" and not _is_number(part):
            refuse(place, key, f"is not a number but {part!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
