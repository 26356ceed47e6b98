"""Random modules are recorded as they run: replayed, structurally sound, and nothing about the run has changed."""

from __future__ import annotations

import os
from contextlib import nullcontext

import torch
from hypothesis import assume, given, note, settings

import torchlens as tl
from tests.property.programs import Program, programs
from torchlens.inputs.leaves import leaves

# A long search by hand: `PROGRAMS=5000 pytest tests/property`.
EXAMPLES = int(os.environ.get("PROGRAMS", "120"))


def modes(program: Program):
    if program.inference:
        return torch.inference_mode()
    return nullcontext() if program.grad else torch.no_grad()


def run(program: Program, call):
    """What a call gives on new module and inputs: result tensors, state, inputs, and the random stream after it."""
    model, inputs = program.module(), program.inputs()
    torch.manual_seed(2)
    with modes(program):
        result = call(model, inputs)
    return (
        [tensor.detach().clone() for _, tensor in leaves(result)],
        [tensor.clone() for tensor in model.state_dict().values()],
        [tensor.clone() for tensor in inputs],
        [torch.get_rng_state()],
    )


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=1e-4, atol=1e-5, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def faults(program: Program) -> list[str]:
    """Everything that is wrong with the recording of a program; None are found in a program that does not run."""
    try:
        plain = run(program, lambda model, inputs: model(*inputs))
    except (RuntimeError, IndexError):
        return ["it does not run"]
    found: list[str] = []
    traces: list[tl.Trace] = []

    def traced(model, inputs):
        traces.append(tl.trace(model, inputs))
        return traces[-1].result

    names = ("result", "state", "inputs", "random stream")
    for name, was, now in zip(names, plain, run(program, traced), strict=True):
        if not same(was, now):
            found.append(f"the {name} of the traced run is another one")
    try:
        traces[0].check()
    except tl.TorchLensError as error:
        found.append(str(error))
    reports: list[tl.validation.ValidationReport] = []
    run(
        program, lambda model, inputs: reports.append(tl.validation.validate_forward_pass(model, inputs, perturb=False))
    )
    return found + ([] if reports[0].ok else [repr(reports[0])])


@settings(max_examples=EXAMPLES)
@given(programs())
def test_a_random_module_is_recorded_right(program: Program) -> None:
    note(str(program))
    found = faults(program)
    assume(found != ["it does not run"])
    assert found == []
