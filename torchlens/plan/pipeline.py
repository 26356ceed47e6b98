"""From a trace and a request to a plan: the ordered steps, each a function of its own module."""

from __future__ import annotations

from dataclasses import replace

from torchlens.plan.boxes import Frames, boxed_calls, framed_calls
from torchlens.plan.collapse.cut import Cut
from torchlens.plan.collapse.nodes import capsule_node, frame_of
from torchlens.plan.collapse.planner import empty_plan, fold_drawing, make_schedule
from torchlens.plan.collapse.schedule import CollapseSchedule
from torchlens.plan.collapse.units import Base
from torchlens.plan.edges import EdgeDrawer
from torchlens.plan.focus import Boundary, call_levels, find_focus, restrict
from torchlens.plan.graph import MODULE, OUTPUTS, Focus, Plan, PlanNode, Tensor, buffer_versions
from torchlens.plan.hide import Gaps
from torchlens.plan.rectangles import Works, close_boxes, find_works
from torchlens.plan.roll import Groups, group_nodes, node_addresses
from torchlens.plan.rules import judge, warn_of
from torchlens.plan.select import Selection, select
from torchlens.plan.stubs import add_copies
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import UNSET, DrawRequest, SettingLayer
from torchlens.settings.rules import read_rules


def make_plan(data: TraceData, request: DrawRequest) -> Plan:
    """Decide what is on the page: module, rolled, depth, show_buffers, show_orphans, collapse and its rules, folds.

    The cost is linear in the trace, and in the ways around ops that rules leave out.
    Raises: UnknownNameError[module_not_found], InvalidArgumentError[module_not_called, collapse_bridges_excessive].
    Warns: collapse_rule_unused, collapse_rule_test_kept, and what `fold_drawing` does.
    """
    options = request.options
    full, focus, boundary = full_drawing(data, request)
    warn_of(data, full.rules, of_unused=_is_for_this(request))
    selection, works, levels, boxed, groups = full.selection, full.works, full.levels, full.boxed, full.groups
    about = focus.members if focus else None
    folded = fold_drawing(full, request, about)
    if folded is not None:
        works, boxed = folded.cut.fold_works(works), folded.cut.boxed
        groups = group_nodes(data, selection, works, boxed, options.rolled, boundary, folded.cut)
    framed = framed_calls(data, works, selection, boxed, levels, options.depth, options.rolled, full.rules)
    frames = Frames(data, framed, options.rolled)
    nodes = _make_nodes(data, selection, works, boxed, groups, frames, folded.cut if folded else None)
    gaps = Gaps(data, selection, groups.owner, lambda node: groups.tail(node) >= 0)
    edges = EdgeDrawer(data, selection, groups, nodes, boxed, options.rolled, gaps).draw()
    collapse = folded.plan if folded else empty_plan(data, request, len(nodes), about)
    left_out = tuple(sorted(gaps.ops))
    return add_copies(Plan(options.rolled, tuple(nodes), tuple(edges), frames.finish(), focus, collapse, left_out))


def _is_for_this(request: DrawRequest) -> bool:
    """Whether the rules were written for this drawing: those of a theme, view or collapse file serve any."""
    label = request.origin["collapse_rules"]
    return label != UNSET and SettingLayer.of(label) > SettingLayer.ENCODING


def plan_schedule(data: TraceData, request: DrawRequest) -> CollapseSchedule:
    """Every step of folding that `collapse=` may pick under the other options of a request."""
    full, focus, _ = full_drawing(data, request)
    return make_schedule(full, request, focus.members if focus else None)


def full_drawing(data: TraceData, request: DrawRequest) -> tuple[Base, Focus | None, Boundary | None]:
    """What is on the page before anything is folded."""
    options = request.options
    focus = find_focus(data, options.module) if options.module is not None else None
    selection, boundary = select(data, options.show_buffers, show_orphans=options.show_orphans), None
    if focus is not None:
        selection, boundary = restrict(data, selection, focus)
    levels = call_levels(data, focus.calls if focus else (0,))
    rules = judge(data, read_rules(options.collapse_rules), levels, selection)
    selection = replace(selection, left_out=rules.hides)
    works = find_works(data, selection)
    boxed = boxed_calls(data, works, levels, options.depth, rules)
    works = close_boxes(data, selection, works, boxed, rules.folds)
    groups = group_nodes(data, selection, works, boxed, options.rolled, boundary)
    bundles = not options.rolled and not options.show_containers
    return Base(data, selection, works, levels, boxed, groups, options.rolled, bundles, rules), focus, boundary


def _make_nodes(
    data: TraceData,
    selection: Selection,
    works: Works,
    boxed: list[int | None],
    groups: Groups,
    frames: Frames,
    cut: Cut | None,
) -> list[PlanNode]:
    addresses = node_addresses(data, works, groups, frames.rolled)
    versions = buffer_versions(data)
    state = _hidden_state(data, selection, versions)
    nodes: list[PlanNode] = []
    for group, members in enumerate(groups.members):
        first = members[0]
        kind, address = data.nodes.kind[first], addresses[group]
        place, calls = data.nodes.call[first], [data.nodes.call[i] for i in members[1:]]
        if groups.stub[group]:
            nodes.append(_stub_node(data, groups.stub[group], members, frames.rolled, address))
            continue
        if cut is not None and group in groups.capsules:
            node = capsule_node(data, cut, groups.capsules[group], members, frames.rolled)
            kind, place, calls = node.kind, frame_of(data, cut, groups.capsules[group]), []
        elif groups.box[group]:
            node = _module_node(data, boxed, members)
            place, *calls = node.calls
        elif kind == "op":
            node = _op_node(data, works, members, frames.rolled, address, state)
        else:
            name = data.nodes.label[first]
            if first in versions:
                name = f"buffer:{data.nodes.path[first]}:{versions[first][1]}"
            node = PlanNode(kind, name, tuple(members), None, address=address)
        from_input = any(data.from_input[i] for i in members)
        if selection.orphans[first]:
            nodes.append(node._replace(box=frames.place_orphan(), from_input=from_input))
            continue
        box = frames.place(place, from_input) if kind not in ("input", "output", OUTPUTS) else None
        for other in calls:
            frames.join(box, other)
        nodes.append(node._replace(box=box, from_input=from_input))
    return nodes


def _op_node(
    data: TraceData, works: Works, members: list[int], rolled: bool, address: str | None, state: dict[int, list[int]]
) -> PlanNode:
    first = members[0]
    name = data.layers[data.nodes.layer[first]].label if rolled else data.nodes.label[first]
    if address is None:
        return PlanNode("op", name, tuple(members), None)
    calls = tuple(call for i in members if (call := works.call_of(data, i)) is not None)
    hidden = tuple(dict.fromkeys(b for call in calls for b in state.get(call, ())))
    return PlanNode("op", name, tuple(members), None, calls, True, address, hidden_buffers=hidden)


def _stub_node(data: TraceData, kind: str, touching: list[int], rolled: bool, address: str | None) -> PlanNode:
    """What the focused module reads, or what reads from it. One pass is named as such, several by their layer."""
    layer = data.layers[data.nodes.layer[touching[0]]]
    named = layer.nodes if rolled and len(touching) > 1 else tuple(touching)
    label = layer.label if len(named) > 1 else data.nodes.label[touching[0]]
    from_input = any(data.from_input[i] for i in touching)
    return PlanNode(kind, f"stub:{kind}:{label}", (), None, address=address, from_input=from_input, outside=named)


def _module_node(data: TraceData, boxed: list[int | None], members: list[int]) -> PlanNode:
    groups: dict[int, list[int]] = {}
    for i in members:
        call = boxed[data.nodes.call[i]]
        if call is not None:
            groups.setdefault(call, []).append(i)
    calls = tuple(sorted(groups))
    first = data.calls[calls[0]]
    name = f"{MODULE}:{data.modules[first.module].address or 'self'}:{first.number}"
    return PlanNode(
        MODULE,
        name,
        tuple(members),
        None,
        calls,
        groups=tuple(tuple(groups[call]) for call in calls),
        outputs=tuple(_leaving(data, call, groups[call]) for call in calls),
    )


def _leaving(data: TraceData, call: int, members: list[int]) -> tuple[Tensor, ...]:
    """The tensors that a box hands on: what its module returned if that is in the box, else what is read outside."""
    inside = set(members)
    returned = [tensor for tensor in data.calls[call].outputs if tensor[0] in inside]
    if returned:
        return tuple(dict.fromkeys(returned))
    ops = [i for i in members if data.nodes.kind[i] == "op"]
    read: dict[Tensor, None] = {}
    for i in ops:
        for child in data.children[i]:
            if child not in inside:
                read.update({(i, ref.output): None for ref in data.nodes.parents[child] if ref.node == i})
    return tuple(read) or tuple((i, 0) for i in ops[-1:])


def _hidden_state(data: TraceData, selection: Selection, versions: dict[int, Tensor]) -> dict[int, list[int]]:
    """Call -> the buffers that it reads or writes and that are not drawn, ascending."""
    table: dict[int, dict[int, None]] = {}
    for i, refs in enumerate(data.nodes.parents):
        for node in (i, *(ref.node for ref in refs)) if refs or i in versions else ():
            if node in versions and selection.hidden[node]:
                table.setdefault(data.nodes.call[i], {})[versions[node][0]] = None
    return {call: sorted(records) for call, records in table.items()}
