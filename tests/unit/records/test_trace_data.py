"""Derived columns of a trace, on real recordings."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo
from torchlens.records.trace_data import Deferred


def data_of(model, *args):
    return tl.trace(model, args, save="none").data


def test_deferred_rows_are_computed_once():
    asked = []
    column = Deferred(3, lambda i: asked.append(i) or i * 2)
    assert [column[2], column[-1], column[0]] == [4, 4, 0]
    assert asked == [2, 0]
    assert list(column) == [0, 2, 4]
    with pytest.raises(IndexError):
        column[3]


def test_ancestors_and_orphans():
    class Side(nn.Module):
        def forward(self, x):
            lonely = torch.ones(2) * 3
            torch.zeros(1).add(lonely[0])
            dead_end = x - 1
            used = torch.full((2,), 2.0)
            return x * used, dead_end.shape

    data = data_of(Side(), torch.ones(2))
    flags = {
        label: (data.from_input[i], data.orphan[i])
        for i, label in enumerate(data.nodes.label)
        if data.nodes.kind[i] == "op"
    }
    assert [label for label, (_, orphan) in flags.items() if orphan] == [
        "ones_1_1", "mul_1_2", "zeros_1_3", "getitem_1_4", "add_1_5",
    ]  # fmt: skip
    assert flags["sub_1_6"] == (True, False)
    assert flags["full_1_7"] == (False, False)


def test_a_test_that_steers_is_no_orphan():
    class Steered(nn.Module):
        def forward(self, x):
            if torch.ones(1).sum() > 0:
                return x + 1
            return x

    data = data_of(Steered(), torch.ones(2))
    assert not any(data.orphan)


def test_totals_count_each_op_once():
    data = data_of(zoo.Conv().train(), torch.randn(2, 3, 8, 8))
    totals = data.totals
    assert totals["ops"] == len(data.op_indexes) == 8
    assert totals["params"] == 4 * 3 * 9 + 4 + 8 + 4 * 2 + 2
    conv = 2 * 4 * 8 * 8 * 4
    assert totals["output_bytes"] == 3 * conv + 8 + 2 * (2 * 4 * 4 * 4 * 4) + 2 * 4 * 4 + 2 * 2 * 4
    assert totals["time_s"] > 0


def test_rows_are_cached_objects():
    data = data_of(zoo.Loop(), torch.randn(2, 4))
    record = data.record(5)
    assert data.record(5) is record
    assert record.label == data.nodes.label[5]
    assert data.record(data.index_of["linear_2_3:2"]).module_stack == ("rec:2",)


def test_parents_always_come_first():
    data = data_of(zoo.Attention(), torch.randn(1, 3, 8))
    assert all(ref.node < i for i, refs in enumerate(data.nodes.parents) for ref in refs)
    for i, children in enumerate(data.children):
        assert all(i in [ref.node for ref in data.nodes.parents[c]] for c in children)


def test_totals_of_unknown_counts_are_none():
    class Distance(nn.Module):
        def forward(self, x):
            return torch.cdist(x, x, p=3.0)

    totals = data_of(Distance(), torch.ones(2, 2)).totals
    assert totals["flops"] is None
    assert totals["macs"] is None
    assert totals["flops_backward"] is None
    assert (totals["flops_unknown_ops"], totals["flops_backward_unknown_ops"]) == (1, 1)
    assert totals["time_s"] > 0


def test_totals_say_how_many_ops_a_sum_lacks():
    class Mixed(nn.Module):
        def forward(self, x):
            return torch.cdist(x @ x, x, p=3.0) + 1

    data = data_of(Mixed(), torch.ones(4, 4))
    totals = data.totals
    assert (totals["flops"], totals["macs"], totals["flops_backward"]) == (2 * 64 + 16, 64, 4 * 64 + 16)
    assert (totals["flops_unknown_ops"], totals["time_unknown_ops"]) == (1, 0)
    assert [data.nodes.func[i] for i in data.unknown_flops] == ["cdist"]
    assert (totals["autograd_bytes"], totals["autograd_unknown_ops"]) == (None, None)


def test_columns_that_nobody_measured_hold_none():
    data = data_of(zoo.Loop(), torch.randn(2, 4))
    assert data.nodes.stats == data.nodes.num_autograd_tensors == data.nodes.autograd_memory == [None] * len(data.nodes)
    assert (data.record(1).stats, data.record(1).cost.autograd_memory) == (None, None)
