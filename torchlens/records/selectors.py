"""Selectors: which nodes of a trace somebody means, by module, function or label. Knows no tensors and no drawing.

A selector is a description and belongs to no trace; `nodes(data)` finds what it means in one. `a | b`, `a & b` and
`~a` combine. A name that nothing bears is refused, in a combination too, so that a typing error is never an empty set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torchlens.base.errors import error, fail, unknown
from torchlens.records.labels import split_pass
from torchlens.records.trace_data import TraceData


@dataclass(frozen=True, slots=True)
class Selector:
    """A description of nodes.

    text: as it is written; find: the indexes it means in a trace, each once.
    """

    text: str
    find: Callable[[TraceData], Iterable[int]]

    def __repr__(self) -> str:
        return self.text

    def nodes(self, data: TraceData) -> tuple[int, ...]:
        """Indexes of the nodes it means, ascending; may be empty for a combination.

        Raises: UnknownNameError[selector_no_match] naming the nearest names.
        """
        return tuple(sorted(set(self.find(data))))

    def __or__(self, other: Selector) -> Selector:
        return Selector(f"({self.text} | {other.text})", lambda data: {*self.find(data), *other.find(data)})

    def __and__(self, other: Selector) -> Selector:
        return Selector(f"({self.text} & {other.text})", lambda data: set(self.find(data)) & set(other.find(data)))

    def __invert__(self) -> Selector:
        return Selector(f"~{self.text}", lambda data: set(range(len(data.nodes))) - set(self.find(data)))


# -- what can be named
def module(address: str) -> Selector:
    """The nodes whose tensors a module returned: `features.0`, of one call only `features.0:2`; "" or "self" the model.

    With or without a leading `@`. For all that ran inside, see `in_module`.
    """
    return Selector(f"module({address!r})", lambda data: _returned(data, _calls(data, address)))


def in_module(address: str) -> Selector:
    """The ops that ran inside a module, modules below it included; one call of it only with `features.0:2`."""
    return Selector(f"in_module({address!r})", lambda data: _inside(data, _calls(data, address)))


def func(name: str) -> Selector:
    """The ops that called a function: `relu` for all of its forms, `relu_` for those in place only."""
    return Selector(f"func({name!r})", lambda data: _called(data, name))


def label(name: str) -> Selector:
    """The node of a label, `relu_1_2:2`; all passes of a layer, `relu_1_2`."""
    return Selector(f"label({name!r})", lambda data: _labelled(data, name))


def select(data: TraceData, target: Selector | str) -> tuple[int, ...]:
    """Indexes of at least one node. target: a selector, or text: a label, else the address of a module.

    Raises: UnknownNameError[selector_no_match].
    """
    if isinstance(target, str):
        if _of_label(data, target):
            target = label(target)
        elif _split(data, target)[0] in data.module_of:
            target = module(target)
        else:
            names = [*data.nodes.label, *data.layer_of, *data.module_of]
            what = f"nothing in the trace is called {target!r}"
            raise unknown("selector_no_match", what, target, names, otherwise="use a label or the address of a module")
    found = target.nodes(data)
    if not found:
        fail("selector_no_match", f"{target!r} selects no node of this trace", fix="widen the selection")
    return found


# -- finding
def _split(data: TraceData, address: str) -> tuple[str, int | None]:
    name = address.removeprefix("@")
    plain = "" if name == "self" else name
    if plain in data.module_of:
        return plain, None
    head, number = split_pass(name)
    return ("" if head == "self" else head), number


def _calls(data: TraceData, address: str) -> tuple[int, ...]:
    name, number = _split(data, address)
    if name not in data.module_of:
        what = f"no module has the address {address!r}"
        raise unknown("selector_no_match", what, name, data.module_of, otherwise="trace.modules lists the addresses")
    calls = data.modules[data.module_of[name]].calls
    if not calls:
        raise error("selector_no_match", f"the module {address!r} was never called in this run", address=address)
    if number is None:
        return calls
    if not 1 <= number <= len(calls):
        what = f"the module {name!r} was called {len(calls)} times; there is no call {number}"
        raise error("selector_no_match", what, fix=f"use {name}:1 to {name}:{len(calls)}", address=address)
    return (calls[number - 1],)


def _returned(data: TraceData, calls: Iterable[int]) -> list[int]:
    return [node for call in calls for node, _ in data.calls[call].outputs]


def _inside(data: TraceData, calls: Iterable[int]) -> list[int]:
    kinds = data.nodes.kind
    spans = [data.calls[call].span for call in calls]
    return [i for first, end in spans for i in range(first, end) if kinds[i] == "op"]


def _called(data: TraceData, name: str) -> list[int]:
    nodes = data.nodes
    types = [layer.type for layer in data.layers]
    found = [i for i in data.op_indexes if name in (nodes.func[i], types[nodes.layer[i]])]
    if not found:
        known = dict.fromkeys([*(nodes.func[i] for i in data.op_indexes), *types])
        what = f"no op of the trace called {name!r}"
        raise unknown("selector_no_match", what, name, known, otherwise="list(trace) shows the ops")
    return found


def _labelled(data: TraceData, name: str) -> tuple[int, ...]:
    found = _of_label(data, name)
    if not found:
        what = f"no node is called {name!r}"
        names = [*data.nodes.label, *data.layer_of]
        raise unknown("selector_no_match", what, name, names, otherwise="list(trace) shows the labels")
    return found


def _of_label(data: TraceData, name: str) -> tuple[int, ...]:
    if name in data.index_of:
        return (data.index_of[name],)
    if name in data.layer_of:
        return tuple(data.layers[data.layer_of[name]].nodes)
    head, number = split_pass(name)
    nodes = data.layers[data.layer_of[head]].nodes if number is not None and head in data.layer_of else ()
    return (nodes[number - 1],) if number is not None and 1 <= number <= len(nodes) else ()
