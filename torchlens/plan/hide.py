"""Ops that a rule takes off the page: which arrows lead around them, and over how many each of these passes.

Two drawn nodes are bridged if and only if a path of such ops alone leads from one to the other. An op that a box holds
is in no gap. Costs what the paths hold, and refuses where that is more than any page could show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torchlens.base.errors import fail
from torchlens.plan.graph import Arm, Tensor
from torchlens.plan.select import Selection, origins
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

# Steps over left out ops that all bridges of a drawing together may take.
MOST_STEPS = 3_000_000


class Bridge(NamedTuple):
    """A way to a reader over left out ops. sources: drawn tensors that it starts from; over: per source, the ops
    between it and the reader, each once; arms: per source, those of a branch that a step of the way leads into.
    """

    ref: ArgRef
    sources: tuple[Tensor, ...]
    over: tuple[tuple[int, ...], ...]
    arms: tuple[tuple[Arm, ...], ...]


@dataclass(slots=True)
class Gaps:
    """The ops of a drawing that are left out. owner: per trace node its group, -1 for none; is_drawn: whether arrows
    lead out of a trace node.
    """

    data: TraceData
    selection: Selection
    owner: Sequence[int]
    is_drawn: Callable[[int], bool]
    ops: frozenset[int] = field(init=False)
    _steps: int = 0

    def __post_init__(self) -> None:
        self.ops = frozenset(i for i in self.selection.left_out if self.owner[i] < 0)

    def bridges(
        self,
        target: int,
        starts: Iterable[tuple[ArgRef, int]],
        arms: Callable[[int, int], Iterable[Arm]],
    ) -> Iterator[Bridge]:
        """What a drawn trace node reads over left out ops, per tensor read.

        starts: a tensor read and the left out op that it comes from; arms: those that an arrow of the trace enters.
        Raises: InvalidArgumentError[collapse_bridges_excessive].
        """
        last: dict[ArgRef, list[int]] = {}
        for ref, op in starts:
            last.setdefault(ref, []).append(op)
        if not last:
            return
        region = self._region(op for ops in last.values() for op in ops)
        bits: dict[Tensor, int] = {}
        reached, steps = self._reach(region, bits)
        over = self._over(region, reached, bits)
        entered = self._arms(target, last, steps, reached, bits, arms)
        for ref, ops in last.items():
            mask = 0
            for op in ops:
                mask |= reached[op]
            found = [tensor for tensor, bit in bits.items() if mask & bit]
            if found:
                ways = tuple(over[tensor] for tensor in found), tuple(entered.get(tensor, ()) for tensor in found)
                yield Bridge(ref, tuple(found), *ways)

    def _region(self, starts: Iterable[int]) -> list[int]:
        """The left out ops that lead to these over left out ops alone, in order of execution."""
        waiting = list(dict.fromkeys(starts))
        met = set(waiting)
        while waiting:
            for node, _ in self._before(waiting.pop()):
                if node in self.ops and node not in met:
                    met.add(node)
                    waiting.append(node)
        self._count(len(met))
        return sorted(met)

    def _before(self, op: int) -> Iterator[Tensor]:
        for ref in self.data.nodes.parents[op]:
            yield from origins(self.data, self.selection, ref)

    def _reach(
        self, region: Sequence[int], bits: dict[Tensor, int]
    ) -> tuple[dict[int, int], list[tuple[int, int, Tensor | int]]]:
        """Per op, which drawn tensors lead to it, as bits; and the steps: (trace nodes at both ends, from where)."""
        reached: dict[int, int] = {}
        steps: list[tuple[int, int, Tensor | int]] = []
        for op in region:
            mask = 0
            for ref in self.data.nodes.parents[op]:
                for node, output in origins(self.data, self.selection, ref):
                    if node in self.ops:
                        mask |= reached[node]
                        steps.append((ref.node, op, node))
                    elif self.is_drawn(node):
                        mask |= bits.setdefault((node, output), 1 << len(bits))
                        steps.append((ref.node, op, (node, output)))
            reached[op] = mask
        self._count(len(steps))
        return reached, steps

    def _over(
        self, region: Sequence[int], reached: dict[int, int], bits: dict[Tensor, int]
    ) -> dict[Tensor, tuple[int, ...]]:
        """Per drawn tensor, the ops between it and the reader: every one of the region that it leads to."""
        self._count(len(region) * len(bits))
        return {tensor: tuple(op for op in region if reached[op] & bit) for tensor, bit in bits.items()}

    def _arms(
        self,
        target: int,
        last: dict[ArgRef, list[int]],
        steps: Sequence[tuple[int, int, Tensor | int]],
        reached: dict[int, int],
        bits: dict[Tensor, int],
        arms: Callable[[int, int], Iterable[Arm]],
    ) -> dict[Tensor, tuple[Arm, ...]]:
        found: dict[Tensor, dict[Arm, None]] = {}
        ends: list[tuple[int, int, Tensor | int]] = [(ref.node, target, op) for ref, ops in last.items() for op in ops]
        for source, reader, start in (*steps, *ends):
            entered = tuple(arms(source, reader))
            if entered:
                mask = reached[start] if isinstance(start, int) else bits[start]
                for tensor in (tensor for tensor, bit in bits.items() if mask & bit):
                    found.setdefault(tensor, {}).update(dict.fromkeys(entered))
        return {tensor: tuple(entered) for tensor, entered in found.items()}

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            what = f"{len(self.ops):,} hidden ops lie between so many nodes that the arrows around them fill no page"
            fail("collapse_bridges_excessive", what, hidden=len(self.ops))
