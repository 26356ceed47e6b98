"""The arrows: one per tensor that one node hands to another, merged where both ends and the label are the same.

Arguments are named where their order matters; in a rolled figure an arrow says which passes used it. A buffer that is
not drawn still passes on what an op wrote into it, unless it is routine bookkeeping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torchlens.base.units import passes_text
from torchlens.ops.families import is_commutative
from torchlens.plan.graph import MODULE, PlanEdge, PlanNode, Position, Tensor
from torchlens.plan.roll import Groups
from torchlens.plan.select import Selection
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

CROWDED = 4
_ELEMENTS = "*"
Key = tuple[int, int, Position | None, int | None, bool]


@dataclass(slots=True)
class _Arrow:
    """What has been seen of one arrow. elements: of a list argument, those it feeds; per_pass: tensors in each pass."""

    elements: dict[int, None] = field(default_factory=dict[int, None])
    outputs: dict[int, None] = field(default_factory=dict[int, None])
    sources: dict[int, None] = field(default_factory=dict[int, None])
    per_pass: dict[int, int] = field(default_factory=dict[int, int])
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

    def draw(self) -> list[PlanEdge]:
        """All arrows, by target in trace order."""
        arrows: dict[Key, _Arrow] = {}
        for target, refs in enumerate(self.data.nodes.parents):
            if refs and self.groups.owner[target] >= 0 and not self.selection.hidden[target]:
                self._read(target, refs, arrows)
        plain = {key[:2] for key in arrows if not key[4]}
        return [self._finish(key, arrow) for key, arrow in arrows.items() if not key[4] or key[:2] not in plain]

    def _read(self, target: int, refs: tuple[ArgRef, ...], arrows: dict[Key, _Arrow]) -> None:
        """Add what one trace node reads."""
        owner = self.groups.owner
        head = owner[target]
        seen = [(ref, tensor) for ref in refs for tensor in self._origins(ref)]
        arguments = sum(not ref.late for ref, _ in seen)
        named = arguments > 1 and self.nodes[head].kind == "op" and not self._commutes(target)
        for ref, (source, output) in seen:
            tail = owner[source]
            if tail == head and self._inside(source, target):
                continue
            position, element = self._position(ref, tail) if named and not ref.late else (None, None)
            key = (tail, head, position, self._tail_output(tail, head, source, output), ref.late)
            arrow = arrows.get(key)
            if arrow is None:
                arrow = arrows[key] = _Arrow()
            arrow.outputs[output] = None
            if element is not None:
                arrow.elements[element] = None
            arrow.sources[self._pass_of(source, tail)] = None
            reader = self._pass_of(target, head)
            arrow.per_pass[reader] = arrow.per_pass.get(reader, 0) + 1
            arrow.dashed = arrow.dashed and not self.data.from_input[source]
            arrow.crowded = arrow.crowded or arguments >= CROWDED

    def _origins(self, ref: ArgRef) -> Iterator[Tensor]:
        """Where a tensor comes from as drawn: its node, or the writers of a buffer that is not drawn."""
        waiting: list[Tensor] = [(ref.node, ref.output)]
        while waiting:
            node, output = waiting.pop()
            if not self.selection.hidden[node]:
                if self.groups.owner[node] >= 0:
                    yield node, output
            elif not self.selection.routine[node] and self.data.nodes.kind[node] == "buffer":
                waiting += [(writer.node, writer.output) for writer in reversed(self.data.nodes.parents[node])]

    def _position(self, ref: ArgRef, tail: int) -> tuple[Position, int | None]:
        """The argument fed, and the element of a list where one node that stands for much feeds several of them."""
        *outer, last = ref.position
        if outer and isinstance(last, int) and (self.nodes[tail].kind == MODULE or self.nodes[tail].passes > 1):
            return (*outer, _ELEMENTS), last
        return ref.position, None

    def _commutes(self, target: int) -> bool:
        """Whether the order of the arguments is of no matter: `add(x, y, alpha=2)` is not `add(y, x, alpha=2)`."""
        func = self.data.nodes.func[target]
        if not is_commutative(func):
            return False
        return func not in ("add", "add_") or all(name != "alpha" for name, _ in self.data.nodes.config[target])

    def _inside(self, source: int, target: int) -> bool:
        """Whether an arrow within one node is hidden by it: both ends in one call of a module drawn as one node."""
        call = self.data.nodes.call
        return self.groups.box[self.groups.owner[source]] and self.boxed[call[source]] == self.boxed[call[target]]

    def _tail_output(self, tail: int, head: int, source: int, output: int) -> int | None:
        if self.nodes[tail].kind == MODULE or self.nodes[head].kind == MODULE:
            return None
        return output if len(self.data.nodes.outs[source]) > 1 else None

    def _pass_of(self, node: int, group: int) -> int:
        if not self.rolled:
            return 1
        if self.groups.box[group]:
            call = self.boxed[self.data.nodes.call[node]]
            return self.data.calls[call].number if call is not None else 1
        return self.data.nodes.pass_number[node]

    def _finish(self, key: Key, arrow: _Arrow) -> PlanEdge:
        tail, head, position, output, _ = key
        if position and arrow.elements:
            position = (*position[:-1], passes_text(arrow.elements))
        source, target = self.nodes[tail], self.nodes[head]
        if output is None and len(arrow.outputs) == 1 and source.kind != MODULE:
            several = len(self.data.nodes.outs[source.first]) > 1
            output = next(iter(arrow.outputs)) if several else None
        tensors = max(arrow.per_pass.values()) if self.rolled else sum(arrow.per_pass.values())
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
            tail >= head,
        )
