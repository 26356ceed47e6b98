"""Branch tests and the arms taken, worked out after the run from where the tests and the ops were called.

Every conversion of a tensor to a bool opens, or goes on with, an evaluation of the construct that asked for it; an op
whose own frames, or those of the module calls around it, stand in an arm of an open evaluation belongs to that arm.
Linear in ops; needs recorded sites only, no tensor and no module.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence

from torchlens.analysis.constructs import OTHERWISE, TEST, Conversion, Place, Reader, Use
from torchlens.capture import callsite
from torchlens.capture.events import BoolRead, Event
from torchlens.records.flow import ELIF, ELSE, THEN, ArmEdge, BranchTest

Site = tuple[object, ...]
Key = tuple[int, int]  # module call, frame in it
_RESUMED = 0x20 | 0x80 | 0x200  # generators and coroutines: who runs them may change


class _Evaluation:
    """One evaluation of a construct in one frame.

    key: the frame; at: number of events before it; tests: its conversions; outcomes: truth of each of the chain's
    tests; entered: the body that ran, None before; of_name: the value tested was converted earlier and kept.
    """

    __slots__ = ("at", "entered", "final", "key", "last", "line", "of_name", "outcomes", "tests", "uses")

    def __init__(self, key: Key, at: int, *, of_name: bool) -> None:
        self.key, self.at, self.of_name = key, at, of_name
        self.tests: list[int] = []
        self.uses: list[Use] = []
        self.outcomes: dict[int, bool | None] = {}
        self.last = (-1, (-1, -1))
        self.final = False
        self.entered: int | None = None
        self.line = 0

    def goes_on(self, use: Use, conversion: Conversion) -> bool:
        """Whether a conversion belongs to this evaluation, not to the next one."""
        if self.entered is not None:
            return False
        position, order = self.last
        if use.position != position:
            named = self.of_name and use.position not in self.outcomes
            return named or (use.position > position and self.outcomes[position] is not True)
        return not self.final and (conversion.order > order or (conversion.order == order and conversion.repeats))

    def add(self, test: int, value: bool, use: Use, conversion: Conversion, at: int) -> None:
        """Take in one more conversion."""
        self.tests.append(test)
        self.uses.append(use)
        self.outcomes[use.position], self.final = use.settle(value)
        self.last, self.at = (use.position, conversion.order), at

    def enters(self, position: int, line: int) -> bool:
        """Whether a body can be the one that this evaluation chose; notes it if so."""
        if self.entered is None and self._may_enter(position):
            self.entered, self.line = position, line
        return self.entered == position

    def _may_enter(self, position: int) -> bool:
        if position == OTHERWISE:
            return True not in self.outcomes.values()
        earlier = (outcome for known, outcome in self.outcomes.items() if known < position)
        reached = self.of_name or position >= self.last[0]
        return reached and self.outcomes.get(position) is not False and True not in earlier

    def arm(self) -> tuple[str, int]:
        """The arm entered, by what ran there or else by the outcomes, and which `elif` it is."""
        if self.entered is not None:
            position = self.entered
            return (ELSE, 0) if position == OTHERWISE else (ELIF, position) if position else (THEN, 0)
        uses = self.uses if len(self.uses) == 1 else sorted(self.uses, key=lambda use: use.position)
        for use in uses:
            if self.outcomes[use.position]:
                return use.then, use.position
        return uses[-1].otherwise if self.outcomes[uses[-1].position] is False else "", 0

    def outcome(self, use: Use) -> bool | None:
        """Truth of one of the chain's tests, by the body that ran where the conversions do not say."""
        known = self.outcomes[use.position]
        return self.entered == use.position if known is None and self.entered is not None else known

    def decider(self) -> int:
        """The test that chose the body."""
        if len(self.tests) == 1:
            return self.tests[0]
        own = [test for test, use in zip(self.tests, self.uses, strict=True) if use.position == self.entered]
        return (own or self.tests)[-1]

    def again(self, at: int) -> _Evaluation:
        """The same answer, asked once more."""
        copy = _Evaluation(self.key, at, of_name=True)
        copy.tests, copy.uses, copy.outcomes, copy.last = self.tests, self.uses, self.outcomes, self.last
        return copy


def work_out(
    tests: Sequence[BoolRead], events: Sequence[Event], call_sites: Sequence[Site], call_parents: Sequence[int | None]
) -> tuple[list[BranchTest], list[ArmEdge]]:
    """Every test with its construct and arm, and the arrows into arms.

    call_sites, call_parents: per module call the frames that made it and the call around it.
    """
    return _Walk(tests, events, call_sites, call_parents).run()


class _Walk:
    """One pass over tests and events in the order they happened."""

    def __init__(
        self,
        tests: Sequence[BoolRead],
        events: Sequence[Event],
        call_sites: Sequence[Site],
        call_parents: Sequence[int | None],
    ) -> None:
        self._reads, self._events = tests, events
        self._call_sites, self._call_parents = call_sites, call_parents
        self._reader = Reader()
        self._tests: list[BranchTest] = []
        self._arms: list[ArmEdge] = []
        self._all: list[_Evaluation] = []
        # Per frame the open evaluations of its constructs; codes that have any.
        self._open: dict[Key, dict[ast.AST, _Evaluation]] = {}
        self._tested: set[int] = set()
        # By id of the site and depth in it: sites are shared by all calls from one place.
        self._frames: dict[tuple[int, int], int] = {}
        self._frame_numbers: dict[tuple[int, ...], int] = {}
        self._steps: dict[int, list[tuple[int, tuple[Place, ...], set[ast.AST]]]] = {}
        # What each op, and each module call, stands in: innermost first.
        self._around: dict[int, tuple[_Evaluation, ...]] = {}
        self._around_call: dict[int, tuple[_Evaluation, ...]] = {}

    def run(self) -> tuple[list[BranchTest], list[ArmEdge]]:
        """Read all tests, place the ops between them, then say how each evaluation ended."""
        begun = 0
        for test, read in enumerate(self._reads):
            self._place(begun, read.at)
            begun = read.at
            self._test(test, read)
        self._place(begun, len(self._events))
        for evaluation in self._all:
            arm, number = evaluation.arm()
            for test, use in zip(evaluation.tests, evaluation.uses, strict=True):
                row = self._tests[test]
                if row.outcome is None and not row.arm:  # of several uses of one name the first counts
                    row.outcome, row.arm, row.number = evaluation.outcome(use), arm, number
        return self._tests, self._arms

    # -- tests
    def _test(self, test: int, read: BoolRead) -> None:
        node, value, site, call, _ = read
        found = None
        if site and isinstance(site[0], types.CodeType):
            found = self._reader.conversion(site[0], site[1])  # type: ignore[arg-type]
        if found is None:
            file, line = self._where(site, call)
            self._tests.append(BranchTest(node, "bool", value, file, line, call=call))
            return
        use = found.uses[0]
        self._tests.append(BranchTest(node, use.construct, value, found.file, found.line, notes=use.notes, call=call))
        for use in found.uses:
            if use.root is not None and 2 * use.frames < len(site):
                self._evaluate(test, read, use.root, use, found)

    def _evaluate(self, test: int, read: BoolRead, root: ast.AST, use: Use, found: Conversion) -> None:
        _, value, site, call, at = read
        depth = 2 * use.frames
        if id(site[depth]) not in self._tested:
            self._tested.add(id(site[depth]))
            self._steps.clear()
        key = (call, self._frame(site, depth))
        open_here = self._open.setdefault(key, {})
        evaluation = open_here.get(root)
        if evaluation is None or not evaluation.goes_on(use, found):
            evaluation = open_here[root] = _Evaluation(key, at, of_name="flag" in use.notes)
            self._all.append(evaluation)
        evaluation.add(test, value, use, found, at)

    def _where(self, site: Site, call: int | None) -> tuple[str, int]:
        """The user's file and line, of the frames around the module calls if need be."""
        found = callsite.decode(site)
        while found is None and call is not None:
            found = callsite.decode(self._call_sites[call])
            call = self._call_parents[call]
        return (found.file, found.line) if found else ("", 0)

    # -- ops
    def _place(self, first: int, end: int) -> None:
        """Find what the ops of a stretch of events stand in, and label the arrows that lead there."""
        for node in range(first, end if self._tested else first):
            event = self._events[node]
            if event.info is None:
                continue
            inner = self._standing_in(event.call, event.site, node)
            around = self._around_call.get(event.call)
            if around is None:
                around = self._around_module(event.call, node)
            if inner or around:
                around = self._around[node] = (*inner, *around)
                self._label(node, event, around)

    def _around_module(self, call: int, node: int) -> tuple[_Evaluation, ...]:
        """What a module call stands in. The frames around it wait while it runs, so the first answer holds."""
        waiting: list[int] = []
        current: int | None = call
        while current is not None and current not in self._around_call:
            waiting.append(current)
            current = self._call_parents[current]
        around = () if current is None else self._around_call[current]
        for inner in reversed(waiting):
            parent = self._call_parents[inner]
            if parent is not None:
                around = (*self._standing_in(parent, self._call_sites[inner], node), *around)
            self._around_call[inner] = around
        return around

    def _standing_in(self, call: int, site: Site, node: int) -> list[_Evaluation]:
        """Evaluations in whose arms the frames of a site stand; those that a frame has left are closed."""
        steps = self._steps.get(id(site))
        if steps is None:
            steps = self._steps[id(site)] = self._read_site(site)
        found: list[_Evaluation] = []
        for frame, path, inside in steps:
            open_here = self._open.get((call, frame))
            if not open_here:
                continue
            for root, position, line in path:
                evaluation = open_here.get(root)
                if evaluation is not None and position != TEST and evaluation.enters(position, line):
                    found.append(evaluation)
            if not open_here.keys() <= inside:
                self._close(open_here, inside, node)
        return found

    def _read_site(self, site: Site) -> list[tuple[int, tuple[Place, ...], set[ast.AST]]]:
        """Of the frames of a site that test something: which frame, and what is around its instruction."""
        steps: list[tuple[int, tuple[Place, ...], set[ast.AST]]] = []
        for depth in range(0, len(site), 2):
            if id(site[depth]) in self._tested:
                path = self._reader.path(site[depth], site[depth + 1])  # type: ignore[arg-type]
                steps.append((self._frame(site, depth), path, {place.root for place in path}))
        return steps

    def _frame(self, site: Site, depth: int) -> int:
        """A number for a frame within its module call: its code, and the instructions it was called from."""
        number = self._frames.get((id(site), depth))
        if number is None:
            key = _frame_key(site, depth)
            number = self._frames[id(site), depth] = self._frame_numbers.setdefault(key, len(self._frame_numbers))
        return number

    def _close(self, open_here: dict[ast.AST, _Evaluation], inside: set[ast.AST], node: int) -> None:
        for root in [root for root in open_here if root not in inside]:
            evaluation = open_here[root]
            if not evaluation.of_name:
                del open_here[root]
            elif evaluation.entered is not None:
                open_here[root] = evaluation.again(node)

    # -- arrows
    def _label(self, node: int, event: Event, around: tuple[_Evaluation, ...]) -> None:
        sources = dict.fromkeys(parent[0] for parent in event.parents)
        for evaluation in reversed(around):
            outside = [
                source
                for source in sources
                if evaluation not in self._around.get(source, ())
                and (source < evaluation.at or self._events[source].info is not None)
            ]
            if outside and not self._computes_test(event, evaluation):
                arm, number = evaluation.arm()
                test = evaluation.decider()
                line = self._tests[test].line if arm == ELSE else evaluation.line
                self._arms += [ArmEdge(source, node, arm, number, test, line) for source in outside]

    def _computes_test(self, event: Event, evaluation: _Evaluation) -> bool:
        """Whether an op, or a function or module around it, was called for a test inside the arm."""
        call: int | None = event.call
        site = event.site
        while call is not None:
            for depth in range(0, len(site), 2):
                own = (call, self._frame(site, depth)) == evaluation.key
                for root, position, _ in self._reader.path(site[depth], site[depth + 1]):  # type: ignore[arg-type]
                    if position == TEST:
                        return True
                    if own and root is evaluation.uses[-1].root:
                        return False
                if own:
                    return False
            site, call = self._call_sites[call], self._call_parents[call]
        return False


def _frame_key(site: Site, depth: int) -> tuple[int, ...]:
    """What tells frames of one module call apart. Codes count by id; the sites keep them alive."""
    code = site[depth]
    if isinstance(code, types.CodeType) and code.co_flags & _RESUMED:
        return (id(code),)
    return (*map(id, site[depth::2]), *site[depth + 3 :: 2])  # type: ignore[arg-type]
