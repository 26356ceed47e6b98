"""Thin views of branch tests: what `trace.branches` and `op.branch` give out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlens.records.flow import BranchTest

if TYPE_CHECKING:
    from torchlens.trace_view import Trace


class Branch:
    """One tensor that Python turned into a bool, and what came of it.

    construct: `if`, `elif`, `while`, `ternary`, `assert`, `filter`, `match` or `bool`; value: of the tensor; outcome:
    of the whole test, None if it hung on something that is no tensor; arm: `THEN`, `ELIF` or `ELSE` if one was taken,
    else ""; notes: `not`, `and`, `or`, ... between them; file, line: where the tensor became a bool.
    """

    __slots__ = ("_trace", "record")

    def __init__(self, trace: Trace, index: int) -> None:
        self._trace = trace
        self.record: BranchTest = trace.data.branches[index]

    def __repr__(self) -> str:
        arm = f" -> {self.arm}{f' {self.record.number}' if self.record.number else ''}" if self.arm else ""
        place = f"{self.file}:{self.line}" if self.file else "source unknown"
        words = " ".join(dict.fromkeys((self.construct, *self.notes)))
        return f"Branch({self.label!r}, {words}: {self.value}{arm}, {place})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Branch) and self.record is other.record

    def __hash__(self) -> int:
        return id(self.record)

    @property
    def label(self) -> str:
        """Label of the node whose tensor was tested."""
        return self._trace.data.nodes.label[self.record.node]

    @property
    def construct(self) -> str:
        """What asked for the bool."""
        return self.record.construct

    @property
    def value(self) -> bool:
        """Truth of the tensor."""
        return self.record.value

    @property
    def outcome(self) -> bool | None:
        """Truth of the whole test."""
        return self.record.outcome

    @property
    def arm(self) -> str:
        """The arm taken."""
        return self.record.arm

    @property
    def number(self) -> int:
        """Which `elif`, from 1, if that is the arm taken; else 0."""
        return self.record.number

    @property
    def notes(self) -> tuple[str, ...]:
        """What lies between the tensor and the construct, innermost first."""
        return self.record.notes

    @property
    def file(self) -> str:
        """File of the test, "" if unknown."""
        return self.record.file

    @property
    def line(self) -> int:
        """Line of the test."""
        return self.record.line

    @property
    def module(self) -> str:
        """Key of the module call that tested, "" for the model's own."""
        return self._trace.data.call_key(self.record.call) if self.record.call else ""
