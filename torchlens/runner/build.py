"""Builds the model of a spec, loads its weights and records one run. Knows torch, and not how inputs are made."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from hydra.utils import instantiate
from torch import nn

from torchlens.base.errors import TorchLensError, causes, error, fail, first_line, nearest
from torchlens.runner.inputs import Arguments, arguments, why_unreadable
from torchlens.runner.names import locate, origin
from torchlens.runner.spec import ModelSpec, check_origin, missing_package, targets
from torchlens.settings.capture_options import CaptureOptions
from torchlens.verbs import STOPPED, trace

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData
    from torchlens.trace_view import Trace


def record(spec: ModelSpec, *, warm: bool = False, saved: bool = False, stats: bool = False) -> TraceData:
    """What `record_trace` records, metadata only."""
    return record_trace(spec, warm=warm, saved=saved, stats=stats).data


def record_trace(
    spec: ModelSpec, *, warm: bool = False, saved: bool = False, stats: bool = False, values: bool = False
) -> Trace:
    """Build the model, make its input, run it once, and return the trace.

    warm: first run a copy of the model, so that the times are not those of a first call, in which libraries choose
    kernels and threads start. saved: measure what autograd keeps for the backward pass; stats:
    take statistics of the outputs; values: keep them, which hooks may look at, else metadata only.
    Weights and random ops follow the spec's seed; the caller's random stream is as before. Gradients stay enabled, as
    in a plain `torchlens.trace`.
    Raises: InputError[model_build_failed, model_checkpoint_invalid, model_run_failed, input_file_unreadable],
    UnavailableError[model_package_missing, tokenizer_unavailable], UnknownNameError[model_target_unknown],
    ConfigError[config_target_untrusted], and the codes of `torchlens.trace`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = build(spec)
        model.train(spec.mode == "train")
        given = arguments(spec.input, model, tokenizer=lambda: make_tokenizer(spec, model))
        if warm:
            _warm_up(model, given)
        torch.manual_seed(spec.seed)
        with _named_failure("model_run_failed", f"the forward of model {spec.name!r} failed"):
            picture = given.picture
            options = CaptureOptions(
                save="all" if values else "none", saved_for_backward=saved, out_stats=stats, input_image=picture
            )
            recorded = trace(model, **given.call, capture=options)
    if given.provenance is not None:
        recorded.data.provenance = given.provenance
    return recorded


def build(spec: ModelSpec) -> nn.Module:
    """Call the factory and load the checkpoint, if there is one. Raises as `record` says."""
    model = _call(spec, spec.factory)
    if not isinstance(model, nn.Module):
        target = str(spec.factory["_target_"])
        fail("trace_model_invalid", f"{target} made a {type(model).__name__}, not a torch.nn.Module", got=target)
    if spec.checkpoint is not None:
        _load_weights(spec, model, spec.checkpoint)
    return model


def _call(spec: ModelSpec, factory: Mapping[str, Any]) -> Any:
    target = str(factory["_target_"])
    with _explained(spec, target):
        origins = {str(name): origin(str(name)) for _, name in targets({"": factory})}
    for name, home in origins.items():
        check_origin(spec, name, home)
    with _explained(spec, target):
        return instantiate(factory, _convert_="all")


def make_tokenizer(spec: ModelSpec, model: nn.Module) -> Any:
    """What turns a text into the model's input: the one of the model's file, else the model's own.

    Raises: UnavailableError[tokenizer_unavailable], and what `record` says of factories.
    """
    if spec.tokenizer is not None:
        return _call(spec, spec.tokenizer)
    if callable(own := getattr(model, "tokenizer", None)):
        return own
    name = getattr(model, "name_or_path", "")
    if not isinstance(name, str) or not name:
        what = f"model {spec.name!r} has no tokenizer: it was made from numbers, not from a pretrained name"
        raise error("tokenizer_unavailable", what, model=spec.name)
    try:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(name)
    except Exception as exc:
        what = f"the tokenizer of model {spec.name!r} cannot be loaded from {name!r}: {first_line(exc)}"
        raise error("tokenizer_unavailable", what, model=spec.name) from exc


# -- weights
def _load_weights(spec: ModelSpec, model: nn.Module, path: str) -> None:
    """Load a state dict, of which no code is run. A file that holds one under `state_dict` or `model` will do too."""
    place = f"model {spec.name!r}: checkpoint={path!r}"
    try:
        state = _read_weights(path)
    except Exception as exc:
        what = f"{place} cannot be read: {why_unreadable(exc)}"
        raise error("model_checkpoint_invalid", what, path=path) from exc
    for key in ("state_dict", "model"):
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not isinstance(state, Mapping):
        fail("model_checkpoint_invalid", f"{place} holds a {type(state).__name__}, not a state dict", path=path)
    try:
        model.load_state_dict(dict(state))
    except Exception as exc:
        what = f"{place} does not fit the model: {' '.join(str(exc).split())[:300]}"
        raise error("model_checkpoint_invalid", what, path=path) from exc


def _read_weights(path: str) -> Any:
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def _warm_up(model: nn.Module, given: Arguments) -> None:
    with suppress(Exception):  # if it fails, the recorded run fails too and says why
        trace(copy.deepcopy(model), **given.call, save="none")


@contextmanager
def _named_failure(code: str, what: str) -> Iterator[None]:
    try:
        yield
    except TorchLensError:
        raise
    except Exception as exc:
        place = f" {stop}" if (stop := getattr(exc, STOPPED, "")) else ""
        raise error(code, f"{what}{place}: {type(exc).__name__}: {first_line(exc)}") from exc


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
    missing = next((str(name) for _, name in targets(spec.factories) if not _exists(str(name))), None)
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
        return locate(target) is not None
    return False
