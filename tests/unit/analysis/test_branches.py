"""Which construct asked for a bool, which arm it took, and which arrows lead into that arm."""

from __future__ import annotations

import gc
import inspect
import linecache
import os
import weakref

import pytest
import torch

import torchlens as tl
from tests.models import branching as zoo
from torchlens.analysis import sources

ONES, HALF, TINY = torch.ones(2, 4), torch.full((2, 4), 0.5), torch.full((2, 4), 0.2)


def run(function, x=ONES):
    return tl.trace(zoo.Form(function), (x,), save="none")


def facts_of(trace):
    return [(b.construct, b.value, b.outcome, b.arm) for b in trace.branches]


def arrows(trace):
    """`source>target ARM`, with the layer's function names, and the text of the line the arm belongs to."""
    data = trace.data
    names = data.nodes.func
    return [f"{names[e.source]}>{names[e.target]} {e.arm}{e.number or ''}" for e in data.branches.arms]


@pytest.mark.parametrize(
    ("function", "x", "tests", "arms"),
    [
        (zoo.plain_if, ONES, [("if", True, True, "THEN")], ["input>relu THEN"]),
        (zoo.plain_if, -ONES, [("if", False, False, "ELSE")], ["input>tanh ELSE"]),
        (zoo.if_without_else, ONES, [("if", True, True, "THEN")], ["input>relu THEN"]),
        (zoo.if_without_else, -ONES, [("if", False, False, "")], []),
        (zoo.chain, ONES, [("if", True, True, "THEN")], ["input>relu THEN"]),
        (
            zoo.chain,
            HALF,
            [("if", False, False, "ELIF"), ("elif", True, True, "ELIF")],
            ["input>tanh ELIF1"],
        ),
        (
            zoo.chain,
            TINY,
            [("if", False, False, "ELIF"), ("elif", False, False, "ELIF"), ("elif", True, True, "ELIF")],
            ["input>exp ELIF2"],
        ),
        (
            zoo.chain,
            -ONES,
            [("if", False, False, "ELSE"), ("elif", False, False, "ELSE"), ("elif", False, False, "ELSE")],
            ["input>sin ELSE"],
        ),
        (
            zoo.else_then_if,
            HALF,
            [("if", False, False, "ELSE"), ("if", True, True, "THEN")],
            ["input>exp ELSE", "input>exp THEN"],
        ),
        (
            zoo.nested,
            ONES,
            [("if", True, True, "THEN"), ("if", False, False, "ELSE")],
            ["input>mul THEN", "mul>exp ELSE"],
        ),
        (
            zoo.nested_at_once,
            ONES,
            [("if", True, True, "THEN"), ("if", True, True, "THEN")],
            ["input>relu THEN", "input>relu THEN"],
        ),
        (
            zoo.while_loop,
            3 * ONES,
            [("while", True, True, "THEN"), ("while", True, True, "THEN"), ("while", False, False, "ELSE")],
            ["input>mul THEN", "mul>mul THEN", "mul>sin ELSE"],
        ),
        (zoo.ternary, ONES, [("ternary", True, True, "THEN")], ["input>relu THEN"]),
        (zoo.ternary, -ONES, [("ternary", False, False, "ELSE")], ["input>tanh ELSE"]),
        (zoo.ternary_in_lambda, -ONES, [("ternary", False, False, "ELSE")], ["input>tanh ELSE"]),
        (
            zoo.ternary_of_ternary,
            HALF,
            [("ternary", False, False, "ELSE"), ("ternary", True, True, "THEN")],
            ["input>exp ELSE", "input>exp THEN"],
        ),
        (zoo.asserted, ONES, [("assert", True, True, "")], []),
        (
            zoo.list_filter,
            torch.tensor([[1.0, 2.0], [-1.0, -2.0]]),
            [("filter", True, True, "THEN"), ("filter", True, True, "THEN"), ("filter", False, False, "")],
            ["unbind>relu THEN"],
        ),
        (
            zoo.generator_filter,
            torch.tensor([[-1.0, -2.0], [1.0, 2.0]]),
            [("filter", False, False, ""), ("filter", True, True, "THEN")],
            ["unbind>relu THEN"],
        ),
        (
            zoo.match_guard,
            HALF,
            [("match", False, False, ""), ("match", True, True, "THEN")],
            ["input>exp THEN"],
        ),
        (zoo.stored, ONES, [("bool", True, None, "")], []),
        (zoo.returned, ONES, [("bool", True, None, "")], []),
        (zoo.by_max, ONES, [("bool", False, None, "")], []),
        (zoo.by_sorted, ONES, [("bool", False, None, "")], []),
        (
            zoo.conjunction,
            ONES,
            [("if", True, False, "ELSE"), ("if", False, False, "ELSE")],
            ["input>tanh ELSE"],
        ),
        (zoo.conjunction, -ONES, [("if", False, False, "ELSE")], ["input>tanh ELSE"]),
        (
            zoo.disjunction,
            ONES,
            [("if", False, True, "THEN"), ("if", False, True, "THEN")],
            ["input>relu THEN"],
        ),
        (zoo.disjunction, 100 * ONES, [("if", True, True, "THEN")], ["input>relu THEN"]),
        (zoo.conjunction_with_python, ONES, [("if", True, False, "ELSE")], ["input>tanh ELSE"]),
        (zoo.negation, ONES, [("if", True, False, "ELSE")], ["input>tanh ELSE"]),
        (
            zoo.chained_comparison,
            ONES,
            [("if", True, True, "THEN"), ("if", True, True, "THEN")],
            ["input>relu THEN"],
        ),
        (zoo.chained_comparison, -100 * ONES, [("if", False, False, "")], []),
        (zoo.wrapped_bool, ONES, [("if", True, True, "THEN")], ["input>relu THEN"]),
        (
            zoo.builtin_any,
            torch.tensor([[0.0, 0.0], [9.0, 9.0]]),
            [("if", False, True, "THEN"), ("if", True, True, "THEN")],
            ["input>relu THEN"],
        ),
        (zoo.builtin_all, ONES, [("if", True, True, "THEN")] * 2, ["input>relu THEN"]),
        (zoo.builtin_all, -ONES, [("if", False, False, "")] * 2, []),
        (
            zoo.any_of_list,
            ONES,
            [("if", True, True, "THEN"), ("if", False, True, "THEN")],
            ["input>relu THEN"],
        ),
        (
            zoo.not_any_in_loop,
            torch.tensor([[1.0, 1.0], [9.0, 9.0]]),
            [
                ("if", False, False, "ELSE"),
                ("if", True, False, "ELSE"),
                ("if", False, True, "THEN"),
                ("if", False, True, "THEN"),
            ],
            ["sub>tanh ELSE", "sub>relu THEN"],
        ),
        (zoo.flag, ONES, [("if", True, True, "THEN")], ["sin>relu THEN"]),
        (zoo.flag, -ONES, [("if", False, False, "")], []),
        (zoo.flag_of_and, ONES, [("if", True, True, "THEN"), ("if", False, True, "THEN")], ["input>relu THEN"]),
        (zoo.two_flags, ONES, [("elif", True, True, "ELIF"), ("if", False, False, "ELIF")], ["input>exp ELIF1"]),
        (
            zoo.two_flags,
            100 * ONES,
            [("elif", True, True, "THEN"), ("if", True, True, "THEN")],
            ["input>relu THEN"],
        ),
        (zoo.flag_written_twice, ONES, [("bool", True, None, "")], []),
        (zoo.flag_used_in_loop, ONES, [("if", True, True, "THEN")], ["sin>relu THEN", "sin>relu THEN"]),
        (zoo.walrus, ONES, [("if", True, True, "THEN")], ["input>relu THEN", "gt>mul THEN"]),
        (zoo.walrus_itself, torch.ones(1), [("if", True, True, "THEN")], ["input>relu THEN", "gt>mul THEN"]),
        (zoo.multi_line, ONES, [("if", True, True, "THEN"), ("if", True, True, "THEN")], ["input>relu THEN"]),
        (zoo.contained, ONES, [("if", False, True, "THEN"), ("if", True, True, "THEN")], ["input>relu THEN"]),
        (
            zoo.helper_twice,
            ONES,
            [("if", True, True, "THEN"), ("if", False, False, "ELSE")],
            ["input>sub THEN", "relu>exp ELSE"],
        ),
        (
            zoo.helper_in_loop,
            ONES,
            [("if", True, True, "THEN"), ("if", False, False, "ELSE"), ("if", False, False, "ELSE")],
            ["input>sub THEN", "sub>add ELSE", "add>add ELSE"],
        ),
        (
            zoo.recursion,
            1.5 * ONES,
            [("if", True, True, "THEN"), ("if", True, True, "THEN"), ("if", False, False, "")],
            ["input>relu THEN", "sub>relu THEN"],
        ),
        (zoo.generator, ONES, [("if", True, True, "THEN")], ["input>add THEN", "input>mul THEN"]),
        (zoo.elif_by_python, ONES, [("if", False, False, "ELIF")], ["input>exp ELIF1"]),
        (zoo.elif_by_python, torch.ones(3, 4), [("if", False, False, "ELSE")], ["input>sin ELSE"]),
        (zoo.buffer_free_constant, ONES, [("if", True, True, "THEN")], ["input>add THEN"]),
    ],
    ids=lambda value: value.__name__ if inspect.isfunction(value) else "",
)
def test_form(function, x, tests, arms):
    trace = run(function, x)
    trace.check()
    assert facts_of(trace) == tests
    assert arrows(trace) == arms


@pytest.mark.parametrize(
    ("function", "notes"),
    [
        (zoo.negation, [("not",)]),
        (zoo.disjunction, [("or",), ("not", "or")]),
        (zoo.chained_comparison, [("compare",)] * 2),
        (zoo.wrapped_bool, [("bool",)]),
        (zoo.builtin_all, [("bool", "all")] * 2),
        (zoo.contained, [("in",)] * 2),
        (zoo.flag, [("bool", "flag")]),
    ],
)
def test_notes_tell_what_lies_between_tensor_and_construct(function, notes):
    assert [b.notes for b in run(function).branches] == notes


def test_lines_are_those_of_the_test_and_of_the_construct():
    trace = run(zoo.flag)
    text, first = inspect.getsourcelines(zoo.flag)
    made, asked = (first + next(i for i, row in enumerate(text) if part in row) for part in ("bool(", "if positive"))
    assert trace.branches[0].line == made
    assert trace.branches[0].file == zoo.__file__
    assert [edge.line for edge in trace.data.branches.arms] == [asked]


def test_two_modules_of_a_class_are_told_apart():
    trace = tl.trace(zoo.TwoOfAClass(), (torch.ones(2, 4),))
    assert [(b.module, b.arm) for b in trace.branches] == [("a:1", "THEN"), ("b:1", "ELSE")]
    assert arrows(trace) == ["abs>linear THEN", "neg>tanh ELSE"]


def test_ops_of_a_module_called_in_an_arm_are_in_it():
    trace = tl.trace(zoo.ModuleInArm(), (torch.ones(2, 4),))
    assert arrows(trace) == ["input>linear THEN"]


def test_records_read_well():
    trace = run(zoo.chain, HALF)
    second = trace.branches[1]
    place = f"{zoo.__file__}:{second.line}"
    assert repr(second) == f"Branch('{second.label}', elif: True -> ELIF 1, {place})"
    assert trace[second.label].branch == (second,)
    assert trace["tanh_1_5"].arms == (f"ELIF@L{second.line}",)
    assert trace["tanh_1_5"].branch == ()
    assert trace.to_dict()["branches"][1] == {
        "label": second.label,
        "construct": "elif",
        "value": True,
        "file": zoo.__file__,
        "line": second.line,
    }


TEXT = """
import torch

def forward(x):
    if x.sum() > 0:
        return torch.relu(x)
    return x
"""


def load(text, filename):
    space = {}
    exec(compile(text, filename, "exec"), space)
    return space["forward"]


def test_without_source_a_test_is_a_bare_bool():
    trace = run(load(TEXT, "<nowhere>"))
    assert facts_of(trace) == [("bool", True, None, "")]
    assert arrows(trace) == []
    assert (trace.branches[0].file, trace.branches[0].line) == ("<nowhere>", 5)
    assert trace.branches[0].label not in trace.orphans


def test_not_in_says_that_it_is_turned_round(tmp_path):
    path = tmp_path / "absent.py"
    path.write_text(TEXT.replace("x.sum() > 0", "x.sum() not in [x.max() - 100]"))
    trace = run(load(path.read_text(), str(path)))
    (test,) = trace.data.branches
    assert (test.value, test.outcome, test.arm, test.notes) == (False, True, "THEN", ("in", "not"))


def test_a_cell_in_memory_has_a_source():
    name = "<cell 1 of a test>"
    linecache.cache[name] = (len(TEXT), None, TEXT.splitlines(keepends=True), name)
    try:
        assert facts_of(run(load(TEXT, name))) == [("if", True, True, "THEN")]
    finally:
        del linecache.cache[name]


@pytest.mark.parametrize(
    ("after", "construct"),
    [
        (TEXT, "if"),
        (TEXT + "# more\n", "if"),
        ("\n\n" + TEXT, "bool"),
        (TEXT.replace("x.sum() > 0", "x.sum().sqrt() > 0"), "bool"),
        (TEXT.replace("if x", "if x x"), "bool"),
        (None, "bool"),
    ],
)
def test_a_file_edited_since_is_read_only_if_it_still_fits(tmp_path, after, construct):
    path = tmp_path / "net.py"
    path.write_text(TEXT)
    trace = run(load(TEXT, str(path)))
    if after is None:
        path.unlink()
    else:
        path.write_text(after)
    assert trace.branches[0].construct == construct


def test_a_changed_file_is_parsed_again(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(TEXT)
    assert run(load(TEXT, str(path))).branches[0].line == 5
    moved = "\n" + TEXT
    path.write_text(moved)
    os.utime(path, ns=(1, 1))
    assert (run(load(moved, str(path))).branches[0].construct, run(load(moved, str(path))).branches[0].line) == (
        "if",
        6,
    )


def test_sources_are_read_only_when_asked_and_once(monkeypatch):
    opened = []
    plain = sources._parse

    def counted(filename, text):
        opened.append(filename)
        return plain(filename, text)

    monkeypatch.setattr(sources, "_parse", counted)
    monkeypatch.setattr(sources, "_parsed", {})
    first, second = run(zoo.chain), run(zoo.nested)
    assert opened == []
    assert first.orphans == ()
    assert opened == []
    assert (first.branches[0].construct, second.branches[0].construct) == ("if", "if")
    assert opened == [zoo.__file__]


def test_a_trace_with_unread_branches_does_not_keep_its_model():
    model = zoo.ModuleInArm()
    gone = weakref.ref(model)
    data = tl.trace(model, (torch.ones(2, 4),), save="none").data
    del model
    gc.collect()
    assert gone() is None
    assert data.branches[0].arm == "THEN"


def test_a_long_chain_of_elif_and_deep_nesting_do_not_recurse(tmp_path):
    arms = "".join(f"    elif m > {-k}:\n        return x + {k}\n" for k in range(1, 150))
    text = f"def forward(x):\n    m = x.sum()\n    if m > 9:\n        return x\n{arms}"
    path = tmp_path / "long.py"
    path.write_text(text)
    trace = run(load(text, str(path)), torch.full((2, 4), -10.0))
    assert len(trace.branches) == 82
    assert arrows(trace) == ["input>add ELIF81"]


def test_a_big_function_whose_jumps_are_long_is_attributed(tmp_path):
    body = "".join(f"        x = x + {k}\n" for k in range(400))
    text = f"def forward(x):\n    if x.sum() > 0:\n{body}    else:\n        x = x - 1\n    return x\n"
    path = tmp_path / "big.py"
    path.write_text(text)
    trace = run(load(text, str(path)))
    assert facts_of(trace) == [("if", True, True, "THEN")]
    assert arrows(trace) == ["input>add THEN"]
