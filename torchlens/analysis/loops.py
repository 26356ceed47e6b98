"""What the loop around an event varies, worked out from call sites: the events of one module call at a time.

A site that events come from more than once was repeated. Its events are passes of one layer unless something else
differs between the repetitions: the parameters or modules at another site of the same loop, or, where no parameters
take part, that no repetition feeds a later one. No isomorphism of graphs is looked for. Knows no events: their sites,
what they used and who feeds whom are handed in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import NamedTuple

from torchlens.analysis.sites import SiteTable

# Whether some repetition feeds a later one: (sites that count, first and last position to look at).
Carried = Callable[[set[int], int, int], bool]


class Row(NamedTuple):
    """Ops and inner module calls of one module call, in order, as parallel lists.

    idents: what each used: of an op the number of its parameter set, 0 for none; of a call -1 - its module. full:
    whether it used parameters, inner calls included.
    """

    sites: list[int]
    idents: list[int]
    full: list[bool]


class _Variant(NamedTuple):
    """A repeated site whose events used different things: where, and what each of them stands for."""

    site: int
    positions: list[int]
    labels: list[object]


class LoopTable:
    """Contexts and places of events, numbered over a whole trace so that calls of one module can be compared."""

    def __init__(self, sites: SiteTable) -> None:
        self._sites = sites
        self._contexts: dict[tuple[int, int, object], int] = {}

    def analyse(self, row: Row, carried: Carried) -> tuple[list[int], list[int]]:
        """Place and context of every event of a row; events that differ in one of them are no passes of each other.

        Linear in the events times the sites of one loop that vary independently of each other.
        """
        where: dict[int, list[int]] = defaultdict(list)
        for i, site in enumerate(row.sites):
            where[site].append(i)
        scope: dict[int, int] = {}
        places = row.sites
        if not self._sites.deep.isdisjoint(where):
            used = self._used(row, where)
            scope = self._scopes(where, used)
            moved = self._places(scope, used)
            places = [moved.get(site, site) for site in row.sites] if moved else places
        contexts = [0] * len(places)
        if len(where) < len(places):
            self._fill_contexts(row, where, scope, places, carried, contexts)
        return places, contexts

    # -- functions that are called from several lines
    def _used(self, row: Row, where: dict[int, list[int]]) -> dict[int, set[int]]:
        """What was used below each function frame that used parameters."""
        used: dict[int, set[int]] = {}
        for site, positions in where.items():
            scopes = self._sites.scopes[site]
            own = {row.idents[i] for i in positions if row.full[i]} if scopes else None
            if own:
                for scope in scopes:
                    used.setdefault(scope, set()).update(own)
        return used

    def _scopes(self, where: dict[int, list[int]], used: dict[int, set[int]]) -> dict[int, int]:
        """Per site, the innermost function frame around it that used parameters: it counts as a module."""
        found: dict[int, int] = {}
        for site in where if used else ():
            inner = [scope for scope in self._sites.scopes[site] if scope in used]
            if inner:
                found[site] = inner[-1]
        return found

    def _places(self, scope: dict[int, int], used: dict[int, set[int]]) -> dict[int, int]:
        """Sites in a function that was called from several lines with the same parameters: as in its first call."""
        inner = set(scope.values())
        code = {number: self._sites.scope_of[number][1] for number in inner}
        if len(set(code.values())) == len(inner):
            return {}
        home: dict[tuple[int, frozenset[int]], int] = {}
        moved: dict[int, int] = {}
        for site, number in scope.items():
            first = home.setdefault((code[number], frozenset(used[number])), number)
            if first != number:
                moved[site] = self._sites.moved(site, number, first)
        return moved

    # -- loops
    def _fill_contexts(
        self, row: Row, where: dict[int, list[int]], scope: dict[int, int], places: list[int], carried: Carried,
        contexts: list[int],
    ) -> None:  # fmt: skip
        repeated = {site: positions for site, positions in where.items() if len(positions) > 1}
        total = list(accumulate(row.full, initial=0))
        free = {site for site, p in repeated.items() if total[p[-1] + 1] == total[p[0]]}
        labels = {s: _labels(row, p, s in free) for s, p in repeated.items() if _varies(row, p)}
        variants = self._independent(repeated, labels, scope)
        idle = self._idle(repeated, free, carried)
        for site, positions in repeated.items():
            if site in idle:
                for k, i in enumerate(positions):
                    contexts[i] = self._context(-1, 0, k)
                continue
            own = labels.get(site)
            if own is None and (not variants or row.full[positions[0]]):
                continue  # the parameters of an event that has some say all about it
            found = [0] * len(positions)
            for variant in variants.get(scope.get(site, -1), ()):
                if variant.site != site and _overlap(variant.positions, positions):
                    place = places[variant.positions[0]]
                    for k, label in enumerate(self._same_turn(site, positions, variant)):
                        found[k] = self._context(found[k], place, label)
            for k, i in enumerate(positions):
                contexts[i] = found[k] if own is None else self._context(found[k], -1, own[k])

    def _context(self, before: int, place: int, label: object) -> int:
        return self._contexts.setdefault((before, place, label), len(self._contexts) + 1)

    def _independent(
        self, repeated: dict[int, list[int]], labels: dict[int, list[object]], scope: dict[int, int]
    ) -> dict[int, list[_Variant]]:
        """Variant sites by the frame they are seen from (-1: everywhere); of several that vary in step, the first."""
        leaders: dict[tuple[int, tuple[int, ...]], list[_Variant]] = {}
        found: dict[int, list[_Variant]] = {}
        for site, own in labels.items():
            numbers: dict[object, int] = {}
            pattern = tuple([numbers.setdefault(label, len(numbers)) for label in own])
            known = leaders.setdefault((scope.get(site, -1), pattern), [])
            variant = _Variant(site, repeated[site], own)
            if any(_in_step(leader.positions, variant.positions) for leader in known[-1:]):
                continue
            known.append(variant)
            for seen_from in (-1, *self._sites.scopes[site]):
                found.setdefault(seen_from, []).append(variant)
        return found

    def _same_turn(self, site: int, positions: list[int], variant: _Variant) -> Iterable[object]:
        """Per event of a site, the label of the variant's event in the same turn of the loop, None for none."""
        ahead = self._precedes(site, positions, variant.site, variant.positions)
        there, labels, j = variant.positions, variant.labels, 0
        count = len(there)
        for position in positions:
            while j < count and there[j] < position:
                j += 1
            k = j if ahead else j - 1
            yield labels[k] if 0 <= k < count else None

    def _precedes(self, a: int, at: list[int], b: int, there: list[int]) -> bool:
        """Whether site a stands before site b in the source; by who ran first where the source does not say."""
        order = self._sites.order(a, b)
        return order < 0 if order else at[0] < there[0]

    # -- loops without parameters
    def _idle(self, repeated: dict[int, list[int]], free: set[int], carried: Carried) -> set[int]:
        """Repeated sites of loops without parameters in which no turn feeds a later one: maps, which are no loops.

        free: repeated sites with nothing that used parameters between their first event and their last.
        """
        spans = sorted((repeated[site][0], repeated[site][-1], site) for site in free)
        idle: set[int] = set()
        group: set[int] = set()
        first = last = -1
        for start, end, site in spans:
            if start > last:
                if group and not carried(group, first, last):
                    idle |= group
                group, first = set(), start
            group.add(site)
            last = max(last, end)
        if group and not carried(group, first, last):
            idle |= group
        return idle

    def feeds_back(self, source: int, reader: int, where: dict[int, int]) -> bool:
        """Whether data from one site to another flows against the order of the source, which takes a loop.

        where: position of the first event of each site.
        """
        if source == reader:
            return True
        order = self._sites.order(reader, source)
        return order < 0 if order else where[reader] < where[source]


def _varies(row: Row, positions: list[int]) -> bool:
    first = row.idents[positions[0]]
    return any(row.idents[i] != first for i in positions)


def _labels(row: Row, positions: list[int], free: bool) -> list[object]:
    """What each event of a variant site stands for: what it used; without parameters also the last that had some.

    In a loop without any parameters each is its own turn: distinct modules in a row are no loop.
    """
    if free:
        return [(k,) for k in range(len(positions))]
    labels: list[object] = []
    last: int | None = None
    for i in positions:
        if row.full[i]:
            last = row.idents[i]
            labels.append(last)
        else:
            labels.append((row.idents[i], last))
    return labels


def _overlap(a: list[int], b: list[int]) -> bool:
    return a[0] < b[-1] and b[0] < a[-1]


def _in_step(a: list[int], b: list[int]) -> bool:
    """Whether events of two sites alternate, the first one leading."""
    return (
        len(a) == len(b)
        and all(x < y for x, y in zip(a, b, strict=True))
        and all(y < x for y, x in zip(b, a[1:], strict=False))
    )
