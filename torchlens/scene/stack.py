"""Columns by a value: nodes that share one stand on the same rank, as in a diagram of the steps of a loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from torchlens.base.errors import fail
from torchlens.plan.graph import Plan, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.encodings import Sources, eligible, function_name, ops_in
from torchlens.scene.model import ChannelState
from torchlens.scene.values import UNMEASURED
from torchlens.settings.options import DrawOptions
from torchlens.settings.sources import PASSES

AUTO = "auto"
_Fact = Callable[[TraceData, int], Hashable]


def _layer(name: str) -> _Fact:
    return lambda data, i: getattr(data.layers[data.nodes.layer[i]], name)


def _tensor(name: str) -> _Fact:
    return lambda data, i: getattr(data.nodes.outs[i][0], name) if data.nodes.outs[i] else None


_FIELDS: dict[str, _Fact] = {
    "pass_number": lambda data, i: data.nodes.pass_number[i],
    "func_name": lambda data, i: data.nodes.func[i],
    "layer_label": _layer("label"),
    **{name: _layer(name) for name in ("num_passes", "step", "n", "type")},
    **{name: _tensor(name) for name in ("dtype", "device")},
}


@dataclass(frozen=True, slots=True)
class Stack:
    """Columns that are on. columns: drawn nodes that share a rank, at least two each; name: what they share."""

    name: str
    encoding: ChannelState
    columns: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> str:
        """`aligned: same pass_number`."""
        return f"aligned: same {self.name}"

    @property
    def caption(self) -> str:
        """The same as a sentence of the caption."""
        return f"columns: nodes with the same {self.name}"


def stack(data: TraceData, plan: Plan, options: DrawOptions, sources: Sources) -> Stack | None:
    """The columns of a drawing, None without `stack_by=`."""
    given = options.stack_by
    if given is None:
        return None
    if isinstance(given, str) or given is True:
        given = AUTO if given is True else given
        name, fact = (PASSES if given == AUTO else given), _FIELDS[PASSES if given == AUTO else given]
        shared = [_of_op(data, i, fact, repeated=given == AUTO) for i in range(len(data.nodes))]
        note = "derived: the passes run in lockstep" if given == AUTO else "as named, whether or not it is a time"
    else:
        name, results = function_name(given), sources.results("stack_by", given)
        shared = [_checked(name, data, i, results[i]) for i in range(len(data.nodes))]
        note = "as the function says, whether or not it is a time"
    columns: dict[Hashable, list[int]] = {}
    for k, node in enumerate(plan.nodes):
        value = _of_node(data, node, shared)
        if value is not None:
            columns.setdefault(value, []).append(k)
    encoded = sum(ops_in(data, plan.nodes[k].members) for column in columns.values() for k in column)
    state = ChannelState(name, "", "", None, encoded, eligible(data, plan), (note,))
    return Stack(name, state, tuple(tuple(column) for column in columns.values() if len(column) > 1))


def _of_op(data: TraceData, i: int, fact: _Fact, *, repeated: bool) -> Hashable:
    """What an op shares; where columns are derived, only ops that ran several times have one."""
    if data.nodes.kind[i] != "op" or (repeated and data.layers[data.nodes.layer[i]].num_passes < 2):
        return None
    return fact(data, i)


def _of_node(data: TraceData, node: PlanNode, shared: Sequence[Hashable]) -> Hashable:
    """What all members of a node share that share anything, None if they do not agree."""
    if node.kind in UNMEASURED:
        return None
    values = {shared[i] for i in node.members} - {None}
    return values.pop() if len(values) == 1 else None


def _checked(name: str, data: TraceData, i: int, value: object) -> Hashable:
    if not isinstance(value, (str, int, float)) and value is not None:
        _refuse(name, data, i, value)
    return value


def _refuse(name: str, data: TraceData, i: int, value: object) -> NoReturn:
    what = f"stack_by={name} gave {type(value).__name__} at {data.nodes.label[i]}"
    fix = "return a text or a number, None for what belongs to no column"
    fail("encoding_value_invalid", what, fix=fix, option="stack_by", node=data.nodes.label[i])
