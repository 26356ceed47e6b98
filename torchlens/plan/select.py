"""Which trace nodes are on the page: orphans are left out, buffers and their bookkeeping as `show_buffers` says."""

from __future__ import annotations

from dataclasses import dataclass

from torchlens.records.trace_data import TraceData

# Statistics that a norm layer keeps for itself; reading them is on every drawing of such a model and says nothing.
ROUTINE = ("running_mean", "running_var", "num_batches_tracked")


@dataclass(frozen=True, slots=True)
class Selection:
    """Flags per trace node.

    used: not an orphan; hidden: a buffer or bookkeeping op that is not drawn on its own; routine: a buffer that serves
    bookkeeping only; bookkeeping: an op between such buffers, which is no work of its module.
    """

    used: list[bool]
    hidden: list[bool]
    routine: list[bool]
    bookkeeping: list[bool]


def select(data: TraceData, show_buffers: str) -> Selection:
    """Decide on every node. show_buffers: never, meaningful or always."""
    kinds = data.nodes.kind
    routine = [kind == "buffer" and path.endswith(ROUTINE) for kind, path in zip(kinds, data.nodes.path, strict=True)]
    unseen = [kind == "buffer" for kind in kinds] if show_buffers == "never" else routine
    bookkeeping = _bookkeeping(data, unseen)
    hidden = [False] * len(kinds)
    if show_buffers != "always":
        hidden = [a or b for a, b in zip(unseen, bookkeeping, strict=True)]
    return Selection([not orphan for orphan in data.orphan], hidden, routine, bookkeeping)


def _bookkeeping(data: TraceData, unseen: list[bool]) -> list[bool]:
    """Ops that read nothing but such buffers (and constants) and whose results go nowhere else."""
    nodes, tested = data.nodes, {test.node for test in data.branches}
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
