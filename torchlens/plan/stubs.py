"""Stub copies: what feeds many readers far away is named again beside them, and the long arrows are left out.

A rule by counts, so that the same plan always gets the same stubs. A stub stands for no record: it only names one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from torchlens.base.digraph import ranks
from torchlens.plan.graph import CAPSULES, COPY, MODULE, STUBS, Plan, PlanEdge, PlanNode

# A reader is far if it stands more than so many ranks behind the source; so many far readers an arrow each may have.
FAR_RANKS, FAR_READERS = 20, 8
# Readers in one frame that stand so close share a stub.
SHARED_RANKS = 1


def add_copies(plan: Plan) -> Plan:
    """The plan with a stub beside the far readers of each source that has more than eight. Linear in the plan."""
    if not _may_need_copies(plan):
        return plan
    rank = ranks(len(plan.nodes), ((edge.source, edge.target) for edge in plan.edges), late=True)
    far = [_is_far(plan, edge, rank) for edge in plan.edges]
    readers = Counter(source for source, _ in _far_pairs(plan.edges, far))
    copied = {
        source for source, count in readers.items() if count > FAR_READERS and plan.nodes[source].kind not in CAPSULES
    }
    if not copied:
        return plan
    stubs: list[PlanNode] = []
    before: list[list[int]] = [[] for _ in plan.nodes]
    latest: dict[tuple[int, int | None], tuple[int, int]] = {}
    moved: dict[int, int] = {}
    for number in sorted(range(len(plan.edges)), key=lambda n: (plan.edges[n].target, n)):
        edge = plan.edges[number]
        if not far[number] or edge.source not in copied:
            continue
        reader = plan.nodes[edge.target]
        key = (edge.source, reader.box)
        stub, first = latest.get(key, (-1, 0))
        if stub < 0 or abs(rank[edge.target] - first) > SHARED_RANKS:
            stub = len(stubs)
            stubs.append(_copy(plan.nodes[edge.source], reader.box))
            before[edge.target].append(stub)
            latest[key] = stub, rank[edge.target]
        moved[number] = stub
    return _insert(plan, stubs, before, moved)


def _may_need_copies(plan: Plan) -> bool:
    if len(plan.nodes) <= FAR_RANKS:
        return False
    return any(count > FAR_READERS for count in Counter(edge.source for edge in plan.edges).values())


def _is_far(plan: Plan, edge: PlanEdge, rank: Sequence[int]) -> bool:
    ends = plan.nodes[edge.source].kind, plan.nodes[edge.target].kind
    if edge.back or any(kind in STUBS for kind in ends) or ends[1] == "output":
        return False
    return rank[edge.target] - rank[edge.source] > FAR_RANKS


def _far_pairs(edges: Sequence[PlanEdge], far: Sequence[bool]) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for edge, flag in zip(edges, far, strict=True) if flag}


def _copy(source: PlanNode, box: int | None) -> PlanNode:
    calls = source.calls if source.kind == MODULE else ()
    return PlanNode(
        COPY,
        f"stub:from:{source.name}",
        (),
        box,
        calls=calls,
        address=source.address,
        from_input=source.from_input,
        outside=source.members,
    )


def _insert(plan: Plan, stubs: Sequence[PlanNode], before: Sequence[Sequence[int]], moved: dict[int, int]) -> Plan:
    """Each stub right before its first reader, so that trace order stays the order of the page."""
    nodes: list[PlanNode] = []
    place: list[int] = []
    stub_place = [0] * len(stubs)
    for node, new in zip(plan.nodes, before, strict=True):
        for stub in new:
            stub_place[stub] = len(nodes)
            nodes.append(stubs[stub])
        place.append(len(nodes))
        nodes.append(node)
    edges = [
        edge._replace(
            source=stub_place[moved[number]] if number in moved else place[edge.source], target=place[edge.target]
        )
        for number, edge in enumerate(plan.edges)
    ]
    return replace(plan, nodes=tuple(nodes), edges=tuple(edges))
