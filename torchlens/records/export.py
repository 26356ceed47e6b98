"""The trace as JSON-able facts: the stable contract `torchlens_trace_v1`, without tensors."""

from __future__ import annotations

import math
from typing import Any

from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

SCHEMA = "torchlens_trace_v1"


def to_dict(data: TraceData) -> dict[str, Any]:
    """Plain facts about a trace: nodes, layers, modules, params, branches and totals."""
    labels = data.nodes.label
    return {
        "schema": SCHEMA,
        "model": {"class": data.model_class, "training": data.training},
        "nodes": [_node(data, i) for i in range(len(data.nodes))],
        "layers": [{"layer": layer.label, "passes": layer.num_passes} for layer in data.layers],
        "modules": [
            {"address": m.address, "aliases": list(m.aliases), "class": m.class_name, "calls": len(m.calls)}
            for m in data.modules
        ],
        "params": [
            {
                "address": p.address,
                "aliases": list(p.aliases),
                "shape": list(p.shape),
                "dtype": p.dtype,
                "trainable": p.trainable,
                "used_by": [labels[i] for i in p.used_by],
            }
            for p in data.params
        ],
        "branches": [
            {"label": labels[b.node], "construct": b.construct, "value": b.value, "file": b.file, "line": b.line}
            for b in data.branches
        ],
        "totals": dict(data.totals),
    }


def to_networkx(data: TraceData) -> Any:
    """The same facts as a `networkx.MultiDiGraph`; one edge per tensor read."""
    import networkx

    facts = to_dict(data)
    make: Any = networkx.MultiDiGraph
    graph = make(schema=facts["schema"], **facts["model"], totals=facts["totals"])
    for node in facts["nodes"]:
        graph.add_node(node["label"], **{key: value for key, value in node.items() if key not in ("label", "parents")})
    for node in facts["nodes"]:
        for label, output in node["parents"]:
            graph.add_edge(label, node["label"], output=output)
    return graph


def _node(data: TraceData, i: int) -> dict[str, Any]:
    t = data.nodes
    call = t.call[i]
    value = t.value[i]
    row: dict[str, Any] = {
        "label": t.label[i],
        "layer": data.layers[t.layer[i]].label,
        "pass": t.pass_number[i],
        "kind": t.kind[i],
        "func": t.func[i],
        "path": t.path[i],
        "parents": [[t.label[ref.node], ref.output] for ref in _ordered(t.parents[i])],
        "outputs": [
            {
                "shape": None if spec.shape is None else list(spec.shape),
                "dtype": spec.dtype,
                "device": spec.device,
                "nbytes": spec.nbytes,
            }
            for spec in t.outs[i]
        ],
        "module": "" if call == 0 else data.call_key(call),
        "params": [data.params[p].address for p in t.params[i]],
        "buffers": [data.buffers[b].address for b in t.buffers[i]],
        "inplace": t.inplace[i],
        "bool_value": value if isinstance(value, bool) else None,
        "value": _json_number(value),
        "time_s": t.time_s[i],
        "flops": t.flops[i],
    }
    if t.synthetic[i]:
        row["synthetic"] = True
    return row


def _ordered(refs: tuple[ArgRef, ...]) -> list[ArgRef]:
    """Argument order, writes through an alias last."""
    return [ref for ref in refs if not ref.late] + [ref for ref in refs if ref.late]


def _json_number(value: object) -> object:
    """A scalar as JSON can hold it: complex and non-finite numbers as text."""
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
