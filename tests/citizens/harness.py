"""One program run plainly and recorded twice, the comparison of the three runs, and the graph as text.

A program is `f(m, *args)`: m is a small module with `fc` and `out` (linear), `bn`, `drop`, a buffer `state` and a
plain tensor `table`. A graph is one string per node in order, `add(mul, x)`: function without underscores, parents
by position, parameters after a semicolon. A name met again has `#2`; one of several outputs is `max[0]`; inputs bear
their path, buffers `state:1`, constants `const` or their path, outputs `out`.
"""

from __future__ import annotations

import collections
import copy
import gc
import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

import torchlens as tl
from torchlens.inputs.leaves import leaves

Program = Callable[..., Any]


class Host(nn.Module):
    """What programs work with."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(4, 4), nn.Linear(4, 4)
        self.bn, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("state", torch.zeros(4))
        self.table = torch.arange(4.0)
        self.program = program

    def forward(self, *args, **kwargs):
        return self.program(self, *args, **kwargs)


@dataclass
class Case:
    """A program with what it needs, and what is true of its graph.

    graph: every node, or None where only links are claimed; linked: no constant stands in it and every input reaches
    every output; constants: torch brings constants of its own; disclosed: where a link is missing, an advisory that
    holds this word makes it honest.
    """

    program: Program
    args: Callable[[], tuple]
    prepare: Callable[[nn.Module], None] | None
    train: bool
    graph: list[str] | None
    linked: bool
    constants: bool
    disclosed: str
    gradients: bool

    @property
    def name(self) -> str:
        return self.program.__name__


CASES: list[Case] = []


def ones() -> tuple:
    return (torch.linspace(-1, 1, 8).reshape(2, 4),)


def graph(*rows: str, args=ones, prepare=None, train=False, gradients=True):
    """Register a program whose whole graph is known."""

    def register(program: Program) -> Program:
        CASES.append(Case(program, args, prepare, train, list(rows), False, True, "", gradients))
        return program

    return register


def linked(args=ones, prepare=None, train=False, constants=False, disclosed="", gradients=True):
    """Register a program in which every input reaches every output, by ops whose names are torch's own affair."""

    def register(program: Program) -> Program:
        CASES.append(Case(program, args, prepare, train, None, True, constants, disclosed, gradients))
        return program

    return register


# -- running
def build(case: Case) -> nn.Module:
    torch.manual_seed(0)
    model = Host(case.program).train(case.train)
    if case.prepare:
        case.prepare(model)
    return model


@dataclass
class Run:
    """What a run left: its result, the model and the arguments afterwards, and the random streams."""

    result: Any
    model: nn.Module
    args: tuple
    streams: tuple
    trace: Any = None


def run(case: Case, save: str | None) -> Run:
    """Plainly (save=None), or recorded."""
    model, args = build(case), case.args()
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    trace = tl.trace(model, args, save=save) if save else None
    result = trace.result if trace else model(*args)
    streams = (torch.get_rng_state().tolist(), random.random(), np.random.rand())
    return Run(result, model, args, streams, trace)


def compare(plain: Run, traced: Run, *, results: bool) -> None:
    """Assert that recording changed nothing."""
    assert traced.streams == plain.streams
    assert state(traced.model) == state(plain.model)
    same_tensors(dict(plain.model.state_dict()), dict(traced.model.state_dict()))
    same_tensors(plain.args, traced.args)
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._len_torch_dispatch_stack() == 0
    assert gc.isenabled()
    if results:
        assert type(traced.result) is type(plain.result)
        same_tensors(plain.result, traced.result)


def state(model: nn.Module) -> dict[str, Any]:
    modules = list(model.named_modules())
    return {
        "training": [(name, module.training) for name, module in modules],
        "params": [(n, p.requires_grad, p._version, type(p)) for n, p in model.named_parameters()],
        "buffers": [(name, b._version) for name, b in model.named_buffers()],
        "hooks": [(name, len(m._forward_hooks), len(m._forward_pre_hooks)) for name, m in modules],
        "attributes": [(name, sorted(vars(module))) for name, module in modules],
    }


def same_tensors(a: Any, b: Any) -> None:
    """Equal tensors of one kind at the same paths."""
    left, right = dict(leaves(a)), dict(leaves(b))
    assert left.keys() == right.keys()
    for path in left:
        x, y = left[path], right[path]
        assert (type(x), x.dtype, x.layout, x.device) == (type(y), y.dtype, y.layout, y.device), path
        assert (x.requires_grad, x.is_leaf, type(x.grad_fn)) == (y.requires_grad, y.is_leaf, type(y.grad_fn)), path
        if x.device.type == "meta" or type(x).__name__ == "FakeTensor":
            assert x.shape == y.shape
        else:
            torch.testing.assert_close(plain_values(x), plain_values(y), rtol=0, atol=0, equal_nan=True, msg=path)


def plain_values(x: torch.Tensor) -> torch.Tensor:
    x = x.detach()
    if x.is_nested:
        return torch.cat([part.reshape(-1) for part in x.unbind()])
    if x.is_quantized:
        return x.int_repr()
    return x.to_dense() if x.layout != torch.strided else x


def same_gradients(plain: Run, traced: Run) -> None:
    """A backward from either result gives every parameter and input the same gradient."""
    for each in (plain, traced):
        terms = [t for _, t in leaves(each.result) if t.requires_grad and not t.is_nested and t.layout == torch.strided]
        total: Any = sum((t.real if t.is_complex() else t).sum() for t in terms)
        if terms:
            total.backward()
    for (name, p), (_, q) in zip(plain.model.named_parameters(), traced.model.named_parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad, rtol=0, atol=0)


# -- reading a trace
def rows(trace: tl.Trace, program: Program) -> list[str]:
    """The graph as text, inputs named as the program names its arguments."""
    nodes = trace.to_dict()["nodes"]
    arguments = list(inspect.signature(program).parameters)[1:]
    names, seen = {}, collections.Counter()
    outputs = {node["label"]: len(node["outputs"]) for node in nodes}
    versions = collections.Counter()
    found = []
    for node in nodes:
        if node["kind"] == "op":
            name = node["func"].strip("_")
        elif node["kind"] == "buffer":
            versions[node["path"]] += 1
            name = f"{node['path']}:{versions[node['path']]}"
        elif node["kind"] == "input":
            _, position, *rest = node["path"].split(".")
            name = ".".join([arguments[int(position)], *rest])
        else:
            name = "out" if node["kind"] == "output" else node["path"] or "const"
        seen[name] += 1
        names[node["label"]] = name if seen[name] == 1 else f"{name}#{seen[name]}"
        parents = [names[p] + (f"[{i}]" if outputs[p] > 1 else "") for p, i in node["parents"]]
        if node["kind"] in ("input", "constant"):
            continue
        if node["kind"] == "buffer" and not parents:
            continue
        params = f"; {', '.join(node['params'])}" if node["params"] else ""
        found.append(f"{names[node['label']]}({', '.join(parents)}{params})")
    return found


def unlinked(trace: tl.Trace, *, constants: bool) -> list[str]:
    """Constants, and outputs that an input does not reach."""
    nodes = trace.to_dict()["nodes"]
    problems = [f"constant {node['label']}" for node in nodes if node["kind"] == "constant" and not constants]
    inputs = [node["label"] for node in nodes if node["kind"] == "input"]
    above: dict[str, set[str]] = {}
    for node in nodes:
        above[node["label"]] = {node["label"]}.union(*(above[p] for p, _ in node["parents"]))
        if node["kind"] == "output":
            problems += [f"{i} does not reach {node['label']}" for i in inputs if i not in above[node["label"]]]
    return problems


def advisories(trace: tl.Trace) -> list[str]:
    """What the trace says that a reader has to know."""
    return [*map(str, trace.annotations.get("capture_advisories", ())), *trace.outcome.advisories]


def check(case: Case) -> tl.Trace:
    """Run a case three ways and assert everything that is claimed of it."""
    plain, kept, facts = run(case, None), run(case, "all"), run(case, "none")
    compare(plain, kept, results=True)
    compare(plain, facts, results=False)
    for each in (kept, facts):
        each.trace.check()
        assert each.trace.outcome.completed
    found = rows(kept.trace, case.program)
    assert found == rows(facts.trace, case.program)
    if case.graph is not None:
        assert found == case.graph
    if case.linked:
        problems = unlinked(kept.trace, constants=case.constants)
        if problems and case.disclosed and any(case.disclosed in note for note in advisories(kept.trace)):
            problems = []
        assert problems == [], found
    if case.gradients:
        same_gradients(plain, kept)
    return kept.trace


def deep(*tensors: torch.Tensor) -> Callable[[], tuple]:
    """Arguments that are new copies for each run."""
    return lambda: copy.deepcopy(tensors)
