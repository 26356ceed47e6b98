"""Naming rules."""

from __future__ import annotations

import pytest

from torchlens.records.labels import Namer, call_key, op_type, pass_label, split_pass


@pytest.mark.parametrize(
    ("func", "name"),
    [
        ("conv2d", "conv2d"),
        ("relu_", "relu"),
        ("max_pool2d", "maxpool2d"),
        ("adaptive_avg_pool2d", "adaptiveavgpool2d"),
        ("scaled_dot_product_attention", "scaleddotproductattention"),
        ("__getitem__", "getitem"),
        ("__rsub__", "rsub"),
        ("__radd__", "add"),
        ("__iadd__", "iadd"),
        ("__and__", "and"),
        ("zeros_like", "zeroslike"),
        ("T", "t"),
    ],
)
def test_op_type(func, name):
    assert op_type(func) == name


def test_counts_per_type_and_over_all_types():
    namer = Namer()
    assert namer.next("input", stepped=False) == ("input_1", 1, None)
    assert namer.next("linear") == ("linear_1_1", 1, 1)
    assert namer.next("relu") == ("relu_1_2", 1, 2)
    assert namer.next("buffer", stepped=False) == ("buffer_1", 1, None)
    assert namer.next("linear") == ("linear_2_3", 2, 3)


def test_passes_appear_only_where_there_are_several():
    assert pass_label("relu_1_2", 1, 1) == "relu_1_2"
    assert pass_label("relu_1_2", 2, 3) == "relu_1_2:2"
    assert split_pass("relu_1_2:2") == ("relu_1_2", 2)
    assert split_pass("relu_1_2") == ("relu_1_2", None)
    assert split_pass("norm.running_mean:1") == ("norm.running_mean", 1)
    assert call_key("", 1) == "self:1"
    assert call_key("a.b", 2) == "a.b:2"
