"""Structural rules that every trace keeps, checked in one linear pass."""

from __future__ import annotations

from torchlens.base.errors import fail
from torchlens.records.ops import KINDS
from torchlens.records.trace_data import TraceData


def check(data: TraceData) -> None:
    """Raise CaptureError[trace_inconsistent] naming the first broken rule; return None if all hold."""
    for problem in (_columns(data), _nodes(data), _layers(data), _calls(data), _state(data)):
        if problem:
            fail("trace_inconsistent", problem)


def _columns(data: TraceData) -> str:
    count = len(data.nodes)
    for name in type(data.nodes).__slots__:
        if len(getattr(data.nodes, name)) != count:
            return f"column {name} has {len(getattr(data.nodes, name))} rows, not {count}"
    if len(set(data.nodes.label)) != count:
        return "two nodes bear one label"
    return ""


def _nodes(data: TraceData) -> str:
    t = data.nodes
    last_kind = ""
    for i in range(len(t)):
        if t.kind[i] not in KINDS:
            return f"{t.label[i]} has the unknown kind {t.kind[i]}"
        if t.kind[i] == "input" and last_kind not in ("", "input"):
            return f"input {t.label[i]} comes after other nodes"
        if last_kind == "output" and t.kind[i] != "output":
            return f"{t.label[i]} comes after an output"
        last_kind = t.kind[i]
        for ref in t.parents[i]:
            if not 0 <= ref.node < i:
                return f"{t.label[i]} reads a node that does not come before it"
            if not ref.late and not 0 <= ref.output < len(t.outs[ref.node]):
                return f"{t.label[i]} reads output {ref.output} of {t.label[ref.node]}, which it does not have"
    return ""


def _layers(data: TraceData) -> str:
    seen = 0
    for index, layer in enumerate(data.layers):
        seen += len(layer.nodes)
        for number, node in enumerate(layer.nodes, start=1):
            if data.nodes.layer[node] != index or data.nodes.pass_number[node] != number:
                return f"{layer.label} and its node {data.nodes.label[node]} disagree"
    return "" if seen == len(data.nodes) else "the layers do not hold every node once"


def _calls(data: TraceData) -> str:
    owned: set[int] = set()
    for call in data.calls:
        if call.parent is not None and not call.parent < call.index:
            return f"call {data.call_key(call.index)} begins before the call around it"
        for node in call.ops:
            if data.nodes.call[node] != call.index:
                return f"{data.nodes.label[node]} is not in call {data.call_key(call.index)}"
        owned.update(call.ops)
        for node, output in call.outputs:
            if not (node < len(data.nodes) and output < len(data.nodes.outs[node])):
                return f"call {data.call_key(call.index)} returns an output that does not exist"
    missing = [i for i in data.op_indexes if i not in owned]
    return f"{data.nodes.label[missing[0]]} belongs to no module call" if missing else ""


def _state(data: TraceData) -> str:
    for param in data.params:
        for node in param.used_by:
            if param.index not in data.nodes.params[node]:
                return f"{param.address} and {data.nodes.label[node]} disagree about its use"
    return ""
