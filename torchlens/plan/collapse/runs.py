"""Siblings in a row: module calls that ran back to back, each feeding the next, or side by side; and which are alike.

Linear in the trace nodes of the calls looked at. Knows nothing of boxes, budgets or texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from torchlens.plan.collapse.units import Units

# How a call follows the one before it: it reads from it, or both read from and feed the same nodes.
CHAIN, FAN = "chain", "fan"
LEAST_RUN = 3


class Run(NamedTuple):
    """Siblings in a row. rows: the same modules at every place where they ran, each row in order of execution."""

    modules: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    link: str = CHAIN

    @property
    def calls(self) -> list[int]:
        """All calls."""
        return [c for row in self.rows for c in row]


class _Asked(NamedTuple):
    legal: Callable[[int], bool]
    alike: bool
    links: Sequence[str]
    repeats: bool


class Kinship:
    """Answers about calls, each worked out once."""

    def __init__(self, units: Units) -> None:
        self.units = units
        self._likeness: dict[int, int] = {}
        self._numbers: dict[object, int] = {}
        self._ends: dict[int, tuple[frozenset[int], frozenset[int]]] = {}

    def likeness(self, call: int) -> int:
        """A number that structurally identical calls share.

        They have the class, the ops in order with their shown arguments and wiring, the shapes and trainability of the
        parameters, and the shapes of what they return.
        """
        found = self._likeness.get(call)
        if found is None:
            found = self._likeness[call] = self._numbers.setdefault(self._describe(call), len(self._numbers))
        return found

    def _describe(self, call: int) -> tuple[object, ...]:
        data, nodes = self.units.data, self.units.data.nodes
        record = data.calls[call]
        start, end = record.span
        outside: dict[int, int] = {}
        shared: dict[int, int] = {}
        rows: list[object] = []
        for i in range(start, end):
            wiring = tuple(
                (i - ref.node if ref.node >= start else -outside.setdefault(ref.node, len(outside)) - 1, *ref[1:])
                for ref in nodes.parents[i]
            )
            params = tuple(
                (shared.setdefault(p, len(shared)), data.params[p].shape, data.params[p].trainable)
                for p in nodes.params[i]
            )
            inner = data.modules[data.calls[nodes.call[i]].module].class_name
            rows.append((nodes.kind[i], nodes.func[i], inner, wiring, params))
            if nodes.kind[i] == "op":
                rows.append(_frozen(nodes.config[i]))
        returned = tuple((i - start, k, nodes.outs[i][k].shape, nodes.outs[i][k].dtype) for i, k in record.outputs)
        return data.modules[record.module].class_name, tuple(rows), returned

    def link(self, first: int, second: int) -> str:
        """How a call follows its neighbour; empty if in neither way."""
        data = self.units.data
        start, end = data.calls[first].span
        sources, _ = self.ends(second)
        if any(start <= node < end for node in sources):
            return CHAIN
        ends = self.ends(second)
        return FAN if all(ends) and ends == self.ends(first) else ""

    def ends(self, call: int) -> tuple[frozenset[int], frozenset[int]]:
        """The trace nodes outside a call that it reads from, and those that read from it."""
        found = self._ends.get(call)
        if found is None:
            data, (start, end) = self.units.data, self.units.data.calls[call].span
            hidden = self.units.base.selection.hidden
            inner = [i for i in range(start, end) if not hidden[i]]
            sources = {ref.node for i in inner for ref in data.nodes.parents[i] if not start <= ref.node < end}
            readers = {child for i in inner for child in data.children[i] if not start <= child < end}
            found = self._ends[call] = frozenset(sources), frozenset(readers)
        return found

    # -- rows
    def runs(
        self, legal: Callable[[int], bool], *, alike: bool, links: Sequence[str] = (CHAIN,), repeats: bool = False
    ) -> list[Run]:
        """The longest rows of siblings that are legal, by place of the first; each call in at most one.

        legal: which calls may be members; alike: whether all must be structurally identical; repeats: whether a module
        may be in a row several times. Siblings have one parent in the tree of modules, ran in the same call, and no
        other work was done between them. Rolled, a row counts only if it is the same wherever its modules ran, and
        none has a module twice.
        """
        asked = _Asked(legal, alike, links, repeats and not self.units.base.rolled)
        rows: dict[tuple[str, tuple[int, ...]], list[tuple[int, ...]]] = {}
        for below in self.units.below:
            for link, row in self._rows(below, asked):
                modules = tuple(self.units.data.calls[c].module for c in row)
                rows.setdefault((link, modules), []).append(row)
        found = [Run(modules, tuple(places), link) for (link, modules), places in rows.items()]
        if self.units.base.rolled:
            found = [run for run in found if self._is_everywhere(run)]
        return sorted(found, key=lambda run: run.rows[0][0])

    def _is_everywhere(self, run: Run) -> bool:
        levels, data = self.units.base.levels, self.units.data
        return all(sum(levels[c] >= 1 for c in data.modules[m].calls) == len(run.rows) for m in run.modules)

    def _rows(self, below: Iterable[int], asked: _Asked) -> Iterator[tuple[str, tuple[int, ...]]]:
        row: list[int] = []
        held, met = "", set[int]()
        for c in below:
            link = self._step(row[-1], c, asked) if row else ""
            module = self.units.data.calls[c].module
            if row and link in asked.links and held in ("", link) and (asked.repeats or module not in met):
                held = link
            else:
                yield from self._finished(row, held)
                row, held, met = [], "", set[int]()
                if not asked.legal(c):
                    continue
            row.append(c)
            met.add(module)
        yield from self._finished(row, held)

    def _finished(self, row: list[int], held: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        if len(row) > 1:
            yield held, tuple(row)

    def _step(self, first: int, second: int, asked: _Asked) -> str:
        """The link between neighbours that may be in one row, else empty."""
        units, modules = self.units, self.units.data.modules
        above = [modules[units.data.calls[c].module].parent for c in (first, second)]
        if above[0] != above[1] or not asked.legal(second) or not units.nothing_between(first, second):
            return ""
        link = self.link(first, second)
        return link if link and not (asked.alike and self.likeness(first) != self.likeness(second)) else ""


def _frozen(value: object) -> object:
    """Arguments as something that can be compared and hashed."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
