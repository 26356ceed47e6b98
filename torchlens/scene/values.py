"""Value sources: what a node's number is, its unit, and how it adds up over the ops a node stands for.

One definition serves rows, colours, key and caption. A sum is exact or absent, never partial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torchlens.base.registry import Registry
from torchlens.base.units import Unit
from torchlens.plan.graph import PlanNode
from torchlens.records.trace_data import TraceData

Column = Callable[[TraceData], Sequence[float | int | None]]


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A number per trace node.

    unit: of the column; column: the values, None = not known; tensors: whether inputs and outputs have one too; per_op
    and total: what the number is, in the words of a caption, for one call and summed over passes.
    """

    name: str
    unit: Unit
    column: Column
    tensors: bool
    per_op: str
    total: str


SOURCES: Registry[ValueSource] = Registry("value source", code="encoding_source_invalid")

_OUTPUT_BYTES = "output bytes, not live, allocator or peak memory"
_FLOPS = "forward FLOPs, 2 per multiply-accumulate"

for _source in (
    ValueSource(
        "time",
        "s",
        lambda data: data.nodes.time_s,
        False,
        "wall-clock time per op call",
        "wall-clock time, sum over passes",
    ),
    ValueSource("bytes", "B", lambda data: data.nbytes, True, _OUTPUT_BYTES, f"{_OUTPUT_BYTES}; sum over passes"),
    ValueSource("flops", "FLOPs", lambda data: data.nodes.flops, False, _FLOPS, f"{_FLOPS}; sum over passes"),
):
    SOURCES.put(_source.name, _source)


def value_of(source: ValueSource, node: PlanNode, data: TraceData) -> float | int | None:
    """A node's number: the exact sum over its ops; None if one of them lacks it, or its kind has none."""
    column = source.column(data)
    if node.kind in ("input", "output"):
        return _finite(column[node.first]) if source.tensors else None
    if node.kind in ("buffer", "constant"):
        return None
    ops = [i for i in node.members if data.nodes.kind[i] == "op"]
    if len(ops) == 1:
        return _finite(column[ops[0]])
    return total(source, ops, data)


def total(source: ValueSource, members: Iterable[int], data: TraceData) -> float | int | None:
    """The exact sum over the ops among these trace nodes; what calls no function adds nothing."""
    column = source.column(data)
    result: float | int = 0
    for i in members:
        if data.nodes.kind[i] != "op":
            continue
        value = _finite(column[i])
        if value is None and not data.nodes.synthetic[i]:
            return None
        result += value or 0
    return result


def _finite(value: float | int | None) -> float | int | None:
    return value if value is not None and math.isfinite(value) else None
