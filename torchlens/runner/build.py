"""Builds the model and the arguments of a spec, and records one run. The only module of the runner that knows torch."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch
from hydra.utils import instantiate
from torch import Tensor, nn

from torchlens.base.errors import TorchLensError, causes, error, fail, first_line, nearest
from torchlens.inputs.synthesize import synthesize
from torchlens.records.provenance import InputProvenance
from torchlens.runner.spec import InputSpec, ModelSpec, check_origin, missing_package, targets
from torchlens.verbs import STOPPED, trace

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData

_SEED = 0


def record(spec: ModelSpec, *, warm: bool = False) -> TraceData:
    """Build the model, make its input, run it once, and return what was recorded (metadata only).

    warm: first run a copy of the model, so that the times are not those of a first call, in which libraries choose
    kernels and threads start.
    Weights and random ops follow the spec's seed; the caller's random stream is as before. Gradients stay enabled, as
    in a plain `torchlens.trace`.
    Raises: InputError[model_build_failed, model_run_failed, input_file_unreadable], UnavailableError
    [model_package_missing], UnknownNameError[model_target_unknown], ConfigError[config_target_untrusted], and the
    codes of `torchlens.trace`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = build(spec)
        model.train(spec.mode == "train")
        call, provenance = arguments(spec.input, model)
        if warm:
            _warm_up(model, call)
        torch.manual_seed(spec.seed)
        with _named_failure("model_run_failed", f"the forward of model {spec.name!r} failed"):
            data = trace(model, **call, save="none").data
    if provenance is not None:
        data.provenance = provenance
    return data


def build(spec: ModelSpec) -> nn.Module:
    """Call the factory. Raises as `record` says."""
    target = str(spec.factory["_target_"])
    with _explained(spec, target):
        origins = {str(name): _origin(str(name)) for _, name in targets(spec.factory)}
    for name, origin in origins.items():
        check_origin(spec, name, origin)
    with _explained(spec, target):
        model = instantiate(spec.factory, _convert_="all")
    if not isinstance(model, nn.Module):
        fail("trace_model_invalid", f"{target} made a {type(model).__name__}, not a torch.nn.Module", got=target)
    return model


def _warm_up(model: nn.Module, call: Mapping[str, Any]) -> None:
    with suppress(Exception):  # if it fails, the recorded run fails too and says why
        trace(copy.deepcopy(model), **call, save="none")


@contextmanager
def _named_failure(code: str, what: str) -> Iterator[None]:
    try:
        yield
    except TorchLensError:
        raise
    except Exception as exc:
        place = f" {stop}" if (stop := getattr(exc, STOPPED, "")) else ""
        raise error(code, f"{what}{place}: {type(exc).__name__}: {first_line(exc)}") from exc


# -- what a name leads to
def _locate(target: str) -> Any:
    """What a dotted name leads to: attributes before modules, in the order in which Hydra looks."""
    first, *parts = target.split(".")
    found: Any = importlib.import_module(first)
    path = first
    for part in parts:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            if not isinstance(found, ModuleType):
                raise
            found = importlib.import_module(path)
    return found


def _origin(target: str) -> str:
    """Where a target is defined, whatever name it is reached by.

    A function compiled into a package counts as defined in the module of that package that offers it: functions such
    as torch.nn.functional.conv2d have no other home.
    """
    found = _locate(target)
    name = getattr(found, "__qualname__", None) or type(found).__qualname__
    home = _module(found)
    if isinstance(found, BuiltinFunctionType):
        offering = _locate(target.rpartition(".")[0])
        if isinstance(offering, ModuleType) and _top(offering.__name__) == _top(home):
            return f"{offering.__name__}.{found.__name__}"
    return f"{home}.{name}"


def _module(value: Any) -> str:
    """Name of the module that defines a value; of a bound builtin or a slot of a class, of the one of that class."""
    if home := getattr(value, "__module__", None):
        return str(home)
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    return str(getattr(owner, "__module__", None) or "builtins")


def _top(module: str) -> str:
    return module.partition(".")[0]


# -- what went wrong in a factory
@contextmanager
def _explained(spec: ModelSpec, target: str) -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        raise _explain(spec, target, exc) from exc


def _explain(spec: ModelSpec, target: str, exc: BaseException) -> TorchLensError:
    chain = causes(exc)
    for cause in chain:
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            package = cause.name.partition(".")[0]
            if importlib.util.find_spec(package) is None:
                return missing_package(spec.name, package)
    missing = next((str(name) for _, name in targets(spec.factory) if not _exists(str(name))), None)
    if missing is not None:
        return _unknown_target(missing)
    root = next((cause for cause in reversed(chain) if not type(cause).__module__.startswith("hydra")), chain[-1])
    what = f"cannot build model {spec.name!r} with {target}: {type(root).__name__}: {first_line(root)}"
    return error("model_build_failed", what, target=target)


def _unknown_target(target: str) -> TorchLensError:
    owner, _, name = target.rpartition(".")
    holder: Any = None
    with suppress(Exception):
        holder = importlib.import_module(owner)
    names = dir(holder) if holder else []
    close = [other for other in names if other.casefold() == name.casefold()] or nearest(name, names, 1)
    fix = f"perhaps you meant '{owner}.{close[0]}'" if close else ""
    return error("model_target_unknown", f"nothing is called {target!r}", fix=fix, got=target)


def _exists(target: str) -> bool:
    with suppress(Exception):
        return _locate(target) is not None
    return False


# -- inputs
def arguments(spec: InputSpec, model: nn.Module) -> tuple[dict[str, Any], InputProvenance | None]:
    """Keywords for `torchlens.trace`, and the provenance to note when the values were made here.

    A bare shape is left to `torchlens.trace`, which knows which arguments are ids. With dtype, low or high the values
    are uniform on [low, high), by default 0 to 1 for floats and 0 to 2 for integers, from a generator with seed 0.
    """
    if spec.path is not None:
        return {"x": _load(spec.path)}, None
    shapes = _as_tuples(spec.shape)
    if not spec.values:
        return {"input_shape": shapes}, None
    if "dtype" in spec.values:
        found: dict[object, str] = {}
    else:
        args, kwargs, _ = synthesize(model, shapes)
        found = {place: _dtype_name(tensor) for place, tensor in (*enumerate(args), *kwargs.items())}
    generator = torch.Generator().manual_seed(_SEED)
    places = _places(shapes)
    made = {place: _tensor(spec.values, place, shape, found.get(place), generator) for place, shape in places}
    facts = tuple((tuple(t.shape), _dtype_name(t), str(t.device)) for t in made.values())
    call = {"input_kwargs": made} if isinstance(shapes, Mapping) else {"x": tuple(made.values())}
    return call, InputProvenance("declared", facts, "random values", _SEED)


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


def _load(path: str) -> Any:
    """Tensors of a file: `.npy`, or `.pt` without any code in it."""
    try:
        if Path(path).suffix == ".npy":
            import numpy

            return torch.from_numpy(numpy.load(path, allow_pickle=False))
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as exc:
        what = f"input.path={path!r} cannot be read: {type(exc).__name__}: {first_line(exc)}"
        raise error("input_file_unreadable", what, path=path) from exc
