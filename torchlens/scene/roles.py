"""The semantic role of a node, which a theme gives a look. Knows no colours."""

from __future__ import annotations

from collections.abc import Iterable

from torchlens.plan.graph import MODULE, PlanNode
from torchlens.records.trace_data import TraceData


def role_of(data: TraceData, node: PlanNode) -> str:
    """The role: input, output, buffer or constant by kind, else by the parameters used, else op or box."""
    if node.kind not in ("op", MODULE):
        return node.kind
    weights = _weights(data, node.members if node.kind == MODULE else node.members[:1])
    return weights or ("box" if node.kind == MODULE else "op")


def _weights(data: TraceData, members: Iterable[int]) -> str:
    trainable = frozen = False
    for i in members:
        for p in data.nodes.params[i]:
            if data.params[p].trainable:
                trainable = True
            else:
                frozen = True
    if trainable and frozen:
        return "mixed"
    return "trainable" if trainable else "frozen" if frozen else ""
