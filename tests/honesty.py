"""Checks of folded drawings against the trace, by means of their own: no planner code is used.

The trace is contracted by the members of the drawn nodes alone; the arrows that this gives are compared with those
that are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from torchlens.plan import make_plan
from torchlens.plan.graph import CLOSED, COPY, STUBS, Plan, tally
from torchlens.plan.select import ROUTINE
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve


def make(data: TraceData, **options: object) -> Plan:
    return make_plan(data, resolve(data, options))


def home(plan: Plan) -> dict[int, int]:
    """Trace node -> the drawn node that holds it; each is held once."""
    table: dict[int, int] = {}
    for number, node in enumerate(plan.nodes):
        for member in node.members:
            assert member not in table, f"{node.name} holds a record that is drawn elsewhere too"
            table[member] = number
    return table


def contracted(data: TraceData, full: Plan, folded: Plan) -> Counter[tuple[int, int]]:
    """How many tensors pass between every two drawn nodes, from the trace and the members alone.

    A write through another name of the same memory counts where nothing is handed over as an argument.
    """
    visible, place = home(full), home(folded)
    found: Counter[tuple[int, int]] = Counter()
    late: Counter[tuple[int, int]] = Counter()
    for target in visible:
        for ref in data.nodes.parents[target]:
            waiting = [ref.node]
            while waiting:
                source = waiting.pop()
                if source in visible:
                    if place[source] != place[target]:
                        (late if ref.late else found)[place[source], place[target]] += 1
                elif data.nodes.kind[source] == "buffer" and not data.nodes.path[source].endswith(ROUTINE):
                    waiting += [writer.node for writer in data.nodes.parents[source]]
    return found + Counter({ends: count for ends, count in late.items() if ends not in found})


def drawn(plan: Plan) -> Counter[tuple[int, int]]:
    """How many tensors the drawn arrows stand for; an arrow from a named copy counts for what it names."""
    names = {node.name: number for number, node in enumerate(plan.nodes)}
    found: Counter[tuple[int, int]] = Counter()
    for edge in plan.edges:
        source = plan.nodes[edge.source]
        start = names[source.name.removeprefix("stub:from:")] if source.kind == COPY else edge.source
        found[start, edge.target] += edge.tensors
    return found


def check_unrolled(data: TraceData, full: Plan, folded: Plan) -> None:
    """A folded drawing holds all that the full one shows, and exactly the arrows of the trace between its nodes."""
    assert set(home(full)) <= set(home(folded))
    assert drawn(folded) == contracted(data, full, folded)
    assert _is_acyclic(len(folded.nodes), list(drawn(folded)))
    assert not any(edge.back for edge in folded.edges)
    if folded.collapse is not None:
        assert sum(node.kind != COPY for node in folded.nodes) == folded.collapse.nodes
    ops = {i for i, kind in enumerate(data.nodes.kind) if kind == "op"}
    assert sum(tally(data, node.members).ops for node in folded.nodes) == len(ops & set(home(folded)))


def check_rolled(data: TraceData, full: Plan, folded: Plan) -> None:
    """A folded rolled drawing has an arrow between two of its nodes if and only if the trace has.

    An arrow from a node to itself is from one round of it to another, so only what ran more than once has one.
    """
    assert set(home(full)) <= set(home(folded))
    assert {ends for ends in drawn(folded) if ends[0] != ends[1]} == set(contracted(data, full, folded))
    for tail in {tail for tail, head in drawn(folded) if tail == head}:
        assert _repeats(data, folded.nodes[tail].members), f"{folded.nodes[tail].name} ran once and has a loop"
    if folded.collapse is not None:
        assert sum(node.kind != COPY for node in folded.nodes) == folded.collapse.nodes


def _repeats(data: TraceData, members: Iterable[int]) -> bool:
    """Whether some of the trace nodes are of a layer with several passes, or of a module that was called again."""
    for i in members:
        if data.layers[data.nodes.layer[i]].num_passes > 1:
            return True
        call: int | None = data.nodes.call[i]
        while call is not None:
            if len(data.modules[data.calls[call].module].calls) > 1:
                return True
            call = data.calls[call].parent
    return False


def is_coarser(fine: Plan, coarse: Plan) -> bool:
    """Whether nothing that the finer drawing hides came to light again in the coarser.

    Unrolled, each node lies in one of the coarser drawing. Rolled, the passes of a layer or a module may run in several
    others; when one of these becomes a box, the node keeps the passes that ran elsewhere.
    """
    place, before = home(coarse), home(fine)
    if not fine.rolled:
        return all(len({place[i] for i in node.members}) <= 1 for node in fine.nodes if node.kind not in STUBS)
    open_ = [node for node in coarse.nodes if node.kind not in (*STUBS, *CLOSED)]
    closed = {i for node in fine.nodes if node.kind in CLOSED for i in node.members}
    return all(len({before[i] for i in node.members}) == 1 and closed.isdisjoint(node.members) for node in open_)


def _is_acyclic(count: int, edges: list[tuple[int, int]]) -> bool:
    into = [0] * count
    out: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        into[target] += 1
        out[source].append(target)
    ready = [node for node in range(count) if not into[node]]
    done = 0
    while ready:
        done += 1
        for target in out[ready.pop()]:
            into[target] -= 1
            if not into[target]:
                ready.append(target)
    return done == count
