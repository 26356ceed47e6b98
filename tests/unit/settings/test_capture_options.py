"""Options of a recording are checked when they are made, before anything runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.base.errors import TorchLensError
from torchlens.records.tensors import TensorSpec
from torchlens.settings.capture_options import CaptureOptions, OpFacts, capture_options

WRONG = [
    ("capture_option_invalid", {"random_seed": -1}),
    ("capture_option_invalid", {"random_seed": "7"}),
    ("capture_option_invalid", {"random_seed": 2**63}),
    ("capture_option_invalid", {"warmup": 1.5}),
    ("capture_option_invalid", {"warmup": True}),
    ("capture_option_invalid", {"warmup": -1}),
    ("capture_option_invalid", {"out_stats": 1}),
    ("capture_option_invalid", {"saved_for_backward": None}),
    ("capture_option_unknown", {"warmups": 1}),
    ("trace_save_invalid", {"save": "al"}),
    ("trace_save_invalid", {"save": 3}),
    ("trace_save_invalid", {"save": ["relu_1_2", 3]}),
    ("trace_save_invalid", {"save": [""]}),
    ("trace_save_invalid", {"save": nn.ReLU}),
]


class Never(nn.Module):
    def forward(self, x):
        raise AssertionError("the forward ran")


@pytest.mark.parametrize(("code", "given"), WRONG)
def test_a_wrong_option_is_refused_before_the_forward(code, given):
    with pytest.raises(TorchLensError) as caught:
        tl.trace(Never(), torch.ones(1), capture=given)
    assert caught.value.code == code


def test_capture_is_options_or_a_mapping():
    with pytest.raises(TorchLensError, match="CaptureOptions") as caught:
        tl.trace(Never(), torch.ones(1), capture=3)
    assert caught.value.code == "capture_option_invalid"


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(KeyError, match="perhaps you meant 'out_stats'"):
        capture_options(capture={"out_stat": True})
    with pytest.raises(TypeError):
        CaptureOptions(out_stat=True)


def test_a_single_name_is_told_to_be_a_list():
    with pytest.raises(ValueError, match=r"save=\['relu_1_2'\]"):
        CaptureOptions(save="relu_1_2")


def test_save_wins_over_the_one_in_capture():
    given = CaptureOptions(save="none", warmup=2)
    assert capture_options(None, given) is given
    assert capture_options("all", given) == CaptureOptions(save="all", warmup=2)
    assert capture_options().save == "all"
    assert capture_options(capture={"save": ["a", "b", "a"]}).save == ("a", "b")


def test_options_are_values():
    assert tl.options.CaptureOptions is CaptureOptions
    assert CaptureOptions(warmup=1) == CaptureOptions(warmup=1)
    with pytest.raises(AttributeError):
        CaptureOptions().warmup = 3
    assert not CaptureOptions(save="none").keeps_values
    assert CaptureOptions(save=[]).keeps_values


def test_facts_speak_of_the_first_output_and_add_up_bytes():
    first, second = TensorSpec((2,), "float32", "cpu", 8), TensorSpec((2,), "int64", "cpu", 16)
    facts = OpFacts("op", "max", "max", (first, second), "", (), (), False, "")
    assert (facts.shape, facts.dtype, facts.device, facts.nbytes) == ((2,), "float32", "cpu", 24)
    nothing = OpFacts("op", "f", "f", (), "", (), (), False, "")
    assert (nothing.shape, nothing.dtype, nothing.nbytes) == (None, None, 0)
    unknown = OpFacts("op", "f", "f", (TensorSpec(None, "float32", "cpu", None),), "", (), (), False, "")
    assert unknown.nbytes is None
