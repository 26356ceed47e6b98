"""The arrows: one per tensor that one node hands to another, merged where both ends and the label are the same.

Arguments are named where their order matters; in a rolled figure an arrow says which passes used it. A buffer that is
not drawn still passes on what an op wrote into it, unless it is routine bookkeeping. Around ops that a rule left out
leads one dashed arrow from each node to each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torchlens.base.units import passes_text
from torchlens.ops.families import is_commutative
from torchlens.plan.arms import Arms, entered_arms, summarize
from torchlens.plan.graph import CLOSED, STUBS, Arm, PlanEdge, PlanNode, Position
from torchlens.plan.hide import Gaps
from torchlens.plan.roll import Groups, writer_of
from torchlens.plan.select import Selection, origins
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

CROWDED = 4
_ELEMENTS = "*"
# tail, head, argument, output, whether the dependency is late, whether left out ops are between
Key = tuple[int, int, Position | None, int | None, bool, bool]


class _Link(NamedTuple):
    """One tensor that a trace node reads. over, arms: of a way around left out ops, these ops and the arms entered."""

    ref: ArgRef
    source: int
    output: int
    over: tuple[int, ...] = ()
    arms: tuple[Arm, ...] = ()


@dataclass(slots=True)
class _Arrow:
    """What has been seen of one arrow. elements: of a list argument, those it feeds; per_pass: tensors in each pass;
    arms: by pass, those that it leads into; shapes: of the tensors that pass, and arriving: at the end of a way around
    left out ops; over: these ops, or their layers; positions: arguments that such a way feeds; read: tensors counted.
    """

    elements: dict[int, None] = field(default_factory=dict[int, None])
    outputs: dict[int, None] = field(default_factory=dict[int, None])
    sources: dict[int, None] = field(default_factory=dict[int, None])
    per_pass: dict[int, int] = field(default_factory=dict[int, int])
    arms: dict[int, dict[Arm, None]] = field(default_factory=dict[int, dict[Arm, None]])
    shapes: dict[tuple[int, ...] | None, None] = field(default_factory=dict[tuple[int, ...] | None, None])
    arriving: dict[tuple[int, ...] | None, None] = field(default_factory=dict[tuple[int, ...] | None, None])
    over: dict[int, None] = field(default_factory=dict[int, None])
    positions: dict[Position | None, None] = field(default_factory=dict[Position | None, None])
    read: set[tuple[int, ArgRef]] = field(default_factory=set[tuple[int, ArgRef]])
    dashed: bool = True
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class EdgeDrawer:
    """Everything that an arrow is decided by."""

    data: TraceData
    selection: Selection
    groups: Groups
    nodes: list[PlanNode]
    boxed: list[int | None]
    rolled: bool
    gaps: Gaps

    def draw(self) -> list[PlanEdge]:
        """All arrows, by target in trace order."""
        arrows: dict[Key, _Arrow] = {}
        arms = entered_arms(self.data, self.groups, self.boxed)
        for target, refs in enumerate(self.data.nodes.parents):
            if refs and self.groups.head(target) >= 0 and not self.selection.hidden[target]:
                self._read(target, refs, arrows, arms)
        plain = {(*key[:2], key[5]) for key in arrows if not key[4]}
        return [
            self._finish(key, arrow) for key, arrow in arrows.items() if not key[4] or (*key[:2], key[5]) not in plain
        ]

    def _read(self, target: int, refs: tuple[ArgRef, ...], arrows: dict[Key, _Arrow], arms: Arms) -> None:
        """Add what one trace node reads."""
        head = self.groups.head(target)
        seen = self._links(target, refs, arms)
        arguments = sum(not link.ref.late for link in seen if not link.over)
        arguments += len({link.ref for link in seen if link.over and not link.ref.late})
        named = arguments > 1 and self.nodes[head].kind == "op" and not self._commutes(target)
        for link in seen:
            ref, source, output, over, _ = link
            tail = self.groups.tail(source)
            if tail == head and self._inside(source, target):
                continue
            position, element = self._position(ref, tail) if named and not ref.late else (None, None)
            if over:
                key = (tail, head, None, None, ref.late, True)
            else:
                key = (tail, head, position, self._tail_output(tail, head, source, output), ref.late, False)
            arrow = arrows.get(key)
            if arrow is None:
                arrow = arrows[key] = _Arrow()
            arrow.outputs[output] = None
            if element is not None:
                arrow.elements[element] = None
            arrow.sources[self._pass_of(source, tail)] = None
            arrow.shapes[self._shape(source, output, target)] = None
            reader = self._pass_of(target, head)
            if not over or (target, ref) not in arrow.read:
                arrow.per_pass[reader] = arrow.per_pass.get(reader, 0) + 1
            if over:
                self._lead_around(arrow, link, target, position)
            if entered := link.arms or arms.get((ref.node, target)):
                arrow.arms.setdefault(reader, {}).update(dict.fromkeys(entered))
            arrow.dashed = arrow.dashed and (bool(over) or not self.data.from_input[source])
            arrow.crowded = arrow.crowded or arguments >= CROWDED

    def _lead_around(self, arrow: _Arrow, link: _Link, target: int, position: Position | None) -> None:
        """Note what an arrow around left out ops passes over, and what arrives."""
        layer = self.data.nodes.layer
        arrow.over.update(dict.fromkeys(layer[op] if self.rolled else op for op in link.over))
        arrow.positions[position] = None
        arrow.read.add((target, link.ref))
        arrow.arriving[self._shape(link.ref.node, link.ref.output, target)] = None

    def _links(self, target: int, refs: tuple[ArgRef, ...], arms: Arms) -> list[_Link]:
        """Where its tensors come from as drawn, in the order of the arguments."""
        direct: list[_Link] = []
        starts: list[tuple[ArgRef, int]] = []
        for ref in refs:
            for node, output in origins(self.data, self.selection, ref):
                if node in self.gaps.ops:
                    starts.append((ref, node))
                elif self._is_source(node, target):
                    direct.append(_Link(ref, node, output))
        if not starts:
            return direct
        ways = self.gaps.bridges(target, starts, lambda source, reader: arms.get((source, reader), ()))
        around = [
            _Link(way.ref, *tensor, over, entered)
            for way in ways
            for tensor, over, entered in zip(way.sources, way.over, way.arms, strict=True)
        ]
        place = {ref: k for k, ref in enumerate(refs)}
        return sorted([*direct, *around], key=lambda link: place[link.ref])

    def _shape(self, source: int, output: int, target: int) -> tuple[int, ...] | None:
        """Shape of what passes. An op that updates a buffer in passing hands it other numbers than it returns."""
        outs, kinds = self.data.nodes.outs, self.data.nodes.kind
        return outs[target][0].shape if kinds[target] == "buffer" and outs[target] else outs[source][output].shape

    def _is_source(self, node: int, target: int) -> bool:
        """Whether a trace node is where an arrow comes from; what passes by a focused module is not."""
        inside = self.selection.inside
        return self.groups.tail(node) >= 0 and (inside is None or inside[node] or inside[target])

    def _position(self, ref: ArgRef, tail: int) -> tuple[Position, int | None]:
        """The argument fed, and the element of a list where one node that stands for much feeds several of them."""
        *outer, last = ref.position
        if outer and isinstance(last, int) and (self.nodes[tail].kind in CLOSED or self.nodes[tail].passes > 1):
            return (*outer, _ELEMENTS), last
        return ref.position, None

    def _commutes(self, target: int) -> bool:
        """Whether the order of the arguments is of no matter: `add(x, y, alpha=2)` is not `add(y, x, alpha=2)`."""
        func = self.data.nodes.func[target]
        if not is_commutative(func):
            return False
        return func not in ("add", "add_") or all(name != "alpha" for name, _ in self.data.nodes.config[target])

    def _inside(self, source: int, target: int) -> bool:
        """Whether an arrow within one node is hidden by it: both ends in one call of a module drawn as one node.

        Of several modules in a row, both in the same round.
        """
        owner = self.groups.owner[source]
        if owner in self.groups.capsules:
            return self._pass_of(source, owner) == self._pass_of(target, owner)
        ends = [self.boxed[self.data.nodes.call[i]] for i in (source, target)]
        return self.groups.box[owner] and ends[0] == ends[1]

    def _tail_output(self, tail: int, head: int, source: int, output: int) -> int | None:
        if self.nodes[tail].kind in CLOSED or self.nodes[head].kind in CLOSED:
            return None
        return output if len(self.data.nodes.outs[source]) > 1 else None

    def _pass_of(self, node: int, group: int) -> int:
        if not self.rolled:
            return 1
        if self.groups.box[group] or group in self.groups.capsules:
            call = self.boxed[self.data.nodes.call[node]]
            return self.data.calls[call].number if call is not None else 1
        writer = writer_of(self.data, node) if self.nodes[group].passes > 1 else None
        return self.data.nodes.pass_number[node if writer is None else writer]

    def _finish(self, key: Key, arrow: _Arrow) -> PlanEdge:
        tail, head, position, output, *_ = key
        if len(arrow.positions) == 1:
            (position,) = arrow.positions
        if position and arrow.elements:
            position = (*position[:-1], passes_text(arrow.elements))
        source, target = self.nodes[tail], self.nodes[head]
        if output is None and len(arrow.outputs) == 1 and source.kind not in CLOSED:
            several = len(self.data.nodes.outs[source.first]) > 1
            output = next(iter(arrow.outputs)) if several else None
        counts = arrow.per_pass.values()
        tensors = max(counts) if self.rolled else sum(counts)
        partial_in = self.rolled and len(arrow.per_pass) < target.passes
        partial_out = self.rolled and len(arrow.sources) < source.passes
        return PlanEdge(
            tail,
            head,
            position,
            arrow.crowded,
            output,
            tuple(sorted(arrow.per_pass)) if partial_in else (),
            tuple(sorted(arrow.sources)) if partial_out else (),
            tensors,
            arrow.dashed,
            tail >= head and source.kind not in STUBS and target.kind not in STUBS,
            min(counts) if min(counts) < tensors and self.rolled else 0,
            summarize(arrow.arms, arrow.per_pass) if arrow.arms else (),
            tuple(arrow.shapes),
            len(arrow.over),
            tuple(arrow.arriving),
        )
