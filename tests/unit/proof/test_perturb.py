"""An argument that matters is shown to matter; one that cannot is not."""

from __future__ import annotations

import pytest
import torch

from torchlens.proof.notes import Note
from torchlens.proof.perturb import Perturbation, known_unused


def shown(func, *args, **kwargs):
    note = Note(func, args, kwargs)
    trial = Perturbation(note, {leaf: leaf.live for leaf in note.leaves})
    return [trial.shows(leaf) for leaf in note.leaves]


X, NEGATIVE, MASK = torch.tensor([[1.0, -2.0], [0.5, 3.0]]), torch.full((2, 2), -50.0), torch.tensor([True, True])


@pytest.mark.parametrize(
    ("func", "args", "expected"),
    [
        (torch.add, (X, X), [True, True]),
        (torch.relu, (NEGATIVE,), [True]),
        (torch.softmax, (X, -1), [True]),
        (torch.mul, (X, torch.zeros(2, 2)), [True, True]),
        (torch.gt, (NEGATIVE, 0), [True]),
        (torch.where, (MASK, X, X + 1), [True, True, True]),
        (torch.argmax, (X,), [True]),
        (torch.index_select, (X, 0, torch.tensor([0, 1])), [True, True]),
        (torch.stack, ([X, X],), [True, True]),
        (torch.zeros_like, (X,), [False]),
        (torch.Tensor.view_as, (X, X), [True, False]),
        (torch.Tensor.add_, (X, X), [True, True]),
        (torch.Tensor.fill_, (X, 2.0), [False]),
        (torch.Tensor.copy_, (X, X + 1), [False, True]),
        (torch.bernoulli, (torch.full((50,), 0.5),), [True]),
        (lambda x, y: x, (X, X), [True, False]),
    ],
)
def test_arguments(func, args, expected):
    before = X.clone()
    assert shown(func, *args) == expected
    assert torch.equal(X, before)


def test_a_call_that_raises_shows_nothing():
    assert shown(lambda x: x @ torch.ones(7), X) == [False]


def test_known_functions():
    assert known_unused("zeros_like", (0,))
    assert known_unused("expand_as", (1,))
    assert not known_unused("expand_as", (0,))
    assert known_unused("__setitem__", (0,))
    assert not known_unused("__setitem__", (2,))
    assert known_unused("add", ("out",))
    assert not known_unused("add", (0,))


def test_bytes_that_another_op_wrote():
    base = torch.arange(6.0)
    note = Note(torch.sum, (base,), {})
    (leaf,) = note.leaves
    trial = Perturbation(note, {leaf: base})
    assert trial.shows_write(leaf, [base[2:4]])
    assert not trial.shows_write(leaf, [torch.ones(2)])
    part = Note(torch.sum, (base[:2],), {})
    (leaf,) = part.leaves
    assert not Perturbation(part, {leaf: leaf.live}).shows_write(leaf, [base[2:4]])
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
