"""A recording of this package in the terms of `facts.py`."""

from __future__ import annotations

from typing import Any

from torch import nn

import torchlens as tl
from tests.cases.facts import Recorded, kind_of


def record(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> Recorded:
    """Trace a model, check the rules that every trace keeps, and draw it."""
    trace = tl.trace(model, args, input_kwargs=kwargs)
    trace.check()
    passes = {layer.label: layer.num_passes for layer in trace.layers}
    ops = [
        {
            "id": node["label"],
            "kind": kind_of(node["func"]),
            "role": node["kind"],
            "path": node["path"],
            "parents": list(dict.fromkeys(label for label, _ in node["parents"])),
            "params": node["params"],
            "layer": node["layer"],
            "passes": passes[node["layer"]],
        }
        for node in trace.to_dict()["nodes"]
    ]
    calls = {address: m.num_calls for m in trace.modules for address in (m.record.address, *m.record.aliases)}
    branches = [bool(branch.value) for branch in trace.branches]
    dot = trace.draw(file_format="dot").dot
    return Recorded(ops, calls, trace.num_params, branches, dot, trace.result)
