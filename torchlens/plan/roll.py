"""Groups trace nodes into the nodes of the figure: one per pass, or with `rolled=` one per layer, and one per box.

Also says what stands behind the `@` of a node, where passes of one module may be chained or independent.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchlens.base.units import passes_text
from torchlens.plan.graph import MODULE, buffer_versions, call_address
from torchlens.plan.rectangles import Works
from torchlens.plan.select import Selection
from torchlens.records.trace_data import TraceData


@dataclass(frozen=True, slots=True)
class Groups:
    """members: per group its trace nodes, ascending, groups in order of their first one; owner: per trace node its
    group, -1 for none; box: per group, whether it is a module drawn as one node.
    """

    members: list[list[int]]
    owner: list[int]
    box: list[bool]


def group_nodes(data: TraceData, selection: Selection, works: Works, boxed: list[int | None], rolled: bool) -> Groups:
    """Assign every used node: to the box it lies in, to its layer or to a node of its own; hidden ones to none."""
    members: list[list[int]] = []
    box: list[bool] = []
    owner = [-1] * len(data.nodes)
    known: dict[tuple[str, int], int] = {}
    for i, kind in enumerate(data.nodes.kind):
        if not selection.used[i]:
            continue
        call = boxed[data.nodes.call[i]] if kind not in ("input", "output") else None
        if call is not None and works.op[call] != i:
            key = (MODULE, data.calls[call].module if rolled else call)
        elif selection.hidden[i]:
            continue
        else:
            key = ("layer", data.nodes.layer[i]) if rolled else ("node", i)
        found = known.get(key)
        if found is None:
            found = known[key] = len(members)
            members.append([])
            box.append(key[0] == MODULE)
        members[found].append(i)
        owner[i] = found
    return Groups(members, owner, box)


def node_addresses(data: TraceData, works: Works, groups: Groups, rolled: bool) -> list[str | None]:
    """What stands behind the `@` of each group: a module call for rectangles, the path of inputs and the like."""
    versions = buffer_versions(data)
    chained = _chained(data, works, groups) if rolled else {}
    table: list[str | None] = []
    for group, members in enumerate(groups.members):
        kind, path = data.nodes.kind[members[0]], data.nodes.path[members[0]]
        if groups.box[group]:
            table.append(None)
        elif kind == "op":
            table.append(_work_address(data, works, members, chained))
        elif kind in ("input", "output"):
            table.append(f"{kind}.{path}" if path else kind)
        elif kind == "buffer" and members[0] in versions:
            record, version = versions[members[0]]
            table.append(f"{path}:{version}" if len(data.buffers[record].versions) > 1 else path)
        else:
            table.append(path or None)
    return table


def _work_address(data: TraceData, works: Works, members: list[int], chained: dict[int, bool]) -> str | None:
    """The module that the members are the whole work of; None if one of them is not."""
    calls = [works.call_of(data, i) for i in members]
    found = [call for call in calls if call is not None]
    modules = {data.calls[call].module for call in found}
    if len(found) < len(calls) or len(modules) > 1:
        return None
    if len(members) == 1:
        return call_address(data, found[0])
    address = data.modules[modules.pop()].address or "self"
    runs: list[list[int]] = []
    for i, call in zip(members, found, strict=True):
        if runs and chained[i]:
            runs[-1].append(data.calls[call].number)
        else:
            runs.append([data.calls[call].number])
    if len(runs) == 1:
        return address
    return f"{address}:{','.join(passes_text(run) for run in runs)}"


def _chained(data: TraceData, works: Works, groups: Groups) -> dict[int, bool]:
    """For each pass of a rectangle that ran several times: whether it depends on an earlier pass of itself.

    One bit per such group travels along the arrows, so the cost is one pass over the trace.
    """
    several = [
        g
        for g, members in enumerate(groups.members)
        if len(members) > 1 and all(works.call_of(data, i) is not None for i in members)
    ]
    bit = {group: 1 << k for k, group in enumerate(several)}
    reached = [0] * len(data.nodes)
    chained: dict[int, bool] = {}
    for i, refs in enumerate(data.nodes.parents if bit else ()):
        mask = 0
        for ref in refs:
            mask |= reached[ref.node]
        own = bit.get(groups.owner[i], 0)
        if own:
            chained[i] = bool(mask & own)
        reached[i] = mask | own
    return chained
