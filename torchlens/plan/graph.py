"""The plan of a figure: which nodes, arrows and module frames are on the page, and which records each stands for.

Every count and sum that a label claims comes from `members` through `tally`. Knows nothing of text, colours or fonts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torchlens.records.trace_data import TraceData

if TYPE_CHECKING:
    from torchlens.plan.collapse.report import CollapsePlan

MODULE = "module"
# A node outside the focused module that feeds it, one that reads from it, and the name of a far source beside a reader.
FROM, TO, COPY = STUBS = ("from", "to", "copy")
# A node that several nodes are drawn as: a run of blocks or ops, the rest of a folded run, outputs alike.
SEGMENT, FOLD, OUTPUTS = CAPSULES = ("segment", "fold", "outputs")
CLOSED = (MODULE, *CAPSULES)
Position = tuple[int | str, ...]
Tensor = tuple[int, int]


class PlanNode(NamedTuple):
    """One node of the figure.

    kind: a record kind, MODULE for a module drawn as one node, one of STUBS or of CAPSULES; name: its stable id;
    members: indexes of the trace nodes it stands for, ascending, none for a stub, which only names what it connects to;
    calls: the module calls it stands for (a module, a capsule), or whose whole work it is (an op); groups and outputs:
    for a module, its members and the tensors that leave it, call by call, for a capsule by round; address: what follows
    the `@`, None where there is nothing to say; hidden_buffers: indexes of buffers that its module uses unseen;
    outside: for a stub, the trace nodes it names.
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
    outside: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """Index of the trace node that speaks for it."""
        return (self.members or self.outside)[0]

    @property
    def passes(self) -> int:
        """How often it ran: calls of a module, passes of a layer."""
        if self.kind in CAPSULES:
            return len(self.groups)
        return len(self.calls) if self.kind == MODULE else len(self.members or self.outside)


class Arm(NamedTuple):
    """An arm of a branch. name: THEN, ELIF or ELSE; number: which `elif`, from 1, else 0; line: in the source."""

    name: str
    number: int
    line: int


class Entry(NamedTuple):
    """Arms that an arrow enters at once, outermost first. passes: of its target, empty where it does so in all."""

    arms: tuple[Arm, ...]
    passes: tuple[int, ...]


class PlanEdge(NamedTuple):
    """One arrow between two nodes, by index.

    position: the argument it feeds, None where that is not said; crowded: its target has many arrows; output: which of
    the source's several outputs, None where there is one; in_passes and out_passes: the passes of target and source
    that used it, empty where all did; tensors: how many it stands for, and fewest: in the pass with the fewest, 0 where
    all are alike; back: it points against the flow; arms: those that it leads into; shapes: of the tensors
    that pass, each once, None for one that has none; over: how many ops a rule left out on the ways from source to
    target, of a rolled figure how many layers, 0 for an arrow of the trace; arriving: of such an arrow, the shapes at
    its end.
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
    fewest: int = 0
    arms: tuple[Entry, ...] = ()
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    over: int = 0
    arriving: tuple[tuple[int, ...] | None, ...] = ()


@dataclass(slots=True)
class PlanBox:
    """The frame of one open module, or of the orphans of the whole page (module None).

    calls: those it stands for, ascending; level: 0 for an outermost frame.
    """

    module: int | None
    calls: tuple[int, ...]
    parent: int | None
    level: int
    from_input: bool = False


class Focus(NamedTuple):
    """The module that a figure shows the inside of. calls: those shown; members: the trace nodes of its calls."""

    module: int
    calls: tuple[int, ...]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is on the page, in trace order. rolled: each layer once; focus: None for the whole model; collapse: how it
    was folded; left_out: the ops that rules took off the page and no node stands for, ascending.
    """

    rolled: bool
    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    boxes: tuple[PlanBox, ...]
    focus: Focus | None = None
    collapse: CollapsePlan | None = None
    left_out: tuple[int, ...] = ()


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


def tally_module(data: TraceData, focus: Focus) -> Tally:
    """Count what a module's calls ran, whatever is drawn, and every parameter owned by it or below it."""
    module = data.modules[focus.module]
    starts = tuple(f"{name}." for name in (module.address, *module.aliases))
    owned = [p.index for p in data.params if any(name.startswith(starts) for name in (p.address, *p.aliases))]
    return tally(data, focus.members, owned)


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
