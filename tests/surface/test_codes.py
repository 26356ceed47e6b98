"""Every error and warning code: known where it is used, used where it is known, and raised by a test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlens.base import errors
from torchlens.base.codes import CODES
from torchlens.settings.options import options, validate_option

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "torchlens"
FUNNEL = {"fail", "warn", "error"}
EXPECTING = {"raises", "warns"}


def sources(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if path != PACKAGE / "base" / "codes.py"]


def strings(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def codes_used(path: Path) -> set[str]:
    """First arguments of the calls that go through the funnel of `base.errors`, where they are literals."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "torchlens.base.errors"
        for alias in node.names
        if alias.name in FUNNEL
    }
    used = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args):
        by_name = isinstance(call.func, ast.Name) and call.func.id in imported
        by_module = (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in FUNNEL
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "errors"
        )
        if (by_name or by_module) and isinstance(call.args[0], ast.Constant):
            used.add(call.args[0].value)
    return used


def raised(path: Path) -> set[str]:
    """The texts of the tests in a file that expect a refusal or a warning, and the tables that tests take cases from.

    A test expects one if it calls something of EXPECTING, or a helper of its file that does. Comments and docstrings
    say nothing.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.List, ast.Tuple, ast.Dict))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    expecting = EXPECTING | {name for name, node in functions.items() if called(node) & EXPECTING}
    found: set[str] = set()
    for name, node in functions.items():
        used = {inner.id for part in node.decorator_list for inner in ast.walk(part) if isinstance(inner, ast.Name)}
        if name.startswith("test_"):
            parts = [tables[table] for table in used & set(tables)] + ([node] if called(node) & expecting else [])
            found.update(text for part in parts for text in constants(part))
    return found


def called(function: ast.FunctionDef) -> set[str]:
    """The last names of what a function calls: `raises` for pytest.raises."""
    names = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {name.rpartition(".")[2] for name in names}


def constants(tree: ast.AST) -> set[str]:
    """The string constants below a node that are values, not docstrings."""
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in statements)
    return {node.value for node in texts if isinstance(node.value, str)}


def test_a_code_counts_where_a_test_expects_it(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import pytest\nTABLE = [('table_code', 1)]\nUNUSED = ['unused_code']\n"
        "def refuse(code):\n    with pytest.raises(ValueError):\n        pass\n"
        "def test_a():\n    'doc_code'\n    # comment_code\n    with pytest.raises(ValueError, match='raised_code'):\n"
        "        pass\n"
        "def test_b():\n    assert 'plain_code'\n"
        "def test_c():\n    refuse('helper_code')\n"
        "@pytest.mark.parametrize('code', TABLE)\ndef test_d(code):\n    assert code != 'other_code'\n"
    )
    found = {text for text in raised(tmp_path / "test_x.py") if text.endswith("_code")}
    assert found == {"raised_code", "helper_code", "table_code"}


def test_the_search_finds_calls():
    assert len(set().union(*map(codes_used, sources(PACKAGE)))) > 20


@pytest.mark.parametrize("path", sources(PACKAGE), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_unknown_code_is_used(path):
    assert not codes_used(path) - set(CODES)


def test_every_option_names_a_known_code():
    assert not {option.code for option in options().values()} - set(CODES)


def test_every_code_is_used_in_the_package():
    # The code of an option is made from its name where the option does not give one.
    found = set().union(*map(strings, sources(PACKAGE))) | {option.code for option in options().values()}
    assert not [code for code in CODES if code not in found]


@pytest.mark.parametrize("option", options().values(), ids=lambda option: option.name)
def test_every_option_refuses_what_is_no_value_of_it(option):
    with pytest.raises(errors.TorchLensError) as caught:
        validate_option(option.name, object())
    assert caught.value.code == option.code
    assert option.name in str(caught.value)


def test_every_code_has_a_raising_test():
    tests = [path for path in sources(ROOT / "tests") if path.parent != Path(__file__).parent]
    texts = "\n".join(set().union(*map(raised, tests)))
    raised_above = {option.code for option in options().values()}
    assert not [code for code in CODES if code not in texts and code not in raised_above]


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.name)
def test_rows_are_complete(row):
    kind = getattr(errors, row.kind)
    assert issubclass(kind, errors.TorchLensError | errors.TorchLensWarning)
    assert row.name == row.name.lower()
    assert "_" in row.name
    for text in (row.summary, row.remedy):
        assert text
        assert not text.endswith("."), "the funnel ends the sentence"


def test_the_text_has_one_shape():
    error = errors.error("draw_depth_invalid", "depth=0 is too small", allowed=["1", "2"], got=0)
    assert str(error) == "[draw_depth_invalid] depth=0 is too small. Allowed: 1, 2. Fix: pass depth=1 or more."
    assert (error.code, error.fields) == ("draw_depth_invalid", {"got": 0})
    assert isinstance(error, ValueError)
