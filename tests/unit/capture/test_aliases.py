"""An unknown tensor is known by the memory it lies in."""

from __future__ import annotations

import weakref

import numpy as np
import torch

from torchlens.capture.aliases import Aliases, span
from torchlens.capture.events import Known
from torchlens.records.tensors import TensorSpec


def table(*tensors: torch.Tensor) -> Aliases:
    """Tensors as outputs of events 0, 1, 2, ..."""
    spec = TensorSpec((1,), "float32", "cpu", 4, False)
    known = {id(t): Known(weakref.ref(t), node, 0, t._version, spec, 0, ()) for node, t in enumerate(tensors)}
    aliases = Aliases(known)
    aliases.fresh.update(known)
    return aliases


def test_the_same_extent_wins_over_a_later_view() -> None:
    base = torch.zeros(4, 4)
    row = base[1]
    aliases = table(base, row)
    assert aliases.find(torch.Tensor._make_subclass(torch.Tensor, base)).node == 0
    assert aliases.find(base[1].detach()).node == 1
    assert aliases.find(base[0].detach()).node == 0


def test_other_memory_is_nobodys() -> None:
    base = torch.zeros(4)
    aliases = table(base)
    assert aliases.find(torch.zeros(4)) is None
    assert aliases.find(torch.empty(0)) is None
    assert aliases.find(torch.zeros(2, device="meta")) is None


def test_a_dead_tensor_is_not_found_by_its_memory() -> None:
    base = torch.zeros(4)
    array = base.numpy()
    aliases = table(base)
    assert aliases.find(torch.from_numpy(array)).node == 0
    del base
    assert aliases.find(torch.from_numpy(array)) is None


def test_an_array_keeps_what_it_was_given_known() -> None:
    base = torch.zeros(4)
    array = base.numpy()
    aliases = table(base)
    aliases.hold(base, array)
    gone = weakref.ref(base)
    del base
    assert aliases.find(torch.from_numpy(array[1:])).node == 0
    del array
    assert gone() is None


def test_span_is_what_may_be_touched() -> None:
    x = torch.zeros(4, 4)
    first, last = span(x[:, 1])
    assert first == x.data_ptr() + 4
    assert last - first == (3 * 4 + 1) * 4
    assert span(x.to_sparse()) is None
    assert np.isscalar(first)
