"""A drawing while it is being folded: which calls are boxes, what is drawn as one in a row, how many nodes that makes.

Everything that is hidden is touched once, so that a whole schedule costs time linear in the trace. Knows no rule of
what may be folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchlens.plan.collapse.cut import Capsule, Cut
from torchlens.plan.collapse.units import Units

_HIDDEN = -1


class Board:
    """The drawing. count: its nodes; modules: those that are boxes or became part of one, in the order of boxing.

    bundles: outputs drawn as one as soon as all of these calls are boxes.
    """

    def __init__(self, units: Units, bundles: Sequence[tuple[Capsule, tuple[int, ...]]] = ()) -> None:
        base = units.base
        self.units, self.count = units, units.total
        self.capsules: list[Capsule] = []
        self.modules: dict[int, None] = {}
        self.boxes: list[bool] = [base.boxed[c] == c for c in range(len(base.boxed))]
        self.covered = [base.levels[c] < 1 or base.boxed[c] is not None for c in range(len(base.boxed))]
        self._first_box = len(base.groups.members)
        self._first_capsule = self._first_box + len(base.boxed)
        self._refs: dict[int, int] = {}
        self._node_key, self._call_key = [_HIDDEN] * len(base.data.nodes), [_HIDDEN] * len(base.boxed)
        self._whole: set[int] = set()
        self._heads: set[int] = set()
        self._nodes_in: dict[int, int] = {}
        self._calls_in: dict[int, int] = {}
        self._waiting: dict[int, list[int]] = {}
        self._place_units()
        self._bundles = list(bundles)
        self._missing = [0] * len(bundles)
        self._wait_for_boxes()

    def _place_units(self) -> None:
        base = self.units.base
        for i, owner in enumerate(base.groups.owner):
            if owner >= 0 and not base.groups.box[owner]:
                self._node_key[i] = owner
                self._refs[owner] = self._refs.get(owner, 0) + 1
            elif owner >= 0:
                c = base.boxed[base.data.nodes.call[i]]
                if c is not None and self._call_key[c] == _HIDDEN:
                    key = self._call_key[c] = self._box_key(c)
                    self._refs[key] = self._refs.get(key, 0) + 1

    def _wait_for_boxes(self) -> None:
        for number, (_, calls) in enumerate(self._bundles):
            for c in calls:
                self._waiting.setdefault(c, []).append(number)
            self._missing[number] = sum(not self.boxes[c] for c in calls)
            if not self._missing[number]:
                self.join(self._bundles[number][0])

    # -- folding
    def box(self, calls: Iterable[int], *, whole: bool = False) -> bool:
        """Draw each of these calls as one node, unless a box hides it. Whether anything changed."""
        changed = False
        for c in calls:
            if self.covered[c]:
                continue
            kept = None if whole else self.units.kept[c]
            self._hide(c, kept)
            if kept is None:
                self._whole.add(c)
            self.boxes[c] = self.covered[c] = changed = True
            self.modules[self.units.data.calls[c].module] = None
            self._call_key[c] = self._box_key(c)
            self._take(self._call_key[c])
            for number in self._waiting.get(c, ()):
                self._missing[number] -= 1
                if not self._missing[number]:
                    self.join(self._bundles[number][0])
        return changed

    def shrinks(self, calls: Iterable[int]) -> bool:
        """Whether there would not be more nodes with these calls boxed.

        Rolled, what a module hides may be drawn for runs elsewhere too, so that its box would be one node more.
        """
        if not self.units.base.rolled:
            return True
        met: set[int] = set()
        dropped: dict[int, int] = {}
        boxes = dict.fromkeys(self._box_key(c) for c in calls if not self.covered[c])
        for c in calls:
            for inner in () if self.covered[c] or c in met else self._within(c):
                met.add(inner)
                for key in self._keys(inner, self.units.kept[c]):
                    dropped[key] = dropped.get(key, 0) + 1
        gone = sum(held == self._refs[key] for key, held in dropped.items())
        return gone >= sum(not self._refs.get(key) or dropped.get(key) == self._refs[key] for key in boxes)

    def _within(self, call: int) -> Iterator[int]:
        """A call and the calls in it, but for those within boxes."""
        waiting = [call]
        while waiting:
            c = waiting.pop()
            yield c
            if not self.boxes[c]:
                waiting += self.units.below[c]

    def _keys(self, call: int, kept: int | None) -> list[int]:
        """What a call itself is drawn as: its box with the op beside it, or its nodes but for one."""
        own = self.units.own[call]
        keys = [self._node_key[i] for i in own if i != kept]
        if self.boxes[call]:
            beside = self.units.kept[call]
            keys = [self._call_key[call]]
            keys += [] if beside is None or call in self._whole else [self._node_key[beside]]
        return [key for key in keys if key != _HIDDEN]

    def join(self, capsule: Capsule) -> int:
        """Draw several nodes as one: boxes, each with the op beside it, and single ones. Gives its number."""
        number = len(self.capsules)
        self.capsules.append(capsule)
        self._heads.update(capsule.head)
        key = self._first_capsule + number
        for c in capsule.calls:
            self._drop(self._call_key[c])
            self._call_key[c] = key
            self._calls_in[c] = number
            self._take(key)
            kept = self.units.kept[c]
            if kept is not None and c not in self._whole:
                self._move(kept, key, number)
        for i in capsule.nodes:
            self._move(i, key, number)
        return number

    def _move(self, node: int, key: int, number: int) -> None:
        self._drop(self._node_key[node])
        self._node_key[node] = key
        self._nodes_in[node] = number
        self._take(key)

    def _hide(self, call: int, kept: int | None) -> None:
        """Take away whatever is drawn of a call, but for one op."""
        for c in self._within(call):
            self.covered[c] = True
            if self.boxes[c]:
                self._drop(self._call_key[c])
                self._call_key[c] = _HIDDEN
                own = self.units.kept[c]
                if own is not None and c not in self._whole:
                    self._take_away(own)
                continue
            for i in self.units.own[c]:
                if i != kept:
                    self._take_away(i)

    def _take_away(self, node: int) -> None:
        if self._node_key[node] != _HIDDEN:
            self._drop(self._node_key[node])
            self._node_key[node] = _HIDDEN
            self._nodes_in.pop(node, None)

    def _box_key(self, call: int) -> int:
        """Rolled, all calls of a module share a node."""
        first = self.units.data.modules[self.units.data.calls[call].module].calls[0]
        return self._first_box + (first if self.units.base.rolled else call)

    def _take(self, key: int) -> None:
        held = self._refs.get(key, 0)
        self._refs[key] = held + 1
        self.count += not held

    def _drop(self, key: int) -> None:
        if key == _HIDDEN:
            return
        self._refs[key] -= 1
        self.count -= not self._refs[key]

    # -- what is drawn
    def is_box(self, call: int) -> bool:
        """Whether a call is drawn as a node of its own: a box, hidden by none, and not in a row drawn as one."""
        return self.boxes[call] and self._call_key[call] != _HIDDEN and call not in self._calls_in

    def visible_boxes(self) -> list[int]:
        """The calls that are boxes hidden by none, those of a row drawn as one among them."""
        return [c for c, box in enumerate(self.boxes) if box and self._call_key[c] != _HIDDEN]

    def is_free(self, call: int) -> bool:
        """Whether it is such a node and speaks for no folded run."""
        return self.is_box(call) and call not in self._heads

    def thing(self, node: int) -> int:
        """A number for what a single trace node is drawn as, negative if it is not drawn as itself."""
        return self._node_key[node] if node not in self._nodes_in else _HIDDEN

    def outer_boxes(self) -> list[int | None]:
        """Per call, the outermost box that it lies in or is, else None."""
        outer: list[int | None] = []
        for c, call in enumerate(self.units.data.calls):
            above = None if call.parent is None else outer[call.parent]
            outer.append(above if above is not None else c if self.boxes[c] else None)
        return outer

    def cut(self) -> Cut:
        """The drawing as it stands."""
        boxed = self.outer_boxes()
        whole = frozenset(c for c in self._whole if boxed[c] == c)
        calls_in = {c: number for c, number in self._calls_in.items() if boxed[c] == c}
        used = sorted({*calls_in.values(), *self._nodes_in.values()})
        place = {number: k for k, number in enumerate(used)}
        return Cut(
            boxed,
            whole,
            tuple(self.capsules[number] for number in used),
            {node: place[number] for node, number in self._nodes_in.items()},
            {c: place[number] for c, number in calls_in.items()},
        )
