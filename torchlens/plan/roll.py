"""Groups trace nodes into the nodes of the figure: one per pass, or with `rolled=` one per layer, and one per box.

What lies outside a focused module and touches it is a group of its own kind, a stub.

Also says what stands behind the `@` of a node, where passes of one module may be chained or independent.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchlens.base.text import listing
from torchlens.base.units import passes_text
from torchlens.plan.focus import Boundary
from torchlens.plan.graph import FROM, MODULE, TO, buffer_versions, call_address
from torchlens.plan.rectangles import Works
from torchlens.plan.select import Selection
from torchlens.records.trace_data import TraceData

if TYPE_CHECKING:
    from torchlens.plan.collapse.cut import Cut

# Characters of a list of calls that is written out.
RUNS_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Groups:
    """members: per group its trace nodes, ascending, groups in order of their first one; owner: per trace node its
    group, -1 for none; box: per group, whether it is a module drawn as one node; stub: per group FROM, TO or "";
    feeds and reads: trace nodes outside the focused module -> the stub that stands for them as a source, as a reader;
    capsules: groups of several nodes drawn as one -> number of the capsule.
    """

    members: list[list[int]]
    owner: list[int]
    box: list[bool]
    stub: list[str]
    feeds: dict[int, int] = field(default_factory=dict[int, int])
    reads: dict[int, int] = field(default_factory=dict[int, int])
    capsules: dict[int, int] = field(default_factory=dict[int, int])

    def head(self, node: int) -> int:
        """The group that an arrow into a trace node leads to, -1 for none."""
        return self.owner[node] if self.owner[node] >= 0 else self.reads.get(node, -1)

    def tail(self, node: int) -> int:
        """The group that an arrow out of a trace node comes from, -1 for none."""
        return self.owner[node] if self.owner[node] >= 0 else self.feeds.get(node, -1)


class _Grouping:
    """Groups being made: finds the one of a key, or opens it."""

    def __init__(self, count: int) -> None:
        self.groups = Groups([], [-1] * count, [], [])
        self._known: dict[Hashable, int] = {}

    def add(self, node: int, key: Hashable, *, box: bool = False, stub: str = "") -> int:
        groups = self.groups
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(groups.members)
            groups.members.append([])
            groups.box.append(box)
            groups.stub.append(stub)
        groups.members[found].append(node)
        return found


def group_nodes(
    data: TraceData,
    selection: Selection,
    works: Works,
    boxed: list[int | None],
    rolled: bool,
    boundary: Boundary | None = None,
    cut: Cut | None = None,
) -> Groups:
    """Assign every used node: to the box it lies in, to its layer or to a node of its own; hidden ones to none.

    cut: of a folded figure, what several nodes of it are drawn as.
    """
    grouping = _Grouping(len(data.nodes))
    groups = grouping.groups
    for i, kind in enumerate(data.nodes.kind):
        if boundary is not None and (boundary.feeds[i] or boundary.reads[i]):
            key = data.nodes.layer[i] if rolled else i
            if boundary.feeds[i]:
                groups.feeds[i] = grouping.add(i, (FROM, key), stub=FROM)
            if boundary.reads[i]:
                groups.reads[i] = grouping.add(i, (TO, key), stub=TO)
        if selection.orphans[i] and i not in selection.left_out:
            groups.owner[i] = grouping.add(i, ("orphan", _own_key(data, i, rolled)))
        if not selection.used[i]:
            continue
        capsule = cut.capsule_of(i, data.nodes.call[i]) if cut is not None else None
        if capsule is not None:
            groups.owner[i] = grouping.add(i, ("capsule", capsule))
            groups.capsules[groups.owner[i]] = capsule
            continue
        call = boxed[data.nodes.call[i]] if kind not in ("input", "output") else None
        if call is not None and works.op[call] != i:
            key = (MODULE, data.calls[call].module if rolled else call)
            groups.owner[i] = grouping.add(i, key, box=True)
        elif not selection.hidden[i] and i not in selection.left_out:
            groups.owner[i] = grouping.add(i, _own_key(data, i, rolled))
    return groups


def _own_key(data: TraceData, node: int, rolled: bool) -> Hashable:
    """What a trace node shares with the others of its group: nothing, or in a rolled figure its layer.

    The versions of a buffer that the passes of one layer wrote go together, as these passes do.
    """
    if not rolled:
        return node
    writer = writer_of(data, node)
    if writer is not None and len(data.layers[data.nodes.layer[writer]].nodes) > 1:
        return "written", data.nodes.path[node], data.nodes.layer[writer]
    return "layer", data.nodes.layer[node]


def writer_of(data: TraceData, node: int) -> int | None:
    """What wrote a buffer version, None for its value before the forward and for anything else."""
    refs = data.nodes.parents[node] if data.nodes.kind[node] == "buffer" else ()
    return refs[0].node if refs else None


def node_addresses(data: TraceData, works: Works, groups: Groups, rolled: bool) -> list[str | None]:
    """What stands behind the `@` of each group: a module call for rectangles, the path of inputs and the like."""
    versions = buffer_versions(data)
    chained = _chained(data, works, groups) if rolled else {}
    table: list[str | None] = []
    for group, members in enumerate(groups.members):
        kind, path = data.nodes.kind[members[0]], data.nodes.path[members[0]]
        if groups.box[group] or group in groups.capsules:
            table.append(None)
        elif groups.stub[group]:
            table.append(_place(data, members))
        elif kind == "op":
            table.append(_work_address(data, works, members, chained))
        elif kind in ("input", "output"):
            table.append(f"{kind}.{path}" if path else kind)
        elif kind == "buffer" and members[0] in versions:
            record = versions[members[0]][0]
            numbers = passes_text(versions[i][1] for i in members)
            table.append(f"{path}:{numbers}" if len(data.buffers[record].versions) > 1 else path)
        else:
            table.append(path or None)
    return table


def _place(data: TraceData, members: list[int]) -> str | None:
    """The innermost module that all the members ran in, None for the model itself."""
    calls = list(dict.fromkeys(data.nodes.call[i] for i in members))
    modules = {data.calls[call].module for call in calls}
    if len(modules) > 1 or 0 in modules:
        return None
    return call_address(data, calls[0]) if len(calls) == 1 else data.modules[modules.pop()].address


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
    return f"{address}:{listing([passes_text(run) for run in runs], RUNS_WIDTH)}"


def _chained(data: TraceData, works: Works, groups: Groups) -> dict[int, bool]:
    """For each pass of a rectangle that ran several times: whether it depends on an earlier pass of itself.

    One bit per such group travels along the arrows, so the cost is one pass over the trace.
    """
    several = [
        g
        for g, members in enumerate(groups.members)
        if len(members) > 1
        and not groups.stub[g]
        and g not in groups.capsules
        and all(works.call_of(data, i) is not None for i in members)
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
