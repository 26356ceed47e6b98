"""Which events are passes of one layer: by where in the source they ran, what they used, and what the loop varies.

Ops that use parameters: same function, same set of parameters, same module. Other ops: same function at the same
place of the same module, in the same context (`loops`). Linear in the events, without recursion, and without a look
at the shape of the graph.
"""

from __future__ import annotations

from bisect import bisect_right

from torchlens.analysis.loops import LoopTable, Row
from torchlens.analysis.sites import SiteTable
from torchlens.capture.callsite import LONGEST
from torchlens.capture.events import Event
from torchlens.records.modules import ModuleCall


def layer_classes(events: list[Event], calls: list[ModuleCall], call_sites: list[tuple[object, ...]]) -> list[int]:
    """A number per event; events with one number are passes of one layer. Inputs, outputs and state stay alone.

    calls: module calls in order of entry; call_sites: per call the frames that made it, as in `Event.site`.
    """
    return _Classes(events, calls, call_sites).classify()


class _Classes:
    """The module calls as rows of entries: an op by its node, an inner call by -1 - its index."""

    def __init__(self, events: list[Event], calls: list[ModuleCall], call_sites: list[tuple[object, ...]]) -> None:
        self._events = events
        self._module = [call.module for call in calls]
        self._parent = [call.parent for call in calls]
        self._span = [call.span for call in calls]
        self._sites = SiteTable()
        self._loops = LoopTable(self._sites)
        number = self._sites.number
        self._call_site = [number(site, LONGEST) for site in call_sites]
        self._site, self._used, self._full = [0] * len(events), [0] * len(events), [False] * len(calls)
        self._rows = self._make_rows()
        self._lasting = {m for m, full in zip(self._module, self._full, strict=True) if full} | {self._module[0]}
        self._call_class = [-1 - module for module in self._module]
        self._call_classes: dict[tuple[int, int, int, int], int] = {}
        self._path: list[int] = []
        self._running: dict[int, int] = {}
        self._classes: dict[tuple[object, ...], int] = {}
        self._class_of = [-1] * len(events)

    # -- rows
    def _make_rows(self) -> list[list[int]]:
        """Entries per call, in order; on the way the sites of ops, and what they and the calls used."""
        rows: list[list[int]] = [[] for _ in self._module]
        number, site_of, used, full = self._sites.number, self._site, self._used, self._full
        sets: dict[tuple[int, ...], int] = {}
        starts = [span[0] for span in self._span]
        starts.append(len(self._events) + 1)
        entered, upcoming = 1, starts[1]
        for node, event in enumerate(self._events):
            while upcoming <= node:
                rows[self._parent[entered] or 0].append(-1 - entered)
                entered += 1
                upcoming = starts[entered]
            if event.info is None:
                continue
            call = event.call
            rows[call].append(node)
            site_of[node] = number(event.site, LONGEST)
            if event.params:
                used[node] = sets.get(event.params) or self._set_number(sets, event.params)
                full[call] = True
        for call in range(len(full) - 1, 0, -1):
            if full[call]:
                full[self._parent[call] or 0] = True
        return rows

    @staticmethod
    def _set_number(sets: dict[tuple[int, ...], int], params: tuple[int, ...]) -> int:
        """Number of a set of parameters, whatever the order of reading."""
        sets[params] = found = sets.setdefault(tuple(sorted(params)), len(sets) + 1)
        return found

    # -- classes
    def classify(self) -> list[int]:
        """Go through the calls in order of entry, so that the class of a call is known before those below it."""
        deep = self._sites.deep
        for call, entries in enumerate(self._rows):
            self._note_running(call)
            if len(entries) == 1 and entries[0] >= 0:
                self._classify_op(call, entries[0], self._site[entries[0]], 0)
                continue
            sites = [self._site[e] if e >= 0 else self._call_site[-1 - e] for e in entries]
            if len(set(sites)) == len(sites) and deep.isdisjoint(sites):
                places, contexts = sites, [0] * len(sites)
            else:
                places, contexts = self._analyse(entries, sites)
            for entry, place, context in zip(entries, places, contexts, strict=True):
                if entry >= 0:
                    self._classify_op(call, entry, place, context)
                else:
                    self._classify_call(call, -1 - entry, place, context)
        following = len(self._classes)
        for node, found in enumerate(self._class_of):
            if found < 0:
                self._class_of[node] = following
                following += 1
        return self._class_of

    def _analyse(self, entries: list[int], sites: list[int]) -> tuple[list[int], list[int]]:
        used, full, module = self._used, self._full, self._module
        idents = [used[e] if e >= 0 else -1 - module[-1 - e] for e in entries]
        row = Row(sites, idents, [used[e] > 0 if e >= 0 else full[-1 - e] for e in entries])
        return self._loops.analyse(row, lambda group, first, last: self._carried(entries, sites, group, first, last))

    def _classify_op(self, call: int, node: int, place: int, context: int) -> None:
        info = self._events[node].info
        assert info is not None
        used, name = self._used[node], info.name
        key: tuple[object, ...]
        if used:
            key = (name, used, self._module[call])
        else:
            key = (self._call_class[call], place, name, context)
        self._class_of[node] = self._classes.setdefault(key, len(self._classes))

    def _classify_call(self, outer: int, call: int, place: int, context: int) -> None:
        """A module that ever used parameters is one thing wherever it is called; any other one depends on the place."""
        module = self._module[call]
        if module in self._lasting:
            return
        around = self._running.get(module)
        if around is not None:  # it calls itself: as a function that recurses
            self._call_class[call] = self._call_class[around]
            return
        key = (self._call_class[outer], place, module, context)
        self._call_class[call] = self._call_classes.setdefault(key, len(self._call_classes))

    def _note_running(self, call: int) -> None:
        """Keep the path of calls down to this one, and the outermost call of each module on it."""
        path, parent = self._path, self._parent[call]
        while path and path[-1] != parent:
            gone = path.pop()
            if self._running.get(self._module[gone]) == gone:
                del self._running[self._module[gone]]
        path.append(call)
        self._running.setdefault(self._module[call], call)

    # -- what feeds what
    def _carried(self, entries: list[int], sites: list[int], group: set[int], first: int, last: int) -> bool:
        """Whether an entry at one of these sites reads what an entry of an earlier turn made."""
        starts = [e if e >= 0 else self._span[-1 - e][0] for e in entries[first : last + 1]]
        where: dict[int, int] = {}
        for i in range(first, last + 1):
            where.setdefault(sites[i], i)
        for i in range(first, last + 1):
            if sites[i] not in group:
                continue
            for source in self._sources(entries[i]):
                j = first + bisect_right(starts, source) - 1
                if first <= j < i and sites[j] in group and self._loops.feeds_back(sites[j], sites[i], where):
                    return True
        return False

    def _sources(self, entry: int) -> list[int]:
        """Ops whose results an op, or the ops of a call, read; what a buffer was last written by counts as read."""
        events = self._events
        nodes = range(entry, entry + 1) if entry >= 0 else range(*self._span[-1 - entry])
        found: list[int] = []
        for node in nodes:
            for parent in events[node].parents:
                source = events[parent[0]]
                if source.info is not None:
                    found.append(parent[0])
                else:
                    found.extend([writer[0] for writer in source.parents])
        return found
