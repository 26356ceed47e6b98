"""The rectangle rule: which op is a module call's whole work.

An op is, if the call is the innermost one around it and it is the only op that the module ran itself: the module ran
as this one op, or the rest ran in its submodules and this op is what it returned. Bookkeeping on buffers is no work,
nor is what `collapse_rules=` leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from torchlens.plan.select import Selection
from torchlens.records.trace_data import TraceData


@dataclass(frozen=True, slots=True)
class Works:
    """op: per call, the op that is its whole work, or None; sole: per call, whether the module ran as that one op;
    inside: per call, how many ops ran in it and below, bookkeeping and what rules leave out not counted.
    """

    op: list[int | None]
    sole: list[bool]
    inside: list[int]

    def call_of(self, data: TraceData, node: int) -> int | None:
        """The call whose whole work a node is."""
        call = data.nodes.call[node]
        return call if self.op[call] == node else None


def find_works(data: TraceData, selection: Selection) -> Works:
    """Apply the rule to every call."""
    count = len(data.calls)
    own: list[list[int]] = [[] for _ in range(count)]
    for i in data.op_indexes:
        if selection.used[i] and not selection.bookkeeping[i] and i not in selection.left_out:
            own[data.nodes.call[i]].append(i)
    inside = [len(ops) for ops in own]
    for call in range(count - 1, 0, -1):
        parent = data.calls[call].parent
        if parent is not None:
            inside[parent] += inside[call]
    op = _orphan_works(data, selection, inside)
    sole = [inside[c] == 1 and len(own[c]) == 1 for c in range(count)]
    for c, record in enumerate(data.calls):
        if len(own[c]) == 1 and (sole[c] or (record.parent is not None and _returns_only(data, c, own[c][0]))):
            op[c] = own[c][0]
    return Works(op, sole, inside)


def _orphan_works(data: TraceData, selection: Selection, inside: list[int]) -> list[int | None]:
    """Per call, the one op that it ran where nobody uses it, so that an orphan looks as it would elsewhere."""
    op: list[int | None] = [None] * len(data.calls)
    for i in data.op_indexes:
        call = data.calls[data.nodes.call[i]]
        if selection.orphans[i] and call.ops == (i,) and not inside[call.index] and call.parent is not None:
            op[call.index] = i
    return op


def _returns_only(data: TraceData, call: int, op: int) -> bool:
    outputs = data.calls[call].outputs
    return bool(outputs) and all(node == op for node, _ in outputs)


def is_read_inside(data: TraceData, selection: Selection, call: int, op: int) -> bool:
    """Whether a call goes on with the result of its own op, so that op and box side by side would make a circle."""
    start, end = data.calls[call].span
    return any(start <= child < end and not selection.hidden[child] for child in data.children[op])


def close_boxes(
    data: TraceData,
    selection: Selection,
    works: Works,
    boxed: Sequence[int | None],
    whole: Collection[int] = (),
) -> Works:
    """The rectangles beside boxes; an op that its own module goes on with lies in the box.

    whole: modules whose boxes hold also the op that else stands beside it.
    """
    inside = [
        boxed[c] == c and op is not None and (data.calls[c].module in whole or is_read_inside(data, selection, c, op))
        for c, op in enumerate(works.op)
    ]
    return replace(works, op=[None if gone else op for gone, op in zip(inside, works.op, strict=True)])
