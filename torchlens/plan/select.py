"""Which trace nodes are on the page: orphans only on demand, buffers and their bookkeeping as `show_buffers` says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchlens.plan.graph import Tensor
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

# Statistics that a norm layer keeps for itself; reading them is on every drawing of such a model and says nothing.
ROUTINE = ("running_mean", "running_var", "num_batches_tracked")


@dataclass(frozen=True, slots=True)
class Selection:
    """Flags per trace node.

    used: on the page, no orphan; orphans: an orphan that is drawn, apart from the rest; hidden: a buffer or bookkeeping
    op that is not drawn on its own; routine: a buffer that serves bookkeeping only; bookkeeping: an op between such
    buffers, which is no work of its module; inside: belongs to the focused module, None without one; left_out: the ops
    that `collapse_rules=` takes off the page where no box holds them.
    """

    used: list[bool]
    orphans: list[bool]
    hidden: list[bool]
    routine: list[bool]
    bookkeeping: list[bool]
    inside: list[bool] | None = None
    left_out: frozenset[int] = frozenset()

    def drawn(self, node: int) -> bool:
        """Whether a trace node is on the page by itself or in a box."""
        return self.used[node] or self.orphans[node]


def select(data: TraceData, show_buffers: str, *, show_orphans: bool = False) -> Selection:
    """Decide on every node. show_buffers: never, meaningful or always."""
    kinds = data.nodes.kind
    routine = [kind == "buffer" and path.endswith(ROUTINE) for kind, path in zip(kinds, data.nodes.path, strict=True)]
    unseen = [kind == "buffer" for kind in kinds] if show_buffers == "never" else routine
    bookkeeping = _bookkeeping(data, unseen)
    hidden = [False] * len(kinds)
    if show_buffers != "always":
        hidden = [a or b for a, b in zip(unseen, bookkeeping, strict=True)]
    orphans = [show_orphans and orphan and not unseen for orphan, unseen in zip(data.orphan, hidden, strict=True)]
    return Selection([not orphan for orphan in data.orphan], orphans, hidden, routine, bookkeeping)


def origins(data: TraceData, selection: Selection, ref: ArgRef) -> Iterator[Tensor]:
    """Where a tensor comes from, seen through buffers that are not drawn: its node, or the writers of the buffer.

    Routine bookkeeping hands nothing on.
    """
    waiting: list[Tensor] = [(ref.node, ref.output)]
    while waiting:
        node, output = waiting.pop()
        if not selection.hidden[node]:
            yield node, output
        elif not selection.routine[node] and data.nodes.kind[node] == "buffer":
            waiting += [(writer.node, writer.output) for writer in reversed(data.nodes.parents[node])]


def _bookkeeping(data: TraceData, unseen: list[bool]) -> list[bool]:
    """Ops that read nothing but such buffers (and constants) and whose results go nowhere else."""
    nodes, tested = data.nodes, set(data.branches.nodes)
    derived = list(unseen)
    for i, refs in enumerate(nodes.parents):
        if nodes.kind[i] == "op" and refs and not nodes.params[i] and i not in tested:
            plain = [ref.node for ref in refs if nodes.kind[ref.node] != "constant"]
            derived[i] = bool(plain) and all(derived[source] for source in plain)
    kept = list(unseen)
    for i in range(len(kept) - 1, -1, -1):
        if nodes.kind[i] == "op" and derived[i] and data.children[i]:
            kept[i] = all(kept[child] for child in data.children[i])
    return [flag and kind == "op" for flag, kind in zip(kept, nodes.kind, strict=True)]
