"""Each structural rule is really checked."""

from __future__ import annotations

import pytest
import torch

import torchlens as tl
from tests.models import recording as zoo
from torchlens.base.errors import CaptureError
from torchlens.records.check import check
from torchlens.records.ops import ArgRef


def broken_parent(data):
    data.nodes.parents[1] = (ArgRef(len(data.nodes) - 1, 0, (0,)),)


def broken_output(data):
    last = len(data.nodes) - 1
    data.nodes.parents[last] = (ArgRef(data.nodes.parents[last][0].node, 5, (0,)),)


def broken_label(data):
    data.nodes.label[2] = data.nodes.label[1]


def broken_column(data):
    data.nodes.inplace.pop()


def broken_layer(data):
    data.layers[1].nodes = ()


def broken_call(data):
    data.calls[1].ops = ()


def broken_param(data):
    data.nodes.params[data.params[0].used_by[0]] = ()


def broken_kind(data):
    data.nodes.kind[1] = "thing"


@pytest.mark.parametrize(
    "damage",
    [broken_parent, broken_output, broken_label, broken_column, broken_layer, broken_call, broken_param, broken_kind],
)
def test_damage_is_found(damage):
    data = tl.trace(zoo.Loop(), torch.randn(2, 4), save="none").data
    check(data)
    damage(data)
    with pytest.raises(CaptureError) as caught:
        check(data)
    assert caught.value.code == "trace_inconsistent"
