"""What all channels share: from what the user named to a value source, and the account of what a channel shows.

A function given by the user is called once per node of the trace, whatever it serves, and what it returns is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real

from torchlens.base.errors import error, fail, first_line
from torchlens.base.units import counted
from torchlens.plan.graph import FOLD, MODULE, SEGMENT, Plan, PlanNode
from torchlens.records.trace_data import Deferred, TraceData
from torchlens.scene.model import ChannelState
from torchlens.scene.values import SINGLE, SOURCES, Number, Readings, ValueSource

# What a user's function is told about a node; rolled: whether it stands for all passes of a layer.
RecordOf = Callable[[PlanNode, bool], object]
_CALLED_FOR = ("op", "input", "output")
_BOXES = {MODULE: "module boxes", SEGMENT: "segments"}


def function_name(function: Callable[..., object]) -> str:
    """What a key calls a function; of one with arguments filled in, the function itself."""
    while isinstance(function, partial):
        function = function.func
    own = getattr(function, "__name__", None) or getattr(function, "__qualname__", type(function).__name__)
    name = str(own).rpartition(".")[2]
    return name if name.isidentifier() else "value"


class Sources:
    """Value sources by what an option holds; each function of the user has one."""

    def __init__(self, data: TraceData, record_of: RecordOf | None = None) -> None:
        self._data, self._record_of = data, record_of
        self._results: dict[int, Sequence[object]] = {}

    def get(self, option: str, given: str | Callable[..., object]) -> ValueSource:
        """The source behind the value of an option.

        Raises InvalidArgumentError[encoding_callable_error, encoding_value_invalid] when its numbers are asked for.
        """
        if isinstance(given, str):
            return SOURCES.get(given)
        name, results = function_name(given), self.results(option, given)
        # A function says nothing about several ops together, so no box has a number.
        return ValueSource(
            name, "", lambda data: [_number(option, name, data, i, results[i]) for i in range(len(data.nodes))], True,
            name, name, additive=False, over_passes=False,
        )  # fmt: skip

    def results(self, option: str, function: Callable[..., object]) -> Sequence[object]:
        """What a function returns for each node of the trace, asked when first needed; None for state."""
        found = self._results.get(id(function))
        if found is None:
            kinds = self._data.nodes.kind

            def call(i: int) -> object:
                return self._call(option, function, i) if kinds[i] in _CALLED_FOR else None

            found = self._results[id(function)] = Deferred(len(kinds), call)
        return found

    def _call(self, option: str, function: Callable[..., object], i: int) -> object:
        try:
            return function(self._record(i))
        except Exception as cause:
            place = f"{option}={function_name(function)} at {self._data.nodes.label[i]}"
            what = f"{place} raised {type(cause).__name__}: {first_line(cause)}"
            raise error("encoding_callable_error", what, option=option, node=self._data.nodes.label[i]) from cause

    def _record(self, i: int) -> object:
        """A single op, whatever is drawn: so that passes that disagree are found."""
        if self._record_of is None:
            return self._data.record(i)
        return self._record_of(PlanNode(self._data.nodes.kind[i], self._data.nodes.label[i], (i,), None), False)


def _number(option: str, name: str, data: TraceData, i: int, value: object) -> Number | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        what = f"{option}={name} gave {type(value).__name__} {value!r:.40} at {data.nodes.label[i]}"
        fail("encoding_value_invalid", what, option=option, node=data.nodes.label[i])
    try:
        number = float(value)
    except OverflowError:
        what = f"{option}={name} gave a number beyond {sys.float_info.max:.2g} at {data.nodes.label[i]}"
        fail("encoding_value_invalid", what, option=option, node=data.nodes.label[i])
    return value if isinstance(value, int) else number


# -- the account
def account(
    data: TraceData,
    plan: Plan,
    readings: Readings,
    scale: str,
    shown: Sequence[Number | None],
    notes: Sequence[str] = (),
) -> ChannelState:
    """What a channel did. shown: per node the value that is visible, None where none is."""
    source = readings.source
    known = [float(value) for value in shown if value is not None]
    return ChannelState(
        source=source.name,
        unit=source.unit,
        scale=scale,
        domain=(min(known), max(known)) if known else None,
        encoded=sum(
            ops_in(data, node.members) for node, value in zip(plan.nodes, shown, strict=True) if value is not None
        )
        if len(set(known)) > 1
        else 0,
        eligible=eligible(data, plan),
        notes=(*notes, *_left_out(plan, readings, shown)),
        aggregation=_aggregation(plan, readings, shown),
    )


def ops_in(data: TraceData, members: Sequence[int]) -> int:
    """How many ops are among some nodes of the trace."""
    return sum(data.nodes.kind[i] == "op" for i in members)


def eligible(data: TraceData, plan: Plan) -> int:
    """Ops that could be shown: those of the trace, or of the focused module."""
    return ops_in(data, plan.focus.members) if plan.focus else len(data.op_indexes)


def _aggregation(plan: Plan, readings: Readings, shown: Sequence[Number | None]) -> tuple[str, ...]:
    source, lines = readings.source, list[str]()
    seen = {node.kind for node, value in zip(plan.nodes, shown, strict=True) if value is not None}
    across = {MODULE: " across all calls"} if plan.rolled else {}
    lines += [f"{words}: sum over member ops{across.get(kind, '')}" for kind, words in _BOXES.items() if kind in seen]
    if plan.rolled and source.over_passes and any(node.kind == "op" and len(node.members) > 1 for node in plan.nodes):
        lines.append("rolled nodes: sum over passes")
    if not source.additive and any(node.kind not in SINGLE for node in plan.nodes):
        lines.append(f"collapsed nodes unencoded: {source.name} has no exact sum over ops")
    return tuple(lines)


def _left_out(plan: Plan, readings: Readings, shown: Sequence[Number | None]) -> list[str]:
    source, notes = readings.source, list[str]()
    if plan.left_out:
        notes.append(f"{counted(len(plan.left_out), 'op')} hidden by collapse_rules: on no node")
    blank = [node for node, value in zip(plan.nodes, shown, strict=True) if value is None]
    if any(node.kind == FOLD for node in plan.nodes):
        notes.append("repeat folds: the representative module only, not the modules folded behind it")
    if source.additive:
        kinds = {node.kind for node in blank if not readings.is_idle(node)}
        notes += [f"{words} unencoded: an op inside has no {source.name}" for k, words in _BOXES.items() if k in kinds]
    ops = [node for node in blank if node.kind == "op"]
    varying = sum(map(readings.varies, ops))
    if varying:
        notes.append(f"{counted(varying, 'rolled node')} unencoded: {source.name} differs between the passes")
    idle = [node for node in blank if readings.is_idle(node)]
    if idle:
        notes.append(f"{counted(len(idle), 'node')} ran no kernel: n/a")
    count = len(ops) - varying - sum(node.kind == "op" for node in idle)
    if count:
        notes.append(f"{counted(count, 'node')} {'have' if count > 1 else 'has'} no {source.name}")
    known = {value for value in shown if value is not None}
    if len(known) == 1:
        notes.append("all values are equal: nothing stands out")
    return notes
