"""The words of branches: what a test asked and how it came out, and which arm an arrow leads into.

Reads branch tests and finished plans. Knows nothing of fonts or colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchlens.base.text import listing, wrap
from torchlens.base.units import passes_text
from torchlens.plan.graph import Entry, PlanNode
from torchlens.records.flow import BranchTest
from torchlens.records.trace_data import TraceData

# A filter, a guard and a conditional expression are ways to write `if`.
_WORDS = {"elif": "ELIF", "while": "WHILE", "assert": "ASSERT", "bool": "BOOL"}
_BOTH, _EITHER = " · ", " / "
# Characters of a line of an arm label, which is set large, and of a list of passes.
ARM_WIDTH, PASSES_WIDTH = 20, 16

Tests = Mapping[int, Sequence[BranchTest]]


def asked_of_nodes(data: TraceData) -> Tests:
    """Trace node -> what was asked of its tensor, in order. Reads sources only if anything was asked."""
    table: dict[int, list[BranchTest]] = {}
    for test in data.branches if data.branches.nodes else ():
        table.setdefault(test.node, []).append(test)
    return table


def question_lines(tests: Tests, node: PlanNode, data: TraceData) -> list[str]:
    """`IF: TRUE`, one line per question; where passes differ `IF: TRUE 1-2, FALSE 3`.

    The truth is the tensor's own. Where a `not` stands between it and the construct, the question says so:
    `IF NOT: FALSE`.
    """
    found: dict[str, dict[bool, dict[int, None]]] = {}
    for i in node.members:
        for test in tests.get(i, ()):
            answers = found.setdefault(_question(test), {})
            answers.setdefault(test.value, {})[data.nodes.pass_number[i]] = None
    lines: list[str] = []
    for question, answers in found.items():
        always = len(answers) == 1 and all(len(passes) == node.passes for passes in answers.values())
        ordered = sorted(answers.items(), key=lambda item: min(item[1]))
        parts = [f"{_truth(value)}{'' if always else f' {_passes(passes)}'}" for value, passes in ordered]
        lines.append(f"{question}: {', '.join(parts)}")
    return lines


def _question(test: BranchTest) -> str:
    word = _WORDS.get(test.construct, "IF")
    return f"{word} NOT" if test.notes.count("not") % 2 else word


def _passes(passes: Iterable[int]) -> str:
    return listing(passes_text(passes).split(","), PASSES_WIDTH)


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def arm_lines(entries: Sequence[Entry]) -> list[str]:
    """`THEN`, or `THEN(1,3) / ELSE(2)` where passes differ; several at once `THEN@L5 · ELSE@L7`, outermost first."""
    where: dict[str, set[tuple[int, int]]] = {}
    for entry in entries:
        for arm in entry.arms:
            where.setdefault(arm.name, set()).add((arm.number, arm.line))
    # A word alone would not say which branch is meant.
    placed = any(len(entry.arms) > 1 for entry in entries) or any(len(places) > 1 for places in where.values())
    texts: list[str] = []
    for entry in entries:
        names = [f"{arm.name}@L{arm.line}" if placed and arm.line else arm.name for arm in entry.arms]
        passes = f"({_passes(entry.passes)})" if entry.passes else ""
        texts.append(_BOTH.join(names) + (" " if passes and len(names) > 1 else "") + passes)
    return wrap(_EITHER.join(texts), ARM_WIDTH, (_EITHER, _BOTH)) if texts else []
