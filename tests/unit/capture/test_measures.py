"""What was asked for is in the columns, what was not is None, and neither changes the trace otherwise."""

from __future__ import annotations

import torch

import torchlens as tl
from tests.models import recording as zoo

BOTH = tl.options.CaptureOptions(save="none", out_stats=True, saved_for_backward=True)


def test_nothing_is_measured_unasked():
    nodes = tl.trace(zoo.Loop(), torch.randn(2, 4), save="none").data.nodes
    for column in (nodes.stats, nodes.num_autograd_tensors, nodes.autograd_memory):
        assert set(column) == {None}


def test_every_op_is_measured_when_asked():
    trace = tl.trace(zoo.Attention().train(), torch.randn(2, 5, 8), capture=BOTH)
    trace.check()
    assert None not in trace.data.nodes.stats
    for op in trace.ops:
        if not op.synthetic:
            assert op.num_autograd_tensors >= 0
            assert op.cost.autograd_memory == op.autograd_memory
    assert all(node.num_autograd_tensors is None for node in trace.nodes if node.kind != "op")


def test_the_facts_are_the_same_with_and_without():
    torch.manual_seed(0)
    model, x = zoo.Conv().eval(), torch.randn(2, 3, 8, 8)
    plain, measured = tl.trace(model, x, save="none").to_dict(), tl.trace(model, x, capture=BOTH).to_dict()
    for facts in (plain, measured):
        for node in facts["nodes"]:
            del node["time_s"]
        for name in ("time_s", "autograd_bytes", "autograd_unknown_ops"):
            del facts["totals"][name]
    assert plain == measured


def test_a_run_that_stopped_keeps_what_was_measured():
    try:
        tl.trace(zoo.Fails(), torch.randn(2, 4), capture=BOTH)
    except RuntimeError as error:
        trace = error.partial_trace
    assert [op.stats.numel for op in trace.ops] == [8, 8]
    assert [op.num_autograd_tensors for op in trace.ops] == [1, 1]
