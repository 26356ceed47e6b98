"""The family table: every name exists in torch, rows are complete, spellings meet in one row."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torchvision.ops

from torchlens.ops.arguments import DERIVED
from torchlens.ops.families import FAMILIES, Same, base_name, family_of, is_commutative
from torchlens.ops.flops import FORMULAS

# Ours: the op that a recorder adds for a module without an op of its own.
OURS = {"identity"}
NAMESPACES = (torch, torch.Tensor, F, torch._C._nn, torch._VF, torchvision.ops)
SUBMODULES = ("special", "linalg", "fft")
NAMES = [(family.name, function) for family in FAMILIES for function in family.functions]


def exists(function: str) -> bool:
    """Whether torch has this name: as a function, a method, an operator, an in-place method or in a submodule."""
    spellings = (function, f"{function}_", f"__{function}__")
    if any(hasattr(space, spelling) for space in NAMESPACES for spelling in spellings):
        return True
    module, _, rest = function.partition("_")
    return module in SUBMODULES and hasattr(getattr(torch, module), rest)


@pytest.mark.parametrize(("family", "function"), NAMES)
def test_every_listed_function_exists(family: str, function: str) -> None:
    assert function in OURS or exists(function), f"{function} in {family}"


def test_the_check_can_fail() -> None:
    assert not exists("conv9d")
    assert not exists("special_nothing")


def test_no_function_stands_in_two_rows() -> None:
    names = [function for _, function in NAMES]
    assert len(names) == len(set(names))
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_every_name_is_its_own_base_name() -> None:
    assert [name for _, name in NAMES if base_name(name) != name] == []


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_rows_refer_to_what_exists(family) -> None:
    assert family.formula is None or family.formula in FORMULAS
    assert not family.derive or family.derive in DERIVED
    assert family.backward > 0
    assert family.per > 0
    assert family.functions
    shown = family.shown or {}
    assert set(family.redundant) <= set(shown)
    assert all(default.argument in shown for default in shown.values() if isinstance(default, Same))


def test_no_rule_is_left_unused() -> None:
    assert {family.formula for family in FAMILIES if family.formula} == set(FORMULAS)
    assert {family.derive for family in FAMILIES if family.derive} == set(DERIVED)


@pytest.mark.parametrize(
    ("spelling", "base"),
    [
        ("relu", "relu"),
        ("relu_", "relu"),
        ("__iadd__", "add"),
        ("__radd__", "add"),
        ("__add__", "add"),
        ("add_", "add"),
        ("__rsub__", "rsub"),
        ("__truediv__", "div"),
        ("__idiv__", "div"),
        ("__rdiv__", "rdiv"),
        ("__matmul__", "matmul"),
        ("__ipow__", "pow"),
        ("__getitem__", "getitem"),
        ("__eq__", "eq"),
        ("__rand__", "bitwise_and"),
        ("rand", "rand"),
        ("mm.default", "mm"),
        ("_weight_norm", "_weight_norm"),
        ("__", "__"),
        ("linalg_vector_norm", "linalg_vector_norm"),
        ("__invert__", "bitwise_not"),
        ("T", "T"),
    ],
)
def test_spellings_meet_in_one_base_name(spelling: str, base: str) -> None:
    assert base_name(spelling) == base


def test_unknown_functions_have_no_family() -> None:
    assert family_of("my_kernel") is None
    assert not is_commutative("my_kernel")


def test_exactly_the_symmetric_operations_are_commutative() -> None:
    yes = [
        "add",
        "__iadd__",
        "add_",
        "__radd__",
        "mul",
        "__imul__",
        "eq",
        "__ne__",
        "maximum",
        "minimum",
        "__and__",
        "logical_or",
    ]
    no = ["sub", "__rsub__", "div", "pow", "gt", "matmul", "cat", "where", "lerp", "max"]
    assert [name for name in yes if not is_commutative(name)] == []
    assert [name for name in no if is_commutative(name)] == []
