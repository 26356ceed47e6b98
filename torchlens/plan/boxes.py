"""Which module calls are drawn as one node (`depth=`, rules), and which are open with a frame around their nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchlens.plan.focus import OUTSIDE
from torchlens.plan.graph import PlanBox
from torchlens.plan.rectangles import Works
from torchlens.plan.rules import NO_RULES, Verdicts
from torchlens.plan.select import Selection
from torchlens.records.trace_data import TraceData


def boxed_calls(
    data: TraceData, works: Works, levels: list[int], depth: int, rules: Verdicts = NO_RULES
) -> list[int | None]:
    """Per call, the call drawn as one node that it lies in (or is), None where all is open.

    A call at nesting level `depth` (1 = called by what the page shows) is one node if it holds more than one op; so is,
    at any level, a call of a module that a rule folds. One that has to stay open hands `depth` on to the calls in it.
    """
    boxed: list[int | None] = []
    for c, call in enumerate(data.calls):
        above = None if call.parent is None else boxed[call.parent]
        if above is None and call.module not in rules.stays:
            deep = levels[c] >= depth and works.inside[c] > 1
            ruled = call.module in rules.folds and levels[c] > 0 and _ran(data, works, c, rules) > 1
            above = c if deep or ruled else None
        boxed.append(above)
    return boxed


def _ran(data: TraceData, works: Works, call: int, rules: Verdicts) -> int:
    """How many ops ran in a call, those that leave the page among them."""
    start, end = data.calls[call].span
    return works.inside[call] + (sum(i in rules.hides for i in range(start, end)) if rules.hides else 0)


def framed_calls(
    data: TraceData,
    works: Works,
    selection: Selection,
    boxed: list[int | None],
    levels: list[int],
    depth: int,
    rolled: bool,
    rules: Verdicts = NO_RULES,
) -> list[bool]:
    """Per call, whether it gets a frame.

    Not what the page shows the inside of, unless that is several calls side by side; nothing outside it or inside a
    box; no module that is one rectangle, unless its buffers are drawn beside it. A box gets one only around itself and
    the op of its own that stays visible.
    """
    holds_state = [False] * len(data.calls)
    for i, kind in enumerate(data.nodes.kind):
        if selection.used[i] and not selection.hidden[i] and (kind == "buffer" or selection.bookkeeping[i]):
            holds_state[data.nodes.call[i]] = True
    whole = (OUTSIDE,) if not rolled and levels.count(0) > 1 else (0, OUTSIDE)
    framed: list[bool] = []
    for c in range(len(data.calls)):
        if levels[c] in whole or (boxed[c] is not None and boxed[c] != c):
            framed.append(False)
        elif boxed[c] == c:
            framed.append(works.op[c] is not None)
        elif works.sole[c]:
            framed.append(holds_state[c])
        else:
            framed.append(levels[c] < depth or data.calls[c].module in rules.stays)
    return framed


@dataclass(slots=True)
class Frames:
    """Makes the frames as nodes are placed in them. Rolled: one frame per module within its outer frame."""

    data: TraceData
    framed: list[bool]
    rolled: bool
    boxes: list[PlanBox] = field(default_factory=list[PlanBox])
    _outer: list[int | None] = field(default_factory=list[int | None])
    _known: dict[tuple[int | None, int], int] = field(default_factory=dict[tuple[int | None, int], int])
    _calls: list[dict[int, None]] = field(default_factory=list[dict[int, None]])
    _orphans: int | None = None

    def __post_init__(self) -> None:
        for c, call in enumerate(self.data.calls):
            above = None if call.parent is None else self._outer[call.parent]
            self._outer.append(c if self.framed[c] else above)

    def place(self, call: int, from_input: bool) -> int | None:
        """The frame of something that ran in this call, made with its outer ones when first needed."""
        chain: list[int] = []
        current = self._outer[call]
        while current is not None:
            chain.append(current)
            current = self._above(current)
        box: int | None = None
        for c in reversed(chain):
            module = self.data.calls[c].module
            key = (box, module if self.rolled else c)
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = len(self.boxes)
                level = 0 if box is None else self.boxes[box].level + 1
                self.boxes.append(PlanBox(module, (), box, level))
                self._calls.append({})
            self._calls[found][c] = None
            self.boxes[found].from_input |= from_input
            box = found
        return box

    def place_orphan(self) -> int:
        """The one frame of the orphans, made when first needed."""
        if self._orphans is None:
            self._orphans = len(self.boxes)
            self.boxes.append(PlanBox(None, (), None, 0))
            self._calls.append({})
        return self._orphans

    def join(self, box: int | None, call: int) -> None:
        """Count a later pass that ran in this call among the calls of the frame where its node stands."""
        current = self._outer[call]
        while box is not None and current is not None and current not in self._calls[box]:
            if self.data.calls[current].module == self.boxes[box].module:
                self._calls[box][current] = None
            box, current = self.boxes[box].parent, self._above(current)

    def finish(self) -> tuple[PlanBox, ...]:
        """The frames with their calls."""
        for box, calls in zip(self.boxes, self._calls, strict=True):
            box.calls = tuple(sorted(calls))
        return tuple(self.boxes)

    def _above(self, call: int) -> int | None:
        parent = self.data.calls[call].parent
        return None if parent is None else self._outer[parent]
