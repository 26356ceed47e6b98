"""The size rules of the house: a module serves one noun or verb, a function fits a screen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "torchlens").rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

# What may be longer, with the reason beside it.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_modules_to_look_at():
    assert len(MODULES) > 40


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_short_and_says_what_it_promises(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree), "a module starts with what it promises and what it must not know"
    lines = source.count("\n")
    assert lines <= MAX_MODULE_LINES or name_of(path) in LONG_MODULES, f"{lines} lines: does it serve two nouns?"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_fit_a_screen(path):
    long = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            key = f"{name_of(path)}:{node.name}"
            if lines > MAX_FUNCTION_LINES and key not in LONG_FUNCTIONS:
                long[key] = lines
    assert not long, "a step of these deserves a name of its own"


def test_the_exceptions_are_still_needed():
    long_modules = {
        name_of(path) for path in MODULES if path.read_text(encoding="utf-8").count("\n") > MAX_MODULE_LINES
    }
    assert set(LONG_MODULES) <= long_modules
    for key in LONG_FUNCTIONS:
        path, function = key.split(":")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
        assert any(node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES for node in found), key


def test_no_module_bears_the_name_of_a_public_callable():
    import torchlens

    # Importing such a submodule would put it in the place of the callable.
    names = {path.stem for path in (ROOT / "torchlens").glob("*.py")}
    names |= {path.name for path in (ROOT / "torchlens").iterdir() if path.is_dir()}
    assert not names & {name for name in torchlens.__all__ if callable(getattr(torchlens, name))}
