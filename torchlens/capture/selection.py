"""Which outputs are kept: what may still be meant by a name is kept while recording, the rest is let go at the end.

A label is final only after the run, because passes are grouped then; its op part and the modules around an op are
known at once. Every name that came to nothing is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from torchlens.base.errors import error, nearest, warn
from torchlens.capture.event_log import EventLog
from torchlens.capture.events import OP, Event
from torchlens.capture.values import Payloads
from torchlens.records.labels import call_key, op_type, split_pass
from torchlens.records.trace_data import TraceData
from torchlens.settings.capture_options import OpFacts, Predicate, Save

_LABEL = re.compile(r"(.+?)_\d+(?:_\d+)?")


class Selection(Protocol):
    """Which outputs are kept."""

    def wants(self, node: int) -> bool:
        """Whether to keep the output of the node whose event was just appended."""
        ...

    def settle(self, data: TraceData, payloads: Payloads) -> None:
        """Let go of what turned out not to be meant, and tell what went wrong."""
        ...


def select(save: Save, log: EventLog, opened: Callable[[], Iterable[str]]) -> Selection | None:
    """The selection of one run; None where all outputs are kept, or none."""
    if isinstance(save, str):
        return None
    return ChosenOutputs(save, log) if callable(save) else NamedOutputs(save, log, opened)


class NamedOutputs:
    """Keeps what a list of labels, buffer versions, module addresses and module calls names.

    opened: names of the Python-level functions that are running; an op inside may end up with one of them.
    """

    def __init__(self, names: Sequence[str], log: EventLog, opened: Callable[[], Iterable[str]]) -> None:
        self._names, self._log, self._opened = names, log, opened
        heads = {_bare(name) for name in names}
        self._addresses = {"" if head == "self" else head for head in heads}
        self._types = {match[1] for head in heads if (match := _LABEL.fullmatch(head))}
        self._inside: dict[int, bool] = {}

    def wants(self, node: int) -> bool:
        """Whether a name may turn out to mean this node."""
        event = self._log.events[node]
        if self._is_inside(event.call) or event.path in self._addresses:
            return True
        if event.info is None:
            return event.kind in self._types
        return op_type(event.info.name) in self._types or any(op_type(name) in self._types for name in self._opened())

    def _is_inside(self, call: int) -> bool:
        """Whether a module call, or one around it, is of a named module."""
        modules = self._log.modules
        chain: list[int] = []
        current: int | None = call
        while current is not None and current not in self._inside:
            chain.append(current)
            current = modules.call_parents[current]
        found = current is not None and self._inside[current]
        for inner in reversed(chain):
            found = found or not self._addresses.isdisjoint(modules.addresses_of_call(inner))
            self._inside[inner] = found
        return found

    def settle(self, data: TraceData, payloads: Payloads) -> None:
        """Let go of what no name means; warn of names that mean nothing, or something that was not kept."""
        wanted: set[int] = set()
        for name in self._names:
            nodes = _nodes_named(data, name)
            wanted.update(nodes)
            if data.outcome.completed and not any(map(payloads.holds, nodes)):
                _warn_missing(data, name, ran=bool(nodes))
        payloads.retain(wanted)


class ChosenOutputs:
    """Keeps what a predicate of the user says yes to."""

    def __init__(self, predicate: Predicate, log: EventLog) -> None:
        self._predicate, self._log = predicate, log
        self._problem: tuple[Exception, str] | None = None
        self._around: dict[int, tuple[str, ...]] = {}
        # Per call so far, how often its module had been called with it.
        self._numbers: list[int] = []
        self._times: Counter[int] = Counter()

    def wants(self, node: int) -> bool:
        """What the predicate says; after it raised once it is not asked again, so that the forward runs to its end."""
        if self._problem is not None:
            return False
        facts = self._facts(self._log.events[node])
        try:
            return bool(self._predicate(facts))
        except Exception as problem:  # noqa: BLE001 - raised again by name once the forward is through
            self._problem = problem, facts.func_name
            return False

    def _facts(self, event: Event) -> OpFacts:
        modules = self._log.modules
        name = event.kind if event.info is None else event.info.name
        return OpFacts(
            event.kind, name, op_type(name), event.outs, modules.addresses_of_call(event.call)[0],
            self._keys(event.call), tuple([modules.param_address(index) for index in event.params]), event.inplace,
            event.path,
        )  # fmt: skip

    def _keys(self, call: int) -> tuple[str, ...]:
        """Keys of the module calls around an event, outermost first, the model's own left out."""
        chain: list[int] = []
        modules, current = self._log.modules, call
        while current and current not in self._around:
            chain.append(current)
            current = modules.call_parents[current] or 0
        keys = self._around.get(current, ())
        for inner in reversed(chain):
            keys = (*keys, call_key(modules.addresses_of_call(inner)[0], self._number(inner)))
            self._around[inner] = keys
        return keys

    def _number(self, call: int) -> int:
        for earlier in range(len(self._numbers), call + 1):
            module = self._log.modules.module_of_call(earlier)
            self._times[module] += 1
            self._numbers.append(self._times[module])
        return self._numbers[call]

    def settle(self, data: TraceData, payloads: Payloads) -> None:
        """Raise InvalidArgumentError[save_predicate_failed] if the predicate raised and the forward did not."""
        if self._problem is not None and data.outcome.completed:
            problem, name = self._problem
            what = f"the save= predicate raised {type(problem).__name__} for {name}: {problem}"
            raise error("save_predicate_failed", what, func_name=name) from problem


def _bare(name: str) -> str:
    """A name without the mark of an address and without pass, version or call number."""
    return split_pass(name.removeprefix("@"))[0]


def _nodes_named(data: TraceData, name: str) -> Sequence[int]:
    """The nodes that a name means, found as `trace[...]` finds them; those that a module's calls returned."""
    name = name.removeprefix("@")
    head, number = split_pass(name)
    if name in data.index_of:
        return (data.index_of[name],)
    if head in data.layer_of:
        return _numbered(data.layers[data.layer_of[head]].nodes, number)
    for buffer in data.buffers:
        if head in (buffer.address, *buffer.aliases):
            return _numbered(buffer.versions, number)
    module = data.module_of.get("" if head == "self" else head)
    if module is not None:
        calls = _numbered(data.modules[module].calls, number)
        return [node for call in calls for node, _ in data.calls[call].outputs]
    return [i for i, path in enumerate(data.nodes.path) if path == name and data.nodes.kind[i] != OP]


def _numbered(items: Sequence[int], number: int | None) -> Sequence[int]:
    return items if number is None else items[number - 1 : number] if number else ()


def _warn_missing(data: TraceData, name: str, *, ran: bool) -> None:
    if ran:
        what = f"save= names {name!r}, but that module only handed on a value which was made outside it"
        warn("save_name_unmatched", what, fix="name the op that made the value", name=name)
        return
    close = nearest(_bare(name), dict.fromkeys([*data.layer_of, *data.module_of]))
    fix = f"perhaps you meant {', '.join(map(repr, close))}" if close else "list(trace) shows the ops"
    warn("save_name_unmatched", f"save= names {name!r}, which this run did not make", fix=fix, name=name)
