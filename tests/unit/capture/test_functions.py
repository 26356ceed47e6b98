"""How torch's functions are classified, and how their bodies are opened."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torchlens.capture.functions import OPEN, READ, RECORD, SKIP, Bodies, info_of


@pytest.mark.parametrize(
    ("func", "name", "action", "mutates"),
    [
        (torch.add, "add", RECORD, False),
        (torch.Tensor.add_, "add_", RECORD, True),
        (torch.Tensor.__setitem__, "__setitem__", RECORD, True),
        (torch.Tensor.shape.__get__, "shape", SKIP, False),
        (torch.Tensor.T.__get__, "T", RECORD, False),
        (torch.Tensor.data.__set__, "set_data", RECORD, True),
        (torch.Tensor.__bool__, "__bool__", READ, False),
        (torch.Tensor.size, "size", SKIP, False),
        (F.interpolate, "interpolate", OPEN, False),
        (F.max_pool2d, "max_pool2d", OPEN, False),
        (torch.Tensor.__rsub__, "__rsub__", OPEN, False),
        (torch.ops.aten.add_.Tensor, "add_", RECORD, True),
        (torch.ops.aten.add.Tensor, "add", RECORD, False),
    ],
)
def test_classification(func, name, action, mutates):
    info = info_of(func)
    assert (info.name, info.action, info.mutates) == (name, action, mutates)


def test_an_opened_body_computes_the_same():
    x = torch.randn(1, 2, 8, 8)
    bodies = Bodies()
    assert torch.equal(bodies.of(F.max_pool2d)(x, 2), F.max_pool2d(x, 2))
    assert torch.equal(bodies.of(torch.Tensor.__rsub__)(x, 1), 1 - x)


def test_torch_itself_is_not_changed():
    before = F.interpolate.__globals__["has_torch_function_unary"]
    Bodies().of(F.interpolate)
    assert F.interpolate.__globals__["has_torch_function_unary"] is before
