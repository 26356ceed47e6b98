"""Value sources: what a node's number is, its unit, and how it adds up over the ops a node stands for.

One definition serves rows, colours, sizes, key and caption. A sum is exact or absent, never partial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torchlens.base.registry import Registry
from torchlens.base.units import Unit
from torchlens.plan.graph import FOLD, OUTPUTS, STUBS, PlanNode
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import TraceData

Number = float | int
Column = Callable[[TraceData], Sequence[Number | None]]
# Nodes that have no number: state, what lies outside, what was folded away, and results drawn as one.
UNMEASURED = ("buffer", "constant", FOLD, OUTPUTS, *STUBS)
# Nodes that stand for one record; all others are drawn in place of several.
SINGLE = ("op", "input", "output", *UNMEASURED)


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A number per trace node.

    unit: of the column; column: the values, None = not known; tensors: whether inputs and outputs have one too; per_op
    and total: what the number is, in the words of a caption, for one call and summed over passes; additive: whether a
    box has the sum over its ops; over_passes: whether a rolled node has the sum over its passes, else they must agree;
    words: the quantity in a key; idle: which ops have no number of their own and add exactly nothing to a sum; absent:
    whether such ops alone make no number at all, instead of 0.
    """

    name: str
    unit: Unit
    column: Column
    tensors: bool
    per_op: str
    total: str
    additive: bool = True
    over_passes: bool = True
    words: str = ""
    idle: Callable[[TraceData, int], bool] = lambda data, i: data.nodes.synthetic[i]
    absent: bool = False

    @property
    def quantity(self) -> str:
        """What is measured, in a few words."""
        return self.words or self.name


SOURCES: Registry[ValueSource] = Registry("value source", code="encoding_source_invalid")

_OUTPUT_BYTES = "output bytes, not live, allocator or peak memory"
_FLOPS = "forward FLOPs, 2 per multiply-accumulate"


def _passes(text: str) -> str:
    return f"{text}; sum over passes"


def _magnitude(data: TraceData) -> list[float | None]:
    return [_mean(stats) for stats in data.nodes.stats]


def _mean(stats: Sequence[OutStats | None] | None) -> float | None:
    """Mean absolute value over the finite elements of all outputs."""
    known = [one for one in stats or () if one is not None and one.abs_mean is not None]
    if not stats or len(known) < len(stats):
        return None
    count = sum(one.n_finite for one in known)
    return sum((one.abs_mean or 0.0) * one.n_finite for one in known) / count if count else None


def _dims(data: TraceData) -> list[int | None]:
    """Elements of each output without its first dimension, all outputs together."""
    table: list[int | None] = []
    for outs in data.nodes.outs:
        sizes = [None if spec.shape is None else math.prod(spec.shape[1:]) for spec in outs]
        table.append(None if None in sizes else sum(size for size in sizes if size is not None))
    return table


def _idle_on_device(data: TraceData, i: int) -> bool:
    """Whether an op launched no kernel."""
    return data.nodes.synthetic[i] or data.nodes.num_kernels[i] == 0


_TIME = "wall-clock time per op call"
_DEVICE = "time of the kernels an op launched"
_DIMS, _MAGNITUDE, _GRADIENT = "elements per batch item", "mean absolute output", "L2 norm of the gradient"
for _source in (
    ValueSource("time", "s", lambda data: data.nodes.time_s, False, _TIME, "wall-clock time, sum over passes"),
    ValueSource("bytes", "B", lambda d: d.nbytes, True, _OUTPUT_BYTES, _passes(_OUTPUT_BYTES), words="output bytes"),
    ValueSource("flops", "FLOPs", lambda d: d.nodes.flops, False, _FLOPS, _passes(_FLOPS), words="forward FLOPs"),
    ValueSource("magnitude", "", _magnitude, True, _MAGNITUDE, _MAGNITUDE, False, False, _MAGNITUDE),
    ValueSource("grad_norm", "", lambda data: [None] * len(data.nodes), True, _GRADIENT, _GRADIENT, False, False),
    ValueSource(
        "device_time", "ns", lambda data: data.nodes.device_time, False, _DEVICE, _passes(_DEVICE),
        words="device time", idle=_idle_on_device, absent=True,
    ),
    ValueSource("dims", "", _dims, True, _DIMS, _DIMS, False, False, _DIMS),
):  # fmt: skip
    SOURCES.put(_source.name, _source)


# -- fields of the records
def _of_ops(fact: Callable[[TraceData, int], Number | None]) -> Column:
    """A fact about passes; inputs, outputs and state have none."""
    return lambda data: [fact(data, i) if kind == "op" else None for i, kind in enumerate(data.nodes.kind)]


def _of_layers(name: str) -> Column:
    return _of_ops(lambda data, i: getattr(data.layers[data.nodes.layer[i]], name))


def _layer_sum(base: Column) -> Column:
    """The sum over the passes of an op's layer, the same on each of them."""

    def column(data: TraceData) -> list[Number | None]:
        values = base(data)
        sums = [_sum([values[i] for i in layer.nodes]) for layer in data.layers]
        return [sums[layer] if data.nodes.kind[i] == "op" else None for i, layer in enumerate(data.nodes.layer)]

    return column


def _sum(values: Sequence[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _flops_total(data: TraceData) -> list[Number | None]:
    return [_sum(pair) for pair in zip(data.nodes.flops, data.nodes.flops_backward, strict=True)]


def _field(
    name: str, unit: Unit, column: Column, *, tensors: bool = False, additive: bool = False, over_passes: bool = False
) -> None:
    words = name.replace("_", " ")
    SOURCES.put(name, ValueSource(name, unit, column, tensors, words, words, additive, over_passes))


_field("func_duration", "s", lambda data: data.nodes.time_s, additive=True)
# Inputs and outputs have a size; no call made them, so that nothing else is theirs.
_field("activation_memory", "B", lambda data: data.nbytes, tensors=True, additive=True)
_field("transformed_activation_memory", "B", lambda data: [None] * len(data.nodes), tensors=True, additive=True)
_field("flops_forward", "FLOPs", lambda data: data.nodes.flops, additive=True)
_field("flops_backward", "FLOPs", lambda data: data.nodes.flops_backward, additive=True)
_field("flops_total", "FLOPs", _flops_total, additive=True)
_field("macs_forward", "", lambda data: data.nodes.macs, additive=True)
# Ops may keep the same storage, so that a sum over different ones would count it twice.
_field("autograd_memory", "B", lambda data: data.nodes.autograd_memory, over_passes=True)
_field("num_autograd_tensors", "", lambda data: data.nodes.num_autograd_tensors, over_passes=True)
_field("total_func_duration", "s", _layer_sum(lambda data: data.nodes.time_s))
_field("total_activation_memory", "B", _layer_sum(lambda data: data.nbytes))
_field("total_flops_forward", "FLOPs", _layer_sum(lambda data: data.nodes.flops))
_field("pass_number", "", _of_ops(lambda data, i: data.nodes.pass_number[i]))
for _name in ("num_passes", "step", "n"):
    _field(_name, "", _of_layers(_name))


# -- numbers of drawn nodes
class Readings:
    """The numbers of drawn nodes by one source on one trace."""

    def __init__(self, source: ValueSource, data: TraceData) -> None:
        self.source, self._data, self._column = source, data, source.column(data)

    def value(self, node: PlanNode) -> Number | None:
        """A node's number: the exact sum over its ops; None if one of them lacks it, or its kind has none."""
        if node.kind in UNMEASURED:
            return None
        if node.kind in ("input", "output"):
            return _finite(self._column[node.first]) if self.source.tensors else None
        ops = self._ops(node.members)
        if node.kind == "op" and (len(ops) == 1 or not self.source.over_passes):
            return None if self.varies(node) else _finite(self._column[ops[0]])
        return self.total(ops) if node.kind == "op" or self.source.additive else None

    def varies(self, node: PlanNode) -> bool:
        """Whether a rolled node has a number per pass, and they disagree."""
        if node.kind != "op" or len(node.members) == 1 or self.source.over_passes:
            return False
        first, *others = [_finite(self._column[i]) for i in node.members]
        return any(value != first for value in others)

    def is_idle(self, node: PlanNode) -> bool:
        """Whether it was measured that a node had nothing to be measured: its ops launched no kernel."""
        ops = self._ops(node.members)
        return self.source.absent and bool(ops) and all(self.source.idle(self._data, i) for i in ops)

    def total(self, members: Iterable[int]) -> Number | None:
        """The exact sum over the ops among these trace nodes; what calls no function adds nothing."""
        result: Number = 0
        measured = not self.source.absent
        for i in self._ops(members):
            value = _finite(self._column[i])
            if value is None and not self.source.idle(self._data, i):
                return None
            measured = measured or value is not None
            result += value or 0
        return result if measured else None

    def _ops(self, members: Iterable[int]) -> list[int]:
        return [i for i in members if self._data.nodes.kind[i] == "op"]


def value_of(source: ValueSource, node: PlanNode, data: TraceData) -> Number | None:
    """The number of one node, see `Readings.value`."""
    return Readings(source, data).value(node)


def total(source: ValueSource, members: Iterable[int], data: TraceData) -> Number | None:
    """The exact sum over some trace nodes, see `Readings.total`."""
    return Readings(source, data).total(members)


def _finite(value: Number | None) -> Number | None:
    return value if value is not None and math.isfinite(value) else None
