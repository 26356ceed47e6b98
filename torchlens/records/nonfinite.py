"""Which nodes put out NaN or Inf, and where that starts: told from statistics alone, no tensor is asked.

A NaN starts at a node whose output holds NaN while no tensor it read does. An Inf, of either sign, starts where no
tensor read holds NaN or Inf. What a node read is known through its arrows: a parent's output as it was at that call.
Of a tensor that was written to through another alias since, what the last writer wrote counts as read; whether anything
is left of what was there before is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchlens.records.ops import ArgRef
from torchlens.records.payloads import FINITE_VALUES, KINDS, NAN, NOT_LOOKED_AT, Held, OutStats
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import TraceData

OP, PARAMETER, UNKNOWN = "op", "parameter", "unknown"
# Dtypes of other names hold no NaN and no Inf.
_FLOATS = ("float", "bfloat", "complex")
# What these return was never written: whatever is found there says nothing about the model.
_UNWRITTEN = frozenset(
    {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "empty_quantized"}
)


class Start(NamedTuple):
    """Where something nonfinite came into the trace.

    label: the node that put it out first; kinds: what starts there; cause: "op" if the call made it of finite values
    (for NaN: of values without NaN), "input", "buffer" or "constant" if the node holds what was given, "parameter" if
    the node read it from one, "unknown" if not all that the node read was checked; sources: addresses of those
    parameters.
    """

    label: str
    kinds: tuple[str, ...]
    cause: str
    sources: tuple[str, ...] = ()


def joined(parts: Iterable[Held]) -> Held:
    """What several groups of values hold together."""
    found, known = set[str](), True
    for part in parts:
        found.update(part.kinds)
        known = known and part.known
    return Held(tuple(kind for kind in KINDS if kind in found), known)


class Nonfinite:
    """What the nodes of one trace hold, worked out node by node when asked."""

    def __init__(self, data: TraceData) -> None:
        self._data = data
        self._outputs: dict[int, tuple[Held, ...]] = {}
        self._starts: dict[int, tuple[Start, ...]] = {}

    def outputs(self, node: int) -> tuple[Held, ...]:
        """What each output of a node holds."""
        found = self._outputs.get(node)
        if found is None:
            t = self._data.nodes
            found = self._outputs[node] = held_in_outputs(t.kind[node], t.func[node], t.outs[node], t.stats[node])
        return found

    def held(self, node: int) -> Held:
        """What all outputs of a node hold together."""
        return joined(self.outputs(node))

    def parameter(self, index: int) -> Held:
        """What a parameter held when the forward read it."""
        values = self._data.param_values
        if not is_float(self._data.params[index].dtype):
            return FINITE_VALUES
        return values[index] if index < len(values) else NOT_LOOKED_AT

    def any_checked(self) -> bool:
        """Whether the values of any op were looked at."""
        return any(
            stats is not None and any(one is not None for one in stats)
            for stats in (self._data.nodes.stats[i] for i in self._data.op_indexes)
        )

    # -- where it starts
    def starts(self, node: int) -> tuple[Start, ...]:
        """What starts at a node; empty if it only passes on what it read, or holds finite numbers."""
        found = self._starts.get(node)
        if found is None:
            found = self._starts[node] = tuple(self._find_starts(node))
        return found

    def _find_starts(self, node: int) -> list[Start]:
        kinds = self.held(node).kinds
        if not kinds:
            return []
        label, read = self._data.nodes.label[node], self._read(node)
        new = _unexplained(kinds, read)
        given = joined(map(self.parameter, self._data.nodes.params[node]))
        own = _unexplained(new, joined((read, given)))
        starts: list[Start] = []
        borrowed = tuple(kind for kind in new if kind not in own)
        if borrowed:
            starts.append(Start(label, borrowed, PARAMETER, self.sources(node)))
        if own:
            starts.append(Start(label, own, self._cause(node) if read.known and given.known else UNKNOWN))
        return starts

    def _cause(self, node: int) -> str:
        """What made a node of finite values: the call that it is, or that wrote this version of a buffer."""
        kind = self._data.nodes.kind[node]
        return OP if self._data.nodes.parents[node] else kind

    def sources(self, node: int) -> tuple[str, ...]:
        """Addresses of the parameters with NaN or Inf that a node read."""
        params = self._data.nodes.params[node]
        return tuple(self._data.params[p].address for p in params if self.parameter(p).kinds)

    def _read(self, node: int) -> Held:
        """What the tensors hold that a node read from other nodes."""
        places: dict[object, list[ArgRef]] = {}
        parents = self._data.nodes.parents[node]
        for ref in parents:
            places.setdefault(ref.position, []).append(ref)
        read = list(map(self._argument, places.values()))
        if self._data.nodes.kind[node] == "buffer":
            # What a call writes into a buffer is none of its outputs, so what it read accounts for it too.
            writers = [ref.node for ref in parents if self._data.nodes.kind[ref.node] == OP]
            read += map(self._read, writers)
            read += [self.parameter(p) for writer in writers for p in self._data.nodes.params[writer]]
        return joined(read)

    def _argument(self, refs: list[ArgRef]) -> Held:
        """What one argument held: the output of its maker, or what was written to its memory since."""
        held = joined(self._tensor(ref) for ref in refs)
        writers = [ref for ref in refs if ref.late]
        if not writers or not held.kinds:
            return held
        last = self._tensor(max(writers, key=lambda ref: ref.node))
        return Held(last.kinds, last.known and last.kinds == held.kinds)

    def _tensor(self, ref: ArgRef) -> Held:
        outputs = self.outputs(ref.node)
        return outputs[ref.output] if not ref.late and ref.output < len(outputs) else joined(outputs)


def is_float(dtype: str) -> bool:
    """Whether numbers of a dtype can be NaN or Inf."""
    return dtype.startswith(_FLOATS)


def held_in_outputs(
    kind: str, func: str, outs: Sequence[TensorSpec], stats: Sequence[OutStats | None] | None
) -> tuple[Held, ...]:
    """What each output of one node holds. One of whole numbers or bools is finite, whoever looked."""
    rows = (*(stats or ()), *[None] * len(outs))
    unwritten = kind == OP and func in _UNWRITTEN
    return tuple([
        FINITE_VALUES if not is_float(spec.dtype) else NOT_LOOKED_AT if row is None or unwritten else row.held
        for spec, row in zip(outs, rows, strict=False)
    ])  # fmt: skip


def all_starts(data: TraceData) -> tuple[Start, ...]:
    """Everything that starts in a trace, in order of execution."""
    facts = Nonfinite(data)
    return tuple(start for node in range(len(data.nodes)) for start in facts.starts(node))


def _unexplained(kinds: tuple[str, ...], read: Held) -> tuple[str, ...]:
    """The kinds that what was read does not account for: NaN by NaN, Inf by NaN or Inf."""
    return tuple(kind for kind in kinds if not (NAN in read.kinds if kind == NAN else read.kinds))
