"""Checks of drawings under `collapse_rules=` against the trace, by means of their own: no planner code is used.

What a rule matches, which drawn nodes a path over hidden ops joins and how many ops it passes are worked out here from
the trace and from the members of the drawn nodes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from tests.honesty import home
from torchlens.plan.graph import CAPSULES, CLOSED, COPY, FROM, MODULE, TO, Plan, PlanEdge
from torchlens.plan.select import ROUTINE
from torchlens.records.trace_data import TraceData

Rules = Sequence[Mapping[str, str]]
Pair = tuple[int, int]


# -- what rules match
def matches(data: TraceData, rule: Mapping[str, str], node: int) -> bool:
    """Whether a rule about ops names an op. Only for functions that are no family and have one spelling."""
    return "op" in rule and data.nodes.kind[node] == "op" and fnmatchcase(data.nodes.func[node].rstrip("_"), rule["op"])


def verdict(data: TraceData, rules: Rules, module: int) -> str:
    """What becomes of a module by the rules that name it; empty for none."""
    record, found = data.modules[module], ""
    for rule in rules:
        named = record.class_name if "class" in rule else record.address
        if "op" in rule or module == 0 or not fnmatchcase(named, rule.get("class", rule.get("address", ""))):
            continue
        found = found if found == "keep" else rule["do"]
    return found


def around(data: TraceData, node: int) -> Iterator[int]:
    """The calls around a trace node, from the inside out, without the model's."""
    call = data.nodes.call[node]
    while data.calls[call].parent is not None:
        yield call
        call = data.calls[call].parent or 0


def fate(data: TraceData, rules: Rules, node: int) -> str:
    """What the rules want of an op: its own rule, else that of the innermost module with one."""
    own = [rule["do"] for rule in rules if matches(data, rule, node)]
    if own:
        return "keep" if "keep" in own else own[-1]
    return next((found for call in around(data, node) if (found := verdict(data, rules, data.calls[call].module))), "")


def stays_open(data: TraceData, rules: Rules) -> set[int]:
    """Modules that are kept, that hold a kept op, or that lie around such a module."""
    stays: set[int] = set()
    for c, call in enumerate(data.calls):
        if verdict(data, rules, call.module) == "keep":
            current: int | None = c
            while current is not None:
                stays.add(data.calls[current].module)
                current = data.calls[current].parent
    for i, kind in enumerate(data.nodes.kind):
        if kind == "op" and any(rule["do"] == "keep" and matches(data, rule, i) for rule in rules):
            stays |= {data.calls[c].module for c in around(data, i)}
    return stays


# -- what is drawn
def check_rules(data: TraceData, plain: Plan, ruled: Plan, rules: Rules) -> None:
    """Ops leave the page and modules are boxes or open exactly as the rules say. plain: the same without rules."""
    place, tests = home(ruled), set(data.branches.nodes)
    visible = [i for i in home(plain) if data.nodes.kind[i] == "op"]
    gone = {i for i in visible if i not in place}
    assert tuple(sorted(gone)) == ruled.left_out
    for i in visible:
        wanted = fate(data, rules, i) == "hide" and i not in tests
        node = ruled.nodes[place[i]] if i in place else None
        if node is None:
            assert wanted, f"{data.nodes.label[i]} is gone"
        elif wanted:
            assert node.kind in (MODULE, *CAPSULES), f"{data.nodes.label[i]} is drawn"
            assert node.calls, f"{data.nodes.label[i]} is in a chain"
    _check_kept(data, ruled, rules)
    _check_folds(data, ruled, rules, visible)


def _check_kept(data: TraceData, ruled: Plan, rules: Rules) -> None:
    stays, place = stays_open(data, rules), home(ruled)
    for node in ruled.nodes:
        assert node.kind not in CLOSED or stays.isdisjoint(data.calls[c].module for c in node.calls), node.name
    for i in place:
        if data.nodes.kind[i] == "op" and fate(data, rules, i) == "keep" and not _boxed_inside(data, i, rules):
            assert ruled.nodes[place[i]].kind == "op", data.nodes.label[i]


def _boxed_inside(data: TraceData, node: int, rules: Rules) -> bool:
    """Whether an op of a kept module lies in a module of its own further inside, which may be a box."""
    if any(matches(data, rule, node) for rule in rules):
        return False
    return not verdict(data, rules, data.calls[data.nodes.call[node]].module)


def _check_folds(data: TraceData, ruled: Plan, rules: Rules, visible: Sequence[int]) -> None:
    """Every outermost call of a folded module that holds several ops lies in one node whole."""
    stays, place = stays_open(data, rules), home(ruled)
    inside: dict[int, list[int]] = {}
    for i in (i for i in visible if not data.orphan[i]):
        for c in around(data, i):
            module = data.calls[c].module
            if module not in stays and verdict(data, rules, module) == "fold":
                inside.setdefault(c, []).append(i)
    for call, ops in inside.items():
        if len(ops) > 1:
            (node,) = {place[i] for i in ops}
            assert ruled.nodes[node].kind in CLOSED, data.call_key(call)


# -- arrows
def direct(data: TraceData, ruled: Plan, visible: Mapping[int, int]) -> Counter[Pair]:
    """How many tensors pass between every two drawn nodes with nothing hidden by a rule between.

    visible: the trace nodes that are drawn without rules; no arrow leads to what is bookkeeping in a box.
    """
    place = _seen(ruled, visible)
    found: Counter[Pair] = Counter()
    late: Counter[Pair] = Counter()
    for target in place:
        for ref in data.nodes.parents[target]:
            for source in _sources(data, place, ref.node):
                if source in place and place[source] != place[target]:
                    (late if ref.late else found)[place[source], place[target]] += 1
    return found + Counter({ends: count for ends, count in late.items() if ends not in found})


def bridges(data: TraceData, ruled: Plan, visible: Mapping[int, int]) -> dict[Pair, tuple[int, int]]:
    """Every two drawn nodes that a path over hidden ops alone joins -> (tensors that arrive, ops on such paths)."""
    place, gone = _seen(ruled, visible), set(ruled.left_out)
    back = _ways_back(data, place, gone)
    tensors: dict[bool, Counter[Pair]] = {False: Counter(), True: Counter()}
    ops_between: dict[tuple[bool, Pair], set[int]] = {}
    for target in place:
        for ref in data.nodes.parents[target]:
            starts: set[int] = set()
            for source in _sources(data, place, ref.node, gone):
                for start, ops in back[source].items() if source in gone else ():
                    if start != place[target]:
                        starts.add(start)
                        ops_between.setdefault((ref.late, (start, place[target])), set()).update(ops)
            for start in starts:
                tensors[ref.late][start, place[target]] += 1
    result: dict[Pair, tuple[int, int]] = {}
    for is_late in (True, False):
        for ends, count in tensors[is_late].items():
            result[ends] = count, len(ops_between[is_late, ends])
    return result


def _ways_back(data: TraceData, place: Mapping[int, int], gone: set[int]) -> dict[int, dict[int, set[int]]]:
    """Per hidden op, the drawn nodes that lead to it over hidden ops alone -> these ops, itself among them."""
    back: dict[int, dict[int, set[int]]] = {}
    for op in sorted(gone):
        back[op] = {}
        for ref in data.nodes.parents[op]:
            for source in _sources(data, place, ref.node, gone):
                ways = back[source].items() if source in gone else [(place[source], set[int]())]
                for start, ops in ways:
                    back[op].setdefault(start, set()).update(ops, {op})
    return back


def _seen(ruled: Plan, visible: Mapping[int, int]) -> dict[int, int]:
    """Trace nodes that arrows lead to and from -> the drawn node: not the bookkeeping and unseen buffers in a box."""
    return {i: number for i, number in home(ruled).items() if i in visible}


def _sources(data: TraceData, place: Mapping[int, int], node: int, gone: set[int] | None = None) -> list[int]:
    """Where a tensor comes from, seen through buffers that are not drawn."""
    waiting, found = [node], list[int]()
    while waiting:
        source = waiting.pop()
        if source in place or (gone is not None and source in gone):
            found.append(source)
        elif data.nodes.kind[source] == "buffer" and not data.nodes.path[source].endswith(ROUTINE):
            waiting += [writer.node for writer in data.nodes.parents[source]]
    return found


def check_arrows(data: TraceData, plain: Plan, ruled: Plan) -> None:
    """The arrows of the trace between drawn nodes, and those around hidden ops, are drawn, and no others.

    Of a focused module those between nodes that stand for something, and not what passes by.
    """
    visible = home(plain)
    names = {node.name: number for number, node in enumerate(ruled.nodes)}
    drawn: Counter[Pair] = Counter()
    around_: dict[Pair, tuple[int, int]] = {}
    for edge in (edge for edge in ruled.edges if {FROM, TO}.isdisjoint(_kinds(ruled, edge))):
        source = ruled.nodes[edge.source]
        start = names[source.name.removeprefix("stub:from:")] if source.kind == COPY else edge.source
        ends = start, edge.target
        if edge.over:
            assert ends not in around_, "one arrow for each two nodes"
            assert edge.dashed
            around_[ends] = edge.tensors, edge.over
        else:
            drawn[ends] += edge.tensors
    assert drawn == {ends: n for ends, n in direct(data, ruled, visible).items() if _is_inside(ruled, ends)}
    assert around_ == bridges(data, ruled, visible)


def _kinds(plan: Plan, edge: PlanEdge) -> tuple[str, str]:
    return plan.nodes[edge.source].kind, plan.nodes[edge.target].kind


def _is_inside(plan: Plan, ends: Pair) -> bool:
    """Whether one end lies in the focused module; without one everything does."""
    if plan.focus is None:
        return True
    inside = set(plan.focus.members)
    return any(member in inside for end in ends for member in plan.nodes[end].members)
