"""Branches: tensors that Python code turned into a bool, and the arrows that lead into the arms taken because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

THEN, ELIF, ELSE = ARMS = ("THEN", "ELIF", "ELSE")
CONSTRUCTS = ("if", "elif", "while", "ternary", "assert", "filter", "match", "bool")


@dataclass(slots=True)
class BranchTest:
    """One conversion of a tensor to a bool.

    node: index of the node whose tensor was tested; construct: what asked, one of `CONSTRUCTS` (`filter` is the `if`
    of a comprehension, `match` a guard, `bool` anything else, and everything whose source is not at hand); value: of
    the tensor itself; file, line: where it was converted; outcome: truth of the construct's whole test after `not`,
    `and`, `or`, None if it hung on something else; arm: "THEN", "ELIF" or "ELSE" if one was entered, else ""; number:
    which `elif`, from 1, when the arm is one; notes: what lies between tensor and construct, innermost first (`not`,
    `and`, `or`, `compare`, `in`, `bool`, `any`, `all`, `flag`); call: index of the module call it happened in.
    """

    node: int
    construct: str
    value: bool
    file: str
    line: int
    outcome: bool | None = None
    arm: str = ""
    number: int = 0
    notes: tuple[str, ...] = ()
    call: int = 0


@dataclass(slots=True)
class ArmEdge:
    """An arrow from outside into an arm that was taken.

    source, target: node indexes; arm: "THEN", "ELIF" or "ELSE"; number: which `elif`, from 1, else 0; test: index of
    the deciding test among the branches; line: of the construct (for ELSE: of its deciding test).
    """

    source: int
    target: int
    arm: str
    number: int
    test: int
    line: int


class Branches(Sequence[BranchTest]):
    """The tests of a trace in order; what needs the sources is worked out when somebody first asks.

    nodes: per test the node, reads: nodes that left as Python values otherwise (`item`, `int`, an index); both are
    known without any source.
    """

    def __init__(
        self,
        tests: Iterable[BranchTest] = (),
        arms: Iterable[ArmEdge] = (),
        *,
        reads: Iterable[int] = (),
    ) -> None:
        self._tests, self._arms = list(tests), list(arms)
        self._work_out: Callable[[], tuple[list[BranchTest], list[ArmEdge]]] | None = None
        self.nodes = tuple(test.node for test in self._tests)
        self.reads = tuple(dict.fromkeys(reads))

    @classmethod
    def deferred(
        cls,
        nodes: Iterable[int],
        reads: Iterable[int],
        work_out: Callable[[], tuple[list[BranchTest], list[ArmEdge]]],
    ) -> Branches:
        """Branches of which only the nodes are known yet; `work_out` is called at most once and then let go."""
        branches = cls(reads=reads)
        branches.nodes, branches._work_out = tuple(nodes), work_out
        return branches

    @property
    def steering(self) -> set[int]:
        """Nodes whose value left for Python, as a bool or otherwise."""
        return {*self.nodes, *self.reads}

    @property
    def arms(self) -> list[ArmEdge]:
        """Arrows into taken arms, by target; of one arrow the outermost arm first."""
        self._settle()
        return self._arms

    def _settle(self) -> None:
        if self._work_out is not None:
            self._tests, self._arms = self._work_out()
            self._work_out = None

    def __repr__(self) -> str:
        return f"Branches({len(self)} tests)"

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, index: int) -> BranchTest: ...
    @overload
    def __getitem__(self, index: slice) -> list[BranchTest]: ...
    def __getitem__(self, index: int | slice) -> BranchTest | list[BranchTest]:
        self._settle()
        return self._tests[index]

    def __iter__(self) -> Iterator[BranchTest]:
        self._settle()
        return iter(self._tests)
