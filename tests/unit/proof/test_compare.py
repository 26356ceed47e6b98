"""Values are compared exactly where that is due, and never where there are none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchlens.proof.compare import dense, difference, no_values, same_bits

NAN = float("nan")


@pytest.mark.parametrize(
    ("got", "want", "words"),
    [
        (torch.zeros(2), torch.zeros(3), "shape (2,) instead of (3,)"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), "dtype float32 instead of float64"),
        (torch.zeros(2), torch.zeros(2).to_sparse(), "layout"),
        (torch.zeros(2), torch.tensor([0.0, 0.5]), "values up to 0.5 apart, at a size of 0.5"),
        (torch.zeros(2), torch.tensor([0.0, NAN]), "values up to inf apart"),
        (torch.tensor([1, 2, 3]), torch.tensor([1, 3, 2]), "2 of 3 values"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 values"),
        (None, torch.zeros(2), "NoneType instead of a tensor"),
        (torch.ones(2), torch.ones(2) + 1e-6, ""),
        (torch.ones(2).double(), torch.ones(2).double() + 1e-6, "apart"),
        (torch.tensor([NAN, torch.inf]), torch.tensor([NAN, torch.inf]), ""),
        (torch.ones(2).half(), torch.ones(2).half() * 1.001, ""),
        (torch.ones(2).to(torch.float8_e4m3fn), torch.zeros(2).to(torch.float8_e4m3fn), "apart"),
        (torch.ones(2) * 1j, torch.ones(2) * 2j, "apart"),
    ],
)
def test_differences(got, want, words):
    assert words in difference(got, want)
    assert bool(difference(got, want)) == bool(words)


def test_same_bits():
    assert same_bits(torch.tensor([NAN, 1.0]), torch.tensor([NAN, 1.0]))
    assert not same_bits(torch.ones(2), torch.ones(2) + 1e-6)
    assert not same_bits(torch.ones(2), torch.ones(3))
    assert same_bits(torch.ones(2).to_sparse(), torch.ones(2).to_sparse())
    assert dense(torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)).tolist() == [1.0, 1.0]


def test_what_has_no_values():
    seen = []
    torch.vmap(lambda t: seen.append(no_values(t)) or t)(torch.ones(2))
    assert "function transform" in seen[0]
    assert "lazy" in no_values(nn.LazyLinear(2).weight)
    assert "nested" in no_values(torch.nested.nested_tensor([torch.ones(1)]))
    assert "meta" in no_values(torch.ones(2, device="meta"))
    assert no_values(torch.ones(2)) == ""
    assert no_values(nn.Parameter(torch.ones(2))) == ""

    class Mine(torch.Tensor):
        pass

    assert "class Mine" in no_values(torch.ones(2).as_subclass(Mine))
