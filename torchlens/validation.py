"""Proof that a recording is right: replay it, change its arguments, compare it with plain runs."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from torchlens.base.errors import fail
from torchlens.proof.validate import validate
from torchlens.records.proof import Failure, NotCompared, Unshown, ValidationReport

__all__ = ["Failure", "NotCompared", "Unshown", "ValidationReport", "validate_forward_pass"]


def validate_forward_pass(
    model: nn.Module,
    x: object = None,
    *,
    input_kwargs: Mapping[str, object] | None = None,
    perturb: bool = True,
    budget: int = 20,
) -> ValidationReport:
    """Record one forward pass and prove the recording.

    x: a tuple is the positional arguments, anything else the one argument. input_kwargs: keyword arguments.
    perturb: change every tensor argument of every op to see whether it matters; about four more forwards of time.
    budget: how many nodes may be computed, in multiples of their count, to get values from their ancestors alone.

    The forward runs three times: with notes, recorded the ordinary way, and plain, each from the same state and random
    streams; up to three times more to tell where a constant comes from, and whether torch's encoder fast path is what
    makes a difference. Then every op is called again on what its recorded arrows lead
    to, with sharing of memory, in-place writes, random streams, grad, inference and autocast modes as they were; and
    the outputs, every op that reads a tensor somebody overwrote, and a sample of others are computed from their
    recorded ancestors alone, so that a missing arrow gives a wrong value or none.

    Parameters, buffers, attributes, the caller's tensors and the random streams are put back at the end; what else a
    forward changes (files, globals, objects inside attributes) has changed as often as it ran. A forward that raises
    raises here too. `report.ok` says whether all agreed; `report.not_compared` what could not be judged.

    Raises: InputError[trace_model_invalid], InputError[trace_input_missing].
    """
    if not isinstance(model, nn.Module):
        what = f"the model is a {type(model).__name__}, not a torch.nn.Module"
        fail("trace_model_invalid", what, got=type(model).__name__)
    if x is None and input_kwargs is None:
        fail("trace_input_missing", f"{type(model).__name__} was given no input", fix="pass the input")
    args = () if x is None else x if isinstance(x, tuple) else (x,)
    return validate(model, args, dict(input_kwargs or {}), perturb=perturb, budget=budget)
