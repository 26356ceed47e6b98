"""The plan of a figure: which nodes, arrows and module frames are on the page, and which records each stands for.

Every count and sum that a label claims comes from `members` through `tally`. Knows nothing of text, colours or fonts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from torchlens.records.trace_data import TraceData

MODULE = "module"
Position = tuple[int | str, ...]
Tensor = tuple[int, int]


class PlanNode(NamedTuple):
    """One node of the figure.

    kind: a record kind, or MODULE for a module drawn as one node; name: its stable id; members: indexes of the trace
    nodes it stands for, ascending; calls: the module calls it stands for (a module), or whose whole work it is (an op);
    groups and outputs: for a module, its members and the tensors that leave it, call by call; address: what follows
    the `@`, None where there is nothing to say; hidden_buffers: indexes of buffers that its module uses unseen.
    """

    kind: str
    name: str
    members: tuple[int, ...]
    box: int | None
    calls: tuple[int, ...] = ()
    rectangle: bool = False
    address: str | None = None
    from_input: bool = True
    hidden_buffers: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[tuple[Tensor, ...], ...] = ()

    @property
    def first(self) -> int:
        """Index of the trace node that speaks for it."""
        return self.members[0]

    @property
    def passes(self) -> int:
        """How often it ran: calls of a module, passes of a layer."""
        return len(self.calls) if self.kind == MODULE else len(self.members)


class PlanEdge(NamedTuple):
    """One arrow between two nodes, by index.

    position: the argument it feeds, None where that is not said; crowded: its target has many arrows; output: which of
    the source's several outputs, None where there is one; in_passes and out_passes: the passes of target and source
    that used it, empty where all did; tensors: how many it stands for; back: it points against the flow.
    """

    source: int
    target: int
    position: Position | None = None
    crowded: bool = False
    output: int | None = None
    in_passes: tuple[int, ...] = ()
    out_passes: tuple[int, ...] = ()
    tensors: int = 1
    dashed: bool = False
    back: bool = False


@dataclass(slots=True)
class PlanBox:
    """The frame of one open module. calls: those it stands for, ascending; level: 0 for an outermost frame."""

    module: int
    calls: tuple[int, ...]
    parent: int | None
    level: int
    from_input: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is on the page, in trace order. rolled: each layer once."""

    rolled: bool
    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    boxes: tuple[PlanBox, ...]


class Tally(NamedTuple):
    """What a set of trace nodes holds. buffers: versions; output_bytes: of the ops, unknown ones left out."""

    ops: int
    buffers: int
    output_bytes: int
    params: int
    trainable: int


def tally(data: TraceData, members: Iterable[int], params: Iterable[int] | None = None) -> Tally:
    """Count a set of trace nodes. params: indexes of the parameters to count; left out, those that the members use."""
    kinds, used = data.nodes.kind, data.nodes.params
    ops = buffers = output_bytes = 0
    met: dict[int, None] = {}
    for i in members:
        if kinds[i] == "op":
            ops += 1
            output_bytes += data.nbytes[i] or 0
            met.update(dict.fromkeys(used[i]))
        elif kinds[i] == "buffer":
            buffers += 1
    records = [data.params[p] for p in (met if params is None else params)]
    trainable = sum(p.numel for p in records if p.trainable)
    return Tally(ops, buffers, output_bytes, sum(p.numel for p in records), trainable)


def tally_network(data: TraceData) -> Tally:
    """Count the whole network, whatever is drawn: every op recorded and every parameter owned."""
    return tally(data, range(len(data.nodes)), range(len(data.params)))


def call_address(data: TraceData, call: int) -> str:
    """Address of a module call: with its number if the module has several, `self` for the root."""
    record = data.calls[call]
    module = data.modules[record.module]
    address = module.address or "self"
    return f"{address}:{record.number}" if len(module.calls) > 1 else address


def buffer_versions(data: TraceData) -> dict[int, Tensor]:
    """Trace node of each buffer version -> (index of the buffer, 1-based version)."""
    return {node: (b, k + 1) for b, record in enumerate(data.buffers) for k, node in enumerate(record.versions)}
