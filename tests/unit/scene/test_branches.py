"""The words of tests and arms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from torchlens.plan.graph import Arm, Entry
from torchlens.records.flow import CONSTRUCTS
from torchlens.scene.branches import arm_lines
from torchlens.scene.model import Scene

MakeScene = Callable[..., Scene]
MakeRows = Callable[..., list[str]]

WORDS = {
    "if": "IF", "elif": "ELIF", "while": "WHILE", "ternary": "IF", "assert": "ASSERT", "filter": "IF", "match": "IF",
    "bool": "BOOL",
}  # fmt: skip


def test_the_first_row_of_a_test_says_how_it_came_out(scene: MakeScene) -> None:
    node = next(node for node in scene(builders.branch()).nodes if node.name == "gt_1_2")
    assert [(row.lines, row.bold) for row in node.rows] == [
        (("IF: TRUE",), True), (("gt_1_2",), True), (("scalar, 1 B",), False), (("other=0",), False),
    ]  # fmt: skip
    assert node.tooltip.startswith("gt_1_2")


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_construct_has_a_word(rows: MakeRows, construct: str) -> None:
    b = Builder()
    b.test(b.op("gt", [b.input()], ()), construct, value=False)
    assert rows(b.build(), "gt_1_1")[0] == f"{WORDS[construct]}: FALSE"


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        (("not",), "IF NOT: TRUE"), (("not", "and", "not"), "IF: TRUE"), (("and", "not"), "IF NOT: TRUE"),
        (("or", "flag"), "IF: TRUE"),
    ],
)  # fmt: skip
def test_a_negated_question_says_so(rows: MakeRows, notes: tuple[str, ...], text: str) -> None:
    b = Builder()
    b.test(b.op("gt", [b.input()], ()), notes=notes)
    assert rows(b.build(), "gt_1_1")[0] == text


def test_several_questions_of_one_tensor_are_lines_and_equal_ones_are_one(rows: MakeRows) -> None:
    b = Builder()
    tested = b.op("gt", [b.input()], ())
    for construct in ("if", "while", "if", "match"):
        b.test(tested, construct)
    assert rows(b.build(), "gt_1_1")[:3] == ["IF: TRUE", "WHILE: TRUE", "gt_1_1"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((True, True, False), "IF: TRUE 1-2, FALSE 3"),
        ((False, True, False), "IF: FALSE 1,3, TRUE 2"),
        ((True, True, True), "IF: TRUE"),
        ((True, None, True), "IF: TRUE 1,3"),
    ],
)
def test_passes_that_differ_are_told_apart(rows: MakeRows, values: tuple[bool | None, ...], text: str) -> None:
    b = Builder()
    h = b.input()
    for value in values:
        h = b.op("gt", [h], (2, 8), layer="gt")
        if value is not None:
            b.test(h, value=value)
    b.output(h)
    data = b.build()
    assert rows(data, "gt_1_1", rolled=True)[0] == text
    assert rows(data, "gt_1_1:3")[0] == f"IF: {str(values[2]).upper()}"


def test_a_long_list_of_passes_is_cut(rows: MakeRows) -> None:
    b = Builder()
    h = b.input()
    for k in range(99):
        h = b.op("gt", [h], (2, 8), layer="gt")
        b.test(h, value=k % 2 == 0)
    assert rows(b.build(), "gt_1_1", rolled=True)[0] == "IF: TRUE 1,3,5,7,9,…,99, FALSE 2,4,6,8,10,…,98"


def test_an_input_may_be_tested_and_a_box_is_not(rows: MakeRows) -> None:
    b = Builder()
    x = b.input()
    b.test(x, construct="while")
    with b.module("m") as call:
        tested = b.op("gt", [x], ())
        b.test(tested)
        call.returns = [b.op("neg", [tested])]
    b.output(call.returns[0])
    data = b.build()
    assert rows(data, "input_1")[:2] == ["WHILE: TRUE", "input_1"]
    assert rows(data, "module:m:1", depth=1)[0] == "@m"


THEN, ELSE, ELIF = Arm("THEN", 0, 5), Arm("ELSE", 0, 7), Arm("ELIF", 1, 7)


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        ([], []),
        ([Entry((THEN,), ())], ["THEN"]),
        ([Entry((THEN,), (1, 3)), Entry((ELSE,), (2,))], ["THEN(1,3) / ELSE(2)"]),
        ([Entry((THEN,), (2,))], ["THEN(2)"]),
        ([Entry((THEN, ELSE), ())], ["THEN@L5 · ELSE@L7"]),
        ([Entry((THEN, ELSE), (1, 2, 3))], ["THEN@L5 ·", "ELSE@L7 (1-3)"]),
        (
            [Entry((THEN, ELIF), (1,)), Entry((THEN, ELSE), (2,))],
            ["THEN@L5 ·", "ELIF@L7 (1) /", "THEN@L5 ·", "ELSE@L7 (2)"],
        ),
        ([Entry((ELIF,), (1,)), Entry((Arm("ELIF", 2, 9),), (2,))], ["ELIF@L7(1) /", "ELIF@L9(2)"]),
        ([Entry((Arm("THEN", 0, 0), Arm("THEN", 0, 0)), ())], ["THEN · THEN"]),
    ],
)  # fmt: skip
def test_the_label_of_an_arm(entries: list[Entry], lines: list[str]) -> None:
    assert arm_lines(entries) == lines
