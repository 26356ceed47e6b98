"""Declared shapes become tensors, from a stream of their own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchlens.base.errors import InputError
from torchlens.inputs.synthesize import synthesize


def test_one_shape_is_one_tensor_and_streams_stay():
    model = nn.Linear(4, 2)
    stream = torch.get_rng_state()
    (x,), kwargs, provenance = synthesize(model, (3, 4))
    assert (tuple(x.shape), x.dtype, kwargs) == ((3, 4), torch.float32, {})
    assert 0 <= float(x.min()) <= float(x.max()) < 1
    assert torch.equal(torch.get_rng_state(), stream)
    assert (provenance.origin, provenance.seed) == ("declared", 0)
    again = synthesize(model, (3, 4))[0][0]
    assert torch.equal(x, again)


def test_several_shapes_and_keywords():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 2)

        def forward(self, input_ids, attention_mask=None, pixel_values=None):
            pass

    args, _, _ = synthesize(Two(), [(1, 2), (1, 2)])
    assert [a.dtype for a in args] == [torch.int64, torch.int64]
    _, kwargs, _ = synthesize(Two(), {"input_ids": (1, 90), "attention_mask": (1, 4), "pixel_values": (1, 3)})
    assert int(kwargs["input_ids"].max()) < 7
    assert kwargs["attention_mask"].tolist() == [[1, 1, 1, 1]]
    assert kwargs["pixel_values"].dtype == torch.float32


def test_half_precision_models_get_half_inputs():
    assert synthesize(nn.Linear(4, 2).half(), (1, 4))[0][0].dtype == torch.float16


@pytest.mark.parametrize("shape", [(), (0, 3), (-1,), (True, 2), (1.5,), "abc", [[]], 7])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(InputError) as caught:
        synthesize(nn.Linear(4, 2), shape)
    assert caught.value.code == "input_shape_invalid"


def test_unknown_keywords_and_silent_models_are_refused():
    with pytest.raises(InputError) as caught:
        synthesize(nn.Linear(4, 2), {"inputs": (1, 4)})
    assert caught.value.code == "input_shape_unknown_binding"
    assert "'input'" in str(caught.value)
    with pytest.raises(InputError) as caught:
        synthesize(nn.ReLU(), (1, 4))
    assert caught.value.code == "input_dtype_ambiguous"
