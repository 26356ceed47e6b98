"""What a reader of a trace has to know because recording could not do without it, or because the forward did it.

One row is a code and a sentence. The codes name facts about a run, not faults, so they are no errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import torch
from torch import nn

from torchlens.base.errors import warn
from torchlens.capture.kinds import runs_code
from torchlens.records.trace_data import TraceData

# code -> sentence; `{...}` is filled in where the row is made
ADVISORIES: Final = {
    "encoder_padding_kept": (
        "a padded nn.TransformerEncoder ran without torch's fast path, which is off while functions are watched: "
        "a plain run gives zeros at padded positions"
    ),
    "parameter_created_in_forward": "the forward itself registered {names}, which the model did not have before",
    "batchnorm_train_stats_mutated": "this run in training mode updated the running statistics of {names}",
    "values_left_graph": "{names} left for Python ({calls}): what was made of it there has no arrows",
    "tensor_subclass": "{names} ran code of its own, as a tensor subclass may: what that did inside has no arrows",
    "threads_started": "the forward started threads: what torch did in them is not recorded",
    "ops_in_other_threads": "modules of the model also ran in other threads: what they did there is not recorded",
}
# Those without which a figure would be misread.
SHOWN: Final = frozenset({
    "encoder_padding_kept", "values_left_graph", "tensor_subclass", "threads_started", "ops_in_other_threads",
})  # fmt: skip
_MOST_NAMES = 3
_STORAGE: Final = "its storage, as copy, pickle and save do"
# What Python's own protocols are called by those who use them.
_WAYS: Final = {"array": "numpy", "dlpack": "dlpack", "untyped_storage": _STORAGE, "storage": _STORAGE}
# Once per process: a loop that records every step need not be told every time.
_told: set[str] = set()


def advisory(code: str, **names: object) -> dict[str, str]:
    """One row of `trace.annotations["capture_advisories"]`."""
    return {"code": code, "text": ADVISORIES[code].format(**names)}


def about_call(module: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
    """Code of what a module call does otherwise than in a plain run, "" for nothing.

    Torch's fast path for encoders turns itself off under any function mode. Its results are those of the ordinary
    path to rounding, except that positions masked as padding come out as zeros.
    """
    if not isinstance(module, nn.TransformerEncoder) or module.training or torch.is_grad_enabled():
        return ""
    mask = kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None)
    return "encoder_padding_kept" if mask is not None and module.enable_nested_tensor else ""


def about_run(data: TraceData, params_before: int) -> Iterator[dict[str, str]]:
    """Rows about what a finished run did to its model. params_before: how many parameters it had."""
    created = [param.address for param in data.params[params_before:]]
    if created:
        yield advisory("parameter_created_in_forward", names=_listed(created))
    norms = norms_updated(data)
    if norms:
        yield advisory("batchnorm_train_stats_mutated", names=_listed(norms))


def about_reads(data: TraceData, reads: Mapping[str, list[int]]) -> Iterator[dict[str, str]]:
    """A row for the tensors that left the graph as numbers, lists, arrays or copies. reads: nodes by function name."""
    nodes = sorted({node for found in reads.values() for node in found})
    if nodes:
        calls = dict.fromkeys(_WAYS.get(name, name) for name in reads)
        yield advisory("values_left_graph", names=_listed([data.nodes.label[i] for i in nodes]), calls=", ".join(calls))


def about_classes(classes: Iterable[type]) -> Iterator[dict[str, str]]:
    """A row for classes whose objects answer torch functions or dispatched calls themselves."""
    own = [kind.__name__ for kind in classes if not issubclass(kind, torch.Tensor) or runs_code(kind)]
    if own:
        yield advisory("tensor_subclass", names=_listed(own))


def norms_updated(data: TraceData) -> list[str]:
    """Addresses of the normalization layers whose running mean or variance the run wrote."""
    found: dict[str, None] = {}
    nodes = data.nodes
    for buffer in data.buffers:
        owner, _, name = buffer.address.rpartition(".")
        written = any(nodes.func[ref.node].endswith("_norm") for i in buffer.versions for ref in nodes.parents[i])
        if name in ("running_mean", "running_var") and written:
            found[owner or "the model"] = None
    return list(found)


def warn_of_mutation(data: TraceData) -> None:
    """Warn, once per process, that recording in training mode moved running statistics as a plain call does."""
    code = "batchnorm_train_stats_mutated"
    if code not in _told and (norms := norms_updated(data)):
        _told.add(code)
        warn("batchnorm_train_stats_mutated", advisory(code, names=_listed(norms))["text"], norms=norms)


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
