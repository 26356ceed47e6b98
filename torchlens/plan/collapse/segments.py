"""What may be drawn as one in a row: boxes of siblings, plain ops of a chain, outputs alike.

A segment only says what it holds and that it ran in a row. Its members follow each other without other work between
them, so that drawing them as one makes no arrow and no circle that the network lacks. Linear in the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.cut import Capsule
from torchlens.plan.collapse.runs import LEAST_RUN, Kinship, Run
from torchlens.plan.collapse.units import Units
from torchlens.plan.graph import OUTPUTS, SEGMENT
from torchlens.records.ops import ArgRef

# A segment hides at most this share of the drawing, so that it does not become the whole of it.
LARGEST_SHARE = 0.75
# With more nodes than this left at the end, chains of ops become segments too.
FEW_NODES = 12
LEAST_BLOCKS, LEAST_OPS, LEAST_OUTPUTS = 2, 3, 3


def condense(board: Board, kinship: Kinship, band: int) -> list[Capsule]:
    """Join all that may be joined: rows of boxes, where much is left chains of ops, and above the band also rows of
    ops that others read from. Gives what was joined.
    """
    joined: list[Capsule] = []
    for most, find in ((0, partial(block_segments, kinship=kinship)), (FEW_NODES, op_segments), (band, op_rows)):
        found = find(board) if board.count > most else []
        for capsule in found:
            board.join(capsule)
        joined += found
    return joined


# -- blocks
def like_segments(board: Board, kinship: Kinship) -> list[Capsule]:
    """Three or more structurally identical boxes in a row, each such row one segment."""
    runs = kinship.runs(board.is_free, alike=True)
    return _capsules(board.units, (run for run in runs if len(run.modules) >= LEAST_RUN))


def block_segments(board: Board, kinship: Kinship) -> list[Capsule]:
    """Per parent, the longest row of boxes that hides no more than its share; further rows of three or more."""
    units = board.units
    most = LARGEST_SHARE * units.total
    waiting: dict[int | None, list[Run]] = {}
    for run in kinship.runs(board.is_free, alike=False, repeats=True):
        waiting.setdefault(units.data.modules[run.modules[0]].parent, []).append(run)
    chosen: list[Run] = []
    for runs in waiting.values():
        least = LEAST_BLOCKS
        pieces = [(_window(run, units, most), run) for run in runs]
        while pieces:
            (start, end), run = max(pieces, key=lambda piece: piece[0][1] - piece[0][0])
            if end - start < least:
                break
            chosen.append(_part(run, start, end))
            pieces.remove(((start, end), run))
            rest = [_part(run, 0, start), _part(run, end, len(run.modules))]
            pieces += [(_window(part, units, most), part) for part in rest if len(part.modules) >= LEAST_RUN]
            least = LEAST_RUN
    return _capsules(units, sorted(chosen, key=lambda run: run.rows[0][0]))


def _part(run: Run, start: int, end: int) -> Run:
    return Run(run.modules[start:end], tuple(row[start:end] for row in run.rows), run.link)


def _window(run: Run, units: Units, most: float) -> tuple[int, int]:
    """The longest stretch of a run that hides at most so many units; the first of equals."""
    weights = [sum(units.inside[row[k]] for row in run.rows) for k in range(len(run.modules))]
    best, start, held = (0, 0), 0, 0
    for end, weight in enumerate(weights, 1):
        held += weight
        while held > most:
            held -= weights[start]
            start += 1
        if end - start > best[1] - best[0]:
            best = start, end
    return best


def _capsules(units: Units, runs: Iterable[Run]) -> list[Capsule]:
    """Rolled, one for all places where a row ran; else one for each."""
    found: list[Capsule] = []
    for run in runs:
        rows = [tuple(sorted(run.calls))] if units.base.rolled else run.rows
        found += [Capsule(SEGMENT, row) for row in rows]
    return found


# -- ops
def op_segments(board: Board) -> list[Capsule]:
    """Chains of three or more ops: each reads only from the one before it and, but for the last, feeds only the next.

    What reads nothing and feeds one op of the chain belongs to it.
    """
    return _Chains(board, plain=True).segments()


def op_rows(board: Board) -> list[Capsule]:
    """Three or more ops that ran back to back, each read by the next; other things may feed them and read from them."""
    return _Chains(board, plain=False).segments()


class _Chains:
    def __init__(self, board: Board, *, plain: bool) -> None:
        self._plain = plain
        self._board, self._units, self._data = board, board.units, board.units.data
        self._hidden = board.units.base.selection.hidden
        self._tested = self._data.branches.steering

    def segments(self) -> list[Capsule]:
        chains = [chain for chain in self._chains() if len(chain) >= LEAST_OPS]
        return [Capsule(SEGMENT, (), tuple(sorted([*chain, *self._unseen(chain)]))) for chain in chains]

    def _chains(self) -> list[list[int]]:
        found: list[list[int]] = []
        chain: list[int] = []
        loose: list[int] = []
        for i in self._drawn():
            single = i >= 0 and self._is_single(i)
            if single and not self._parents(i):
                loose.append(i)
                continue
            if single and chain and self._follows(i, chain[-1], loose):
                chain += [*loose, i]
            else:
                found.append(chain)
                chain = self._start(i, loose) if single else []
            loose = []
        return [*found, chain]

    def _unseen(self, chain: Sequence[int]) -> list[int]:
        """The buffers and bookkeeping that the modules of the ops keep to themselves."""
        works, units = self._units.base.works, self._units
        calls = [call for i in chain if (call := works.call_of(self._data, i)) is not None and works.sole[call]]
        return [i for call in calls for i in units.own[call] if self._hidden[i]]

    def _drawn(self) -> list[int]:
        """The ops drawn as themselves, in order; negative where something else is drawn, or left out, in between.

        A constant or buffer is that only to an op that may read it and stand within a row.
        """
        order: list[int] = []
        board, kinds = self._board, self._data.nodes.kind
        for i, owner in enumerate(self._units.base.groups.owner):
            if owner < 0:
                order += [-1] if i in self._units.base.selection.left_out else []
                continue
            alone = board.thing(i) >= 0
            if kinds[i] == "op":
                order.append(i if alone else -1)
            elif kinds[i] in ("buffer", "constant") and (self._data.nodes.parents[i] or not self._plain):
                order.append(-1)
        return order

    def _is_single(self, node: int) -> bool:
        groups = self._units.base.groups
        if node in self._tested or node in self._units.base.rules.kept:
            return False
        return len(groups.members[groups.owner[node]]) == 1 and not self._orphan(node)

    def _orphan(self, node: int) -> bool:
        return self._units.base.selection.orphans[node]

    def _parents(self, node: int) -> set[int]:
        """What a node reads; constants and buffers are counted, hidden bookkeeping is not."""
        refs: Sequence[ArgRef] = self._data.nodes.parents[node]
        return {ref.node for ref in refs if not self._hidden[ref.node]}

    def _children(self, node: int) -> list[int]:
        return [child for child in self._data.children[node] if not self._hidden[child]]

    def _start(self, node: int, loose: list[int]) -> list[int]:
        """A chain that begins with a node and what right before it was made for it alone; none if it may not begin."""
        first = len(loose)
        while first and self._children(loose[first - 1]) == [node]:
            first -= 1
        alone = len(self._parents(node) - set(loose[first:])) <= 1
        return [*loose[first:], node] if alone or not self._plain else []

    def _follows(self, node: int, last: int, loose: list[int]) -> bool:
        if not all(self._children(i) == [node] for i in loose):
            return False
        if self._plain:
            return self._parents(node) - set(loose) == {last} and self._children(last) == [node]
        return last in self._parents(node)


# -- outputs
def bundles(units: Units) -> list[tuple[Capsule, tuple[int, ...]]]:
    """Three or more outputs of one key, dtype and shape, with the calls of the one module that made them all.

    The calls are outermost ones; the outputs become one node when these are boxes. What a call leaves visible beside
    its box is no part of it.
    """
    data, base = units.data, units.base
    if not base.bundles:
        return []
    alike: dict[tuple[str, object, object, int], list[int]] = {}
    tops: dict[tuple[str, object, object, int], int] = {}
    outer = _outermost(units)
    for i, kind in enumerate(data.nodes.kind):
        refs = data.nodes.parents[i]
        name = _role(data.nodes.path[i]) if kind == "output" else ""
        if not name or base.groups.owner[i] < 0 or len(refs) != 1:
            continue
        source = refs[0].node
        call = outer[data.nodes.call[source]] if data.nodes.kind[source] == "op" else -1
        if call < 0 or units.kept[call] == source:
            continue
        spec = data.nodes.outs[i][0]
        key = name, spec.dtype, spec.shape, data.calls[call].module
        alike.setdefault(key, []).append(i)
        tops[key] = tops.get(key, call) if tops.get(key, call) == call else -1
    return [
        (Capsule(OUTPUTS, (), tuple(found), (), key[0]), (tops[key],))
        for key, found in alike.items()
        if len(found) >= LEAST_OUTPUTS and tops[key] >= 0
    ]


def _outermost(units: Units) -> list[int]:
    """Per call, the call directly below what the page shows that it lies in or is, -1 for none."""
    levels, found = units.base.levels, list[int]()
    for c, call in enumerate(units.data.calls):
        found.append(c if levels[c] == 1 else found[call.parent] if levels[c] > 1 and call.parent is not None else -1)
    return found


def _role(path: str) -> str:
    """The named part of the path of an indexed output: `past_key_values.keys` of `past_key_values.keys.3`."""
    parts = path.split(".")
    names = [part for part in parts if not part.isdigit()]
    return ".".join(names) if names and len(names) < len(parts) else ""
