"""Facts of 85 models measured with plain PyTorch, and the comparison of a trace with them.

`models.jsonl` holds one model a line: how to build it, its inputs, and under `plain` what forward hooks, a bare
function mode and the model itself say. Row of `calls.list`: name, parents, outputs, module, parameters, buffers, same,
late; parents are call indexes, -1-k for input k, null for a constant; late are earlier calls that wrote to an
argument's storage after that argument was made. The rows describe the second forward of a model object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import torchlens as tl
from tests.oracle import zoo
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

RECORDS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "models.jsonl").read_text().splitlines()
]
# A Python-level function that made one inner call bears its public name; the facts name the inner call.
PUBLIC_NAMES = {
    ("norm", "linalg_vector_norm"),
    ("interpolate", "upsample_bilinear2d"),
    ("interpolate", "upsample_nearest2d"),
    ("split", "split_with_sizes"),
    ("rpow", "pow"),
}


def trace_second_forward(record: dict[str, Any]) -> tl.Trace:
    """The trace of a model's second forward, with its state as before the first."""
    model = zoo.build_model(record)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    args, kwargs = zoo.make_inputs(record)
    torch.manual_seed(2)
    model(*args, **kwargs)
    model.load_state_dict(before)
    args, kwargs = zoo.make_inputs(record)
    torch.manual_seed(2)
    return tl.trace(model, args, input_kwargs=kwargs, save="none")


def differences(record: dict[str, Any], data: TraceData) -> Iterator[str]:
    """Everything in which a trace and the measured facts disagree."""
    plain = record["plain"]
    yield from _calls(plain, data)
    modules = [[m.address, m.class_name, len(m.calls)] for m in data.modules]
    if modules != plain["module_calls"]:
        yield f"module calls {modules} are not {plain['module_calls']}"
    params = (
        len(data.params),
        sum(p.numel for p in data.params),
        sum(p.numel for p in data.params if p.trainable),
        sum(p.nbytes for p in data.params),
    )
    wanted = tuple(plain["params"][key] for key in ("tensors", "total", "trainable", "bytes"))
    if params != wanted:
        yield f"parameters {params} are not {wanted}"
    outputs = [[data.nodes.path[i], _spec(data, i)] for i in _of_kind(data, "output")][:40]
    if outputs != [row[:2] for row in plain["outputs"]]:
        yield f"outputs {outputs} are not {plain['outputs']}"


def _calls(plain: dict[str, Any], data: TraceData) -> Iterator[str]:
    rows, nodes = plain["calls"]["list"], data.nodes
    ops = [i for i in data.op_indexes if not nodes.synthetic[i]]
    if len(ops) != len(rows):
        yield f"{len(ops)} calls are not {len(rows)}"
        return
    place = _Places(data, ops)
    for k, (i, row) in enumerate(zip(ops, rows, strict=True)):
        name, parents, outs, module, params, buffers, _, late = row
        got = nodes.func[i].strip("_")
        if got != name.strip("_") and (got, name) not in PUBLIC_NAMES:
            yield f"call {k} is {got}, not {name}"
        mine, mine_late = place.parents(i)
        if mine != {p for p in parents if p is not None} or mine_late != set(late):
            yield f"call {k} {name} reads {mine} and late {mine_late}, not {parents} and {late}"
        if [_text(spec) for spec in nodes.outs[i]] != outs:
            yield f"call {k} {name} returns {nodes.outs[i]}, not {outs}"
        if data.modules[data.calls[nodes.call[i]].module].address != plain["module_calls"][module][0]:
            yield f"call {k} {name} is not in {plain['module_calls'][module][0]}"
        if (len(nodes.params[i]), len(nodes.buffers[i])) != (params, buffers):
            yield f"call {k} {name} uses {nodes.params[i]}, {nodes.buffers[i]}, not {params} and {buffers} of them"


class _Places:
    """Call indexes and input numbers behind the argument references of a trace."""

    def __init__(self, data: TraceData, ops: list[int]) -> None:
        self._data = data
        self._call_of = {node: k for k, node in enumerate(ops)}
        self._input_of = {node: -1 - k for k, node in enumerate(_of_kind(data, "input"))}

    def parents(self, node: int) -> tuple[set[int], set[int]]:
        """Direct and late parents of an op, synthetic identities and buffer versions looked through."""
        direct: set[int] = set()
        late: set[int] = set()
        for ref in self._data.nodes.parents[node]:
            self._resolve(ref, late if ref.late else direct, late)
        return direct, late

    def _resolve(self, ref: ArgRef, found: set[int], late: set[int]) -> None:
        nodes = self._data.nodes
        while nodes.synthetic[ref.node]:
            ref = nodes.parents[ref.node][ref.output]
        kind = nodes.kind[ref.node]
        if kind == "input":
            found.add(self._input_of[ref.node])
        elif kind == "buffer":
            late.update(self._call_of[writer.node] for writer in nodes.parents[ref.node])
        elif kind == "op":
            found.add(self._call_of[ref.node])


def _of_kind(data: TraceData, kind: str) -> list[int]:
    return [i for i in range(len(data.nodes)) if data.nodes.kind[i] == kind]


def _spec(data: TraceData, node: int) -> str:
    return _text(data.nodes.outs[node][0])


def _text(spec: Any) -> str:
    return f"{spec.dtype}[{','.join(map(str, spec.shape))}]"
