"""Makes the arguments of one forward call: random values, tensors and pictures of files, tokens of a text.

Values come from generators of their own, so that no global random stream moves. Knows torch and nothing of models'
factories.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from torchlens.base.errors import error, first_line
from torchlens.inputs.leaves import named_forward
from torchlens.inputs.synthesize import synthesize
from torchlens.records.provenance import InputProvenance
from torchlens.runner.input_spec import InputSpec, is_made

_SEED = 0
# Side of the generated picture before it is resized, pixels.
_TEST_SIDE = 256


@dataclass
class Arguments:
    """Keywords for `torchlens.trace`, the provenance to note when the values were made here, and the picture shown."""

    call: dict[str, Any]
    provenance: InputProvenance | None = None
    picture: Any = None


def arguments(spec: InputSpec, model: nn.Module, *, tokenizer: Callable[[], Any]) -> Arguments:
    """The arguments that a spec describes; tokenizer: makes the model's one, called for a text only.

    Raises: InputError[input_file_unreadable], the codes of `synthesize`, and what the tokenizer raises.
    """
    if spec.kind == "image":
        return _picture(spec)
    if spec.kind == "text":
        return _tokens(str(spec.text), model, tokenizer())
    if spec.kind == "kwargs":
        return _keywords(spec)
    if spec.path is not None:
        return Arguments({"x": _load(spec.path, "input.path")})
    return _random(spec, model)


# -- random values
def _random(spec: InputSpec, model: nn.Module) -> Arguments:
    """A bare shape is left to `torchlens.trace`, which knows which arguments are ids.

    With dtype, low or high the values are uniform on [low, high), by default 0 to 1 for floats and 0 to 2 for integers,
    from a generator with seed 0.
    """
    shapes = _as_tuples(spec.shape)
    if not spec.values:
        return Arguments({"input_shape": shapes})
    if "dtype" in spec.values:
        found: dict[object, str] = {}
    else:
        args, kwargs, _ = synthesize(model, shapes)
        found = {place: _dtype_name(tensor) for place, tensor in (*enumerate(args), *kwargs.items())}
    generator = torch.Generator().manual_seed(_SEED)
    places = _places(shapes)
    made = {place: _tensor(spec.values, place, shape, found.get(place), generator) for place, shape in places}
    call = {"input_kwargs": made} if isinstance(shapes, Mapping) else {"x": tuple(made.values())}
    return Arguments(call, InputProvenance("declared", _facts(made.values()), "random values", _SEED))


def _facts(tensors: Iterable[Tensor]) -> tuple[tuple[tuple[int, ...] | None, str, str], ...]:
    return tuple((tuple(tensor.shape), _dtype_name(tensor), str(tensor.device)) for tensor in tensors)


def _places(shapes: Any) -> list[tuple[object, tuple[int, ...]]]:
    """The shape of every argument with its position or keyword."""
    if isinstance(shapes, Mapping):
        return list(shapes.items())
    return list(enumerate(shapes)) if isinstance(shapes[0], tuple) else [(0, shapes)]


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _as_tuples(shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {str(name): tuple(size) for name, size in shape.items()}
    return tuple(tuple(size) for size in shape) if isinstance(shape[0], (list, tuple)) else tuple(shape)


def _tensor(
    values: Mapping[str, Any], place: object, shape: tuple[int, ...], found: str | None, generator: torch.Generator
) -> Tensor:
    dtype = getattr(torch, _at(values.get("dtype"), place, found or "float32"))
    if dtype == torch.bool:
        return torch.randint(2, shape, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        low, high = _at(values.get("low"), place, 0.0), _at(values.get("high"), place, 1.0)
        return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
    low, high = int(_at(values.get("low"), place, 0)), int(_at(values.get("high"), place, 2))
    return torch.randint(low, max(high, low + 1), shape, generator=generator).to(dtype)


def _at(value: Any, place: object, default: Any) -> Any:
    """The value for one argument: the common one, or its entry of a list or mapping."""
    if isinstance(value, Mapping):
        return value.get(place, default)
    if isinstance(value, (list, tuple)):
        return value[place] if isinstance(place, int) and place < len(value) else default
    return default if value is None else value


# -- keywords
def _keywords(spec: InputSpec) -> Arguments:
    """Keyword arguments: values as they are, tensors of files, and random ones of a shape."""
    generator = torch.Generator().manual_seed(_SEED)
    call: dict[str, Any] = {}
    random: list[Tensor] = []
    for name, value in spec.kwargs.items():
        if not is_made(value):
            call[name] = value
        elif "path" in value:
            call[name] = _load(value["path"], f"input.kwargs.{name}.path")
        else:
            call[name] = _tensor(value, None, tuple(value["shape"]), None, generator)
            random.append(call[name])
    known = InputProvenance("declared", _facts(random), "random values", _SEED) if random else None
    return Arguments({"input_kwargs": call}, known)


# -- pictures
def _picture(spec: InputSpec) -> Arguments:
    """A picture as a batch: cut to the aspect of the model's input, resized, scaled to 0 to 1, normalised."""
    from PIL import Image, ImageOps

    batch, channels, height, width = (1, *spec.shape) if len(spec.shape) == 3 else spec.shape
    mode = "L" if channels == 1 else "RGB"
    if spec.path is None:
        picture = _test_picture()
    else:
        try:
            picture = ImageOps.exif_transpose(Image.open(spec.path))
            picture.load()
        except Exception as exc:
            what = f"input.path={spec.path!r} cannot be read: {type(exc).__name__}: {first_line(exc)}"
            raise error("input_file_unreadable", what, path=spec.path) from exc
    picture = ImageOps.fit(picture.convert(mode), (width, height), Image.Resampling.BILINEAR)
    values = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(height, width, channels)
    tensor = values.permute(2, 0, 1).to(torch.float32).div(255)
    for numbers, apply in ((spec.mean, tensor.sub_), (spec.std, tensor.div_)):
        if numbers:
            apply(torch.tensor(numbers).reshape(-1, 1, 1))
    tensor = tensor.expand(batch, -1, -1, -1).clone() if len(spec.shape) == 4 else tensor.contiguous()
    source = "a generated picture" if spec.path is None else f"picture {Path(spec.path).name}"
    recipe = f"{source}, resized to {width} x {height}{', normalised' if spec.mean or spec.std else ''}"
    origin = "declared" if spec.path is None else "user"
    return Arguments({"x": tensor}, InputProvenance(origin, _facts([tensor]), recipe), picture)


def _test_picture() -> Any:
    """A picture that is the same everywhere: red grows to the right, green downwards, blue from the middle."""
    from PIL import Image

    down = Image.linear_gradient("L")
    parts = (down.transpose(Image.Transpose.ROTATE_90), down, Image.radial_gradient("L"))
    return Image.merge("RGB", parts).resize((_TEST_SIDE, _TEST_SIDE))


# -- texts
def _tokens(text: str, model: nn.Module, tokenizer: Any) -> Arguments:
    """The tokens of a text as keywords, as far as the model takes them."""
    try:
        made = dict(tokenizer(text, return_tensors="pt"))
    except Exception as exc:
        what = f"the tokenizer {type(tokenizer).__name__} refuses the text: {type(exc).__name__}: {first_line(exc)}"
        raise error("tokenizer_unavailable", what) from exc
    parameters = inspect.signature(named_forward(model)).parameters
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        made = {name: value for name, value in made.items() if name in parameters}
    tensors = [value for value in made.values() if isinstance(value, Tensor)]
    recipe = f"text of {len(text)} characters, tokens by {type(tokenizer).__name__}"
    return Arguments({"input_kwargs": made}, InputProvenance("user", _facts(tensors), recipe))


# -- files
def why_unreadable(exc: Exception) -> str:
    """Why a file of tensors was refused. torch advises to run the code in it, which is not for us to say."""
    if isinstance(exc, UnpicklingError):
        return "it is damaged or holds more than tensors, and no code in it is run"
    return f"{type(exc).__name__}: {first_line(exc)}"


def _load(path: str, key: str) -> Any:
    """Tensors of a file: `.npy`, or `.pt` without any code in it."""
    try:
        if Path(path).suffix == ".npy":
            import numpy

            return torch.from_numpy(numpy.load(path, allow_pickle=False))
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as exc:
        what = f"{key}={path!r} cannot be read: {why_unreadable(exc)}"
        raise error("input_file_unreadable", what, path=path) from exc
