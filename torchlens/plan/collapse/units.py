"""What a drawing holds before anything is folded: its units, and the modules that may be drawn as one box.

A unit is one node of the full drawing. Everything is counted once, in time linear in the trace (rolled: times the
depth of the module tree). Knows nothing of the order in which boxes are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torchlens.plan.rectangles import Works, is_read_inside
from torchlens.plan.roll import Groups
from torchlens.plan.rules import NO_RULES, Verdicts
from torchlens.plan.select import Selection
from torchlens.records.modules import ModuleRecord
from torchlens.records.trace_data import TraceData

# A module that hides a larger share of the drawing is boxed last, since little would be left to see.
DOMINANT = 0.40
# A box that hides fewer units than this makes no drawing smaller.
LEAST_HIDDEN = 2


class Candidate(NamedTuple):
    """A module that may be one box. calls: those that hide enough; hides: units, over all of them."""

    module: int
    calls: tuple[int, ...]
    hides: int


@dataclass(frozen=True, slots=True)
class Base:
    """The full drawing, as the planner is told it: after focus, depth, rolled and the buffers mode.

    levels: per call its nesting level below what the page shows, negative outside; boxed: per call, the call drawn as
    one node by `depth=` or a rule that it lies in, else None; bundles: whether outputs alike may be drawn as one;
    rules: what `collapse_rules=` says.
    """

    data: TraceData
    selection: Selection
    works: Works
    levels: list[int]
    boxed: list[int | None]
    groups: Groups
    rolled: bool
    bundles: bool
    rules: Verdicts = NO_RULES


@dataclass(slots=True)
class Units:
    """The full drawing in units.

    total: how many; own: per call, the drawn and hidden trace nodes that it ran itself; below: per call, its inner
    calls; kept: per call, its own op that stays beside a box around it, or None; inside: per call, the units that lie
    in it; hides: per call, those that the box would hide; candidates: by module; work_before: per trace node, how many
    ops are drawn, boxed or left out by a rule before it.
    """

    base: Base
    total: int
    own: list[list[int]]
    below: list[list[int]]
    kept: list[int | None]
    inside: list[int] = field(default_factory=list[int])
    hides: list[int] = field(default_factory=list[int])
    candidates: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    work_before: list[int] = field(default_factory=list[int])

    @property
    def data(self) -> TraceData:
        """The trace."""
        return self.base.data

    def is_dominant(self, module: int) -> bool:
        """Whether a box of the module would hide most of the drawing."""
        return self.candidates[module].hides > DOMINANT * self.total

    def order(self, candidate: Candidate) -> tuple[int, int]:
        """Sorting key: what hides most first, then in order of execution."""
        return -candidate.hides, candidate.calls[0]

    def outermost(self) -> list[Candidate]:
        """The candidates that are not dominant and lie in no other such one, in order of execution."""
        found: dict[int, Candidate] = {}
        folds = {c for candidate in self.candidates.values() for c in candidate.calls}
        waiting = [c for c in reversed(range(len(self.below))) if self.base.levels[c] == 0]
        while waiting:
            c = waiting.pop()
            for inner in reversed(self.below[c]):
                module = self.data.calls[inner].module
                if inner not in folds or self.is_dominant(module):
                    waiting.append(inner)
                else:
                    found.setdefault(module, self.candidates[module])
        return sorted(found.values(), key=lambda candidate: candidate.calls[0])

    def nothing_between(self, first: int, second: int) -> bool:
        """Whether no work is drawn between the end of one call and the start of another."""
        start, end = self.data.calls[first].span[1], self.data.calls[second].span[0]
        return start <= end and self.work_before[start] == self.work_before[end]


def count_units(base: Base) -> Units:
    """Read a full drawing."""
    data, works = base.data, base.works
    own: list[list[int]] = [[] for _ in data.calls]
    work_before = [0]
    for i, kind in enumerate(data.nodes.kind):
        used = base.selection.used[i] and kind not in ("input", "output")
        if used:
            own[data.nodes.call[i]].append(i)
        drawn = base.groups.owner[i] >= 0 or i in base.selection.left_out
        works_here = used and drawn and bool(data.nodes.parents[i] or kind == "op")
        work_before.append(work_before[-1] + works_here)
    below: list[list[int]] = [[] for _ in data.calls]
    for c, call in enumerate(data.calls):
        if call.parent is not None:
            below[call.parent].append(c)
    kept = [
        op if op is not None and not is_read_inside(data, base.selection, c, op) else None
        for c, op in enumerate(works.op)
    ]
    units = Units(base, len(base.groups.members), own, below, kept)
    units.work_before = work_before
    units.inside = _count_inside(units)
    units.hides = [max(n - (units.kept[c] is not None), 0) for c, n in enumerate(units.inside)]
    units.candidates = _candidates(units)
    return units


def _count_inside(units: Units) -> list[int]:
    """Per call, how many units of the drawing lie in it."""
    base = units.base
    inside = [0] * len(units.below)
    for c in range(len(units.below) - 1, -1, -1):
        if base.boxed[c] == c:
            inside[c] += 1 + (base.works.op[c] is not None)
        elif base.boxed[c] is None:
            inside[c] += len({base.groups.owner[i] for i in units.own[c] if base.groups.owner[i] >= 0})
        parent = base.data.calls[c].parent
        if parent is not None and base.boxed[parent] is None:
            inside[parent] += inside[c]
    return inside


def _candidates(units: Units) -> dict[int, Candidate]:
    base, data = units.base, units.data
    rolled, last = _hidden_by_module(units) if base.rolled else {}, _last_inside(units.below)
    found: dict[int, Candidate] = {}
    for module in data.modules[1:]:
        calls = tuple(c for c in module.calls if _may_fold(units, c))
        if not calls:
            continue
        outer = () if base.rolled else _outer(module, set(calls), last)
        hides = rolled.get(module.index, 0) if base.rolled else sum(units.hides[c] for c in outer)
        if hides >= LEAST_HIDDEN:
            found[module.index] = Candidate(module.index, calls, hides)
    return found


def _may_fold(units: Units, call: int) -> bool:
    """Whether a call hides enough, is open, and is no mere wrapper of one inner call."""
    base = units.base
    if base.levels[call] < 1 or base.boxed[call] is not None or units.hides[call] < LEAST_HIDDEN:
        return False
    if units.data.calls[call].module in base.rules.stays:
        return False
    return not any(
        units.inside[inner] == units.inside[call] and units.hides[inner] >= LEAST_HIDDEN for inner in units.below[call]
    )


def _outer(module: ModuleRecord, legal: Collection[int], last: Sequence[int]) -> Iterator[int]:
    """The legal calls of a module that lie in no other call of it. last: per call, the last one inside it."""
    until = -1
    for c in module.calls:
        if c > until:
            until = last[c]
            if c in legal:
                yield c


def _last_inside(below: Sequence[Sequence[int]]) -> list[int]:
    """Per call, the number of the last call that lies in it, its own if there is none."""
    last = list(range(len(below)))
    for c in range(len(below) - 1, -1, -1):
        if below[c]:
            last[c] = max(last[c], last[below[c][-1]])
    return last


def _hidden_by_module(units: Units) -> dict[int, int]:
    """Rolled: per module, how many units lie wholly in its calls, which several of them may share."""
    base = units.base
    counts: dict[int, int] = {}
    for group, members in enumerate(base.groups.members):
        if base.groups.stub[group]:
            continue
        met: dict[int, int] = {}
        for i in members:
            for module in _modules_around(units, i, boxed=base.groups.box[group]):
                met[module] = met.get(module, 0) + 1
        for module, n in met.items():
            if n == len(members):
                counts[module] = counts.get(module, 0) + 1
    return counts


def _modules_around(units: Units, node: int, *, boxed: bool) -> set[int]:
    """The modules whose boxes would hide a trace node. boxed: it lies in a node of `depth=` already."""
    data, found = units.data, set[int]()
    if data.nodes.kind[node] in ("input", "output") or not units.base.selection.used[node]:
        return found
    call: int | None = data.nodes.call[node]
    if boxed:
        call = units.base.boxed[data.nodes.call[node]]
    while call is not None:
        if units.kept[call] != node:
            found.add(data.calls[call].module)
        call = data.calls[call].parent
    return found
