"""Branches and loops of real models, as a reader finds them in the drawing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import branching, loops
from torchlens.render.graphviz import SYSTEM

ONES = torch.ones(2, 4)


def draw(model: nn.Module, x: torch.Tensor, **options: object) -> str:
    return tl.trace(model, (x,), save="none").draw(**options).dot


def questions(document: str) -> list[str]:
    return re.findall(r"<B>((?:IF|ELIF|WHILE|ASSERT|BOOL)(?: NOT)?: [^<]*)</B>", document)


def arms(document: str) -> dict[str, str]:
    """`input_1->relu_1_3` -> the label of the arm."""
    found = re.findall(r'\[id="edge:(\S+):\d+" label=<(<TABLE.*)>', document)
    return {ends: " ".join(re.findall(r"<U>([^<]*)</U>", label)) for ends, label in found}


@pytest.mark.parametrize(
    ("function", "x", "asked", "entered"),
    [
        (branching.plain_if, ONES, ["IF: TRUE"], {"input_1->relu_1_3": "THEN"}),
        (branching.plain_if, -ONES, ["IF: FALSE"], {"input_1->tanh_1_3": "ELSE"}),
        (branching.if_without_else, -ONES, ["IF: FALSE"], {}),
        (branching.chain, ONES / 2, ["IF: FALSE", "ELIF: TRUE"], {"input_1->tanh_1_5": "ELIF"}),
        (branching.chain, -ONES, ["IF: FALSE", "ELIF: FALSE", "ELIF: FALSE"], {"input_1->sin_1_6": "ELSE"}),
        (branching.nested, ONES, ["IF: TRUE", "IF: FALSE"], {"input_1->mul_1_3": "THEN", "mul_1_3->exp_1_6": "ELSE"}),
        (branching.ternary, ONES, ["IF: TRUE"], {"input_1->relu_1_3": "THEN"}),
        (branching.match_guard, ONES / 4, ["IF: FALSE", "IF: TRUE"], {"input_1->exp_1_5": "THEN"}),
        (branching.asserted, ONES, ["ASSERT: TRUE"], {}),
        (branching.stored, ONES, ["BOOL: TRUE"], {}),
        (branching.negation, ONES, ["IF NOT: TRUE"], {"input_1->tanh_1_3": "ELSE"}),
        (branching.conjunction, ONES, ["IF: TRUE", "IF: FALSE"], {"input_1->tanh_1_5": "ELSE"}),
        (branching.read_as_number, ONES, [], {}),
    ],
)
def test_every_form_of_branch(
    function: Callable[..., torch.Tensor], x: torch.Tensor, asked: list[str], entered: dict[str, str]
) -> None:
    document = draw(branching.Form(function), x)
    assert questions(document) == asked
    assert arms(document) == entered
    assert document.count('fillcolor="#f7d460"') == len(asked)


def test_two_arms_at_once_name_their_lines() -> None:
    line = branching.nested_at_once.__code__.co_firstlineno + 1
    document = draw(branching.Form(branching.nested_at_once), ONES)
    assert arms(document) == {"input_1->relu_1_6": f"THEN@L{line} · THEN@L{line + 1}"}


def test_a_while_loop_unrolled_and_rolled() -> None:
    model, x = branching.Form(branching.while_loop), 6 * ONES
    assert questions(draw(model, x)) == ["WHILE: TRUE"] * 3 + ["WHILE: FALSE"]
    rolled = draw(model, x, rolled=True)
    assert questions(rolled) == ["WHILE: TRUE 1-3, FALSE 4"]
    assert arms(rolled) == {
        "input_1->mul_1_4": "THEN", "mul_1_4->mul_1_4": "THEN", "mul_1_4->sin_1_5": "ELSE",
    }  # fmt: skip


def test_a_box_in_an_arm_is_entered_through_it_and_a_branch_in_a_box_is_hidden() -> None:
    assert arms(draw(branching.ModuleInArm(), ONES, depth=1)) == {"input_1->module:body:1": "THEN"}
    document = draw(nn.Sequential(branching.Child(), nn.Tanh()), ONES, depth=1)
    assert (questions(document), arms(document)) == ([], {})


def test_a_growing_loop_says_how() -> None:
    document = draw(loops.Growing(), ONES, rolled=True)
    assert "<TR><TD>3-&gt;5</TD></TR><TR><TD>192 B (total across 3 passes)</TD></TR>" in document
    assert "@lin<" in document


def test_a_box_that_ran_several_times_says_so() -> None:
    document = draw(loops.SharedPool(2), torch.ones(1, 2, 16), rolled=True, depth=1)
    assert "<B>@block (x2)</B>" in document
    assert "<TD>6 ops</TD>" in document


@pytest.mark.parametrize("file_format", ["svg", "pdf", "png"])
@pytest.mark.parametrize("engine", [None, "system"])
def test_every_format_of_both_engines(tmp_path, engine: str | None, file_format: str) -> None:
    if engine and SYSTEM.locate() is None:
        pytest.skip("Graphviz is not installed")
    trace = tl.trace(branching.Form(branching.while_loop), (6 * ONES,), save="none")
    path = tmp_path / f"loop.{file_format}"
    trace.draw(path, rolled=True, engine=engine)
    data = path.read_bytes()
    assert data.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[file_format])
    if file_format == "svg":
        assert data.decode().count('text-decoration="underline"') == 3
