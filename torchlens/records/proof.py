"""What a proof by replay found: plain facts, no tensors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Failure(NamedTuple):
    """One thing in which the recording and a replay of it disagree.

    label: the node, "" for the whole run; site: `file:line` of the user's call, "" if unknown; check: which proof
    failed, one of `CHECKS`; what: what differed.
    """

    label: str
    site: str
    check: str
    what: str

    def __str__(self) -> str:
        place = f" ({self.site})" if self.site else ""
        return f"{self.check}: {self.label or 'the run'}{place}: {self.what}"


class NotCompared(NamedTuple):
    """One node whose values no replay can be compared with, and why."""

    label: str
    reason: str


class Unshown(NamedTuple):
    """One argument whose change was not seen in the op's result.

    position: path of the argument; by: "table" where the function is known not to use its values, "search" where
    no tried change showed.
    """

    label: str
    position: tuple[int | str, ...]
    by: str


CHECKS = {
    "parents": "the recorded arrows of an op name the tensors that its call read",
    "replay": "an op, called again with what its arrows lead to, gives the recorded values",
    "ancestors": "a value is computed from its recorded ancestors alone",
    "outputs": "every tensor of the result has a node, and the node has its value",
    "values": "a kept value is right or refused",
    "recording": "a second recording, made the ordinary way, has the same nodes and arrows",
    "rerun": "a plain run gives the same result",
    "state": "a plain run changes parameters, buffers and inputs in the same way",
}


@dataclass(slots=True)
class ValidationReport:
    """The outcome of `validate_forward_pass`.

    ops: recorded ops; replayed: ops called again and compared; not_compared: nodes that could not be, with reasons;
    ancestors: how many nodes were computed from their ancestors alone, of how many that had a reason to be;
    arguments: tensor arguments that were changed to see whether the op's result changes; unshown: those where it did
    not; notes: what a reader should know.
    """

    model_class: str
    ops: int = 0
    replayed: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    not_compared: list[NotCompared] = field(default_factory=list[NotCompared])
    ancestors: tuple[int, int] = (0, 0)
    arguments: int = 0
    unshown: list[Unshown] = field(default_factory=list[Unshown])
    notes: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """Whether nothing disagreed. Says nothing about what could not be compared."""
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        state = "ok" if self.ok else f"{len(self.failures)} failures"
        tried, wanted = self.ancestors
        lines = [
            f"ValidationReport({self.model_class}: {state}, {self.replayed} of {self.ops} ops replayed, "
            f"{tried} of {wanted} nodes from their ancestors alone, "
            f"{self.arguments - len(self.unshown)} of {self.arguments} arguments shown to matter)"
        ]
        lines += [f"  {failure}" for failure in self.failures[:20]]
        if len(self.failures) > 20:
            lines.append(f"  and {len(self.failures) - 20} more failures")
        reasons = Counter(row.reason for row in self.not_compared)
        lines += [f"  not compared: {count} x {reason}" for reason, count in reasons.most_common()]
        known = sum(row.by == "table" for row in self.unshown)
        if self.unshown:
            lines.append(f"  not shown to matter: {known} by table, {len(self.unshown) - known} by search")
        return lines + [f"  note: {note}" for note in self.notes]
