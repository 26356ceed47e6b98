"""Selectors: what each means in a trace, how they combine, and how a name that nothing bears is refused."""

from __future__ import annotations

import pytest

from tests import builders
from torchlens.base.errors import UnknownNameError
from torchlens.records.selectors import Selector, func, in_module, label, module, select
from torchlens.records.trace_data import TraceData


def labels(data: TraceData, selector: Selector | str) -> list[str]:
    return [data.nodes.label[i] for i in select(data, selector)]


def test_a_module_means_what_it_returned() -> None:
    data = builders.residual()
    assert labels(data, module("blocks.0")) == labels(data, module("@blocks.0")) == ["add_1_6"]
    assert labels(data, module("blocks.1.mlp.fc1")) == ["linear_4_8"]
    assert labels(data, module("self")) == labels(data, module("")) == ["linear_6_12"]


def test_in_a_module_are_its_ops_and_those_below() -> None:
    data = builders.residual()
    assert labels(data, in_module("blocks.0.mlp")) == ["linear_2_3", "relu_1_4", "linear_3_5"]
    assert labels(data, in_module("blocks.0")) == ["layernorm_1_2", "linear_2_3", "relu_1_4", "linear_3_5", "add_1_6"]
    assert len(select(data, in_module("self"))) == len(data.op_indexes)


def test_one_call_of_a_module_can_be_named() -> None:
    data = builders.loop(3)
    assert labels(data, module("inp")) == ["linear_1_2:1", "linear_1_2:2", "linear_1_2:3"]
    assert labels(data, in_module("inp:2")) == labels(data, module("inp:2")) == ["linear_1_2:2"]
    with pytest.raises(UnknownNameError, match="called 3 times") as caught:
        select(data, module("inp:4"))
    assert caught.value.code == "selector_no_match"


def test_a_function_is_found_by_its_name_and_by_its_type() -> None:
    data = builders.demo()
    assert labels(data, func("max_pool2d")) == labels(data, func("maxpool2d"))
    assert len(select(data, func("add"))) == len(select(data, func("add_"))) == 2
    with pytest.raises(UnknownNameError, match="conv2d"):
        select(data, func("conv3d"))


def test_a_label_means_its_node_or_all_passes() -> None:
    data = builders.loop(3)
    assert labels(data, label("tanh_1_5")) == ["tanh_1_5:1", "tanh_1_5:2", "tanh_1_5:3"]
    assert labels(data, label("tanh_1_5:2")) == ["tanh_1_5:2"]
    assert labels(builders.chain(), label("relu_1_2:1")) == ["relu_1_2"]
    with pytest.raises(UnknownNameError, match="tanh_1_5"):
        select(data, label("tanh_1_6"))
    with pytest.raises(UnknownNameError, match="selector_no_match"):
        select(data, label("tanh_1_5:9"))


def test_selectors_combine() -> None:
    data = builders.residual()
    norms, inside = func("layer_norm"), in_module("blocks.0")
    assert labels(data, norms & inside) == ["layernorm_1_2"]
    assert labels(data, norms | label("input_1")) == ["input_1", "layernorm_1_2", "layernorm_2_7"]
    assert set(select(data, ~inside)) == set(range(len(data.nodes))) - set(select(data, inside))
    assert repr((norms | ~inside) & label("x")) == "((func('layer_norm') | ~in_module('blocks.0')) & label('x'))"


def test_a_combination_of_nothing_is_refused_and_a_wrong_name_in_it_too() -> None:
    data = builders.residual()
    with pytest.raises(UnknownNameError, match="selects no node"):
        select(data, in_module("blocks.0") & in_module("blocks.1"))
    with pytest.raises(UnknownNameError, match=r"blocks\.1"):
        select(data, func("relu") | module("blocks.11"))


def test_plain_text_is_a_label_or_else_an_address() -> None:
    data = builders.residual()
    assert labels(data, "relu_1_4") == ["relu_1_4"]
    assert labels(data, "blocks.0") == labels(data, "@blocks.0:1") == ["add_1_6"]
    with pytest.raises(UnknownNameError, match=r"blocks\.0"):
        select(data, "blocks.9")


def test_a_module_that_never_ran_is_refused() -> None:
    data = builders.residual()
    data.modules[2].calls = ()
    with pytest.raises(UnknownNameError, match="never called"):
        select(data, in_module(data.modules[2].address))


def test_each_node_comes_once_and_in_order() -> None:
    data = builders.residual()
    found = select(data, in_module("blocks.0") | in_module("blocks.0.mlp") | func("relu"))
    assert list(found) == sorted(set(found))
