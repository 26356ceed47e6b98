"""Which arrows lead into an arm of a branch, as drawn: an arm within a closed box is none of the arrow's business.

An arrow is labelled where it enters an arm for the first time; what the arm reads from outside later on is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchlens.plan.graph import Arm, Entry
from torchlens.plan.roll import Groups
from torchlens.records.flow import ArmEdge
from torchlens.records.trace_data import TraceData

Arms = Mapping[tuple[int, int], tuple[Arm, ...]]


def entered_arms(data: TraceData, groups: Groups, boxed: Sequence[int | None]) -> Arms:
    """Trace nodes at both ends of an arrow -> the arms that it leads into, outermost first."""
    if not data.branches.nodes:
        return {}
    outside: dict[tuple[int, int], set[int]] = {}
    for edge in data.branches.arms:
        outside.setdefault((edge.target, edge.test), set()).add(edge.source)
    calls = [test.call for test in data.branches]
    found: dict[tuple[int, int], tuple[Arm, ...]] = {}
    for edge in data.branches.arms:
        box = _box_of(data, groups, boxed, edge.target)
        # The test ran in the box too: the box as a whole is in no arm.
        within = box is not None and boxed[calls[edge.test]] == box
        if not within and _is_first(data, edge, outside[edge.target, edge.test], box, boxed):
            ends = (edge.source, edge.target)
            found[ends] = (*found.get(ends, ()), Arm(edge.arm, edge.number, edge.line))
    return found


def _is_first(data: TraceData, edge: ArmEdge, outside: set[int], box: int | None, boxed: Sequence[int | None]) -> bool:
    """Whether no other arrow brings in something that has been in the arm before.

    What an arm makes out of nothing never entered it; what lies in the same box is not seen.
    """
    for ref in data.nodes.parents[edge.target]:
        unseen = box is not None and boxed[data.nodes.call[ref.node]] == box
        if ref.node not in outside and data.from_input[ref.node] and not unseen:
            return False
    return True


def _box_of(data: TraceData, groups: Groups, boxed: Sequence[int | None], node: int) -> int | None:
    """The call drawn as one node that a trace node is part of."""
    group = groups.owner[node]
    return boxed[data.nodes.call[node]] if group >= 0 and groups.box[group] else None


def summarize(per_pass: Mapping[int, Iterable[Arm]], passes: Iterable[int]) -> tuple[Entry, ...]:
    """The arms of an arrow, passes that agree together. passes: all those in which it was used."""
    together: dict[tuple[Arm, ...], list[int]] = {}
    for number, arms in per_pass.items():
        together.setdefault(tuple(arms), []).append(number)
    always = len(together) == 1 and len(per_pass) == len(set(passes))
    return tuple(Entry(arms, () if always else tuple(sorted(numbers))) for arms, numbers in together.items())
