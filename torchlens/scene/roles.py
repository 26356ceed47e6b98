"""The semantic role of a node, which a theme gives a look. Knows no colours."""

from __future__ import annotations

from collections.abc import Iterable, Set

from torchlens.plan.graph import COPY, FOLD, FROM, MODULE, OUTPUTS, SEGMENT, TO, PlanNode
from torchlens.records.trace_data import TraceData

_STUB_ROLES = {FROM: "input", TO: "output"}
CAPSULE_ROLES = {SEGMENT: "segment", FOLD: "ellipsis", OUTPUTS: "output"}


def roles_of(data: TraceData, nodes: Iterable[PlanNode]) -> list[str]:
    """The role of each node: input or output, branch test, else by kind, by the parameters used, else op or box.

    A stub is an input or output of the module in focus; one of a far source looks like an input if that is one.
    A box is no branch test, whatever is tested in it; a rolled layer is one if it was tested in any pass.
    """
    tested = set(data.branches.nodes)
    return [_role(data, node, tested) for node in nodes]


def _role(data: TraceData, node: PlanNode, tested: Set[int]) -> str:
    if node.kind in CAPSULE_ROLES:
        return CAPSULE_ROLES[node.kind]
    if node.kind not in ("input", "output", MODULE) and not tested.isdisjoint(node.members):
        return "branch_test"
    if node.kind == COPY:
        source = data.nodes.kind[node.first]
        return source if source in ("input", "buffer", "constant") else "op"
    if node.kind not in ("op", MODULE):
        return _STUB_ROLES.get(node.kind, node.kind)
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
