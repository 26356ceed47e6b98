"""Reading a trace by name, position and module."""

from __future__ import annotations

import pytest
import torch

import torchlens as tl
from tests.models import recording as zoo


@pytest.fixture(scope="module")
def loop():
    return tl.trace(zoo.Loop(), torch.randn(2, 4))


def test_names_resolve_in_order(loop):
    assert loop["tanh_1_5"].shape == (2, 4)
    assert loop["linear_2_3"].num_passes == 3
    assert loop["linear_2_3:2"].pass_number == 2
    assert loop["zeroslike_1_1:1"].label == "zeroslike_1_1"
    assert loop["rec"].num_calls == 3
    assert loop["@rec"].address == "rec"
    assert loop["self"].address == ""
    assert "tanh_1_5" in loop
    assert "tanh_9_9" not in loop


def test_unknown_names_list_the_nearest(loop):
    with pytest.raises(KeyError, match=r"\[label_not_found\].*tanh_1_5"):
        loop["tanh_1_55"]
    with pytest.raises(KeyError, match="linear_2_3"):
        loop["linear_2_3:9"]


def test_views_by_position_and_name(loop):
    assert len(loop.ops) == len(loop) == 13
    assert loop.ops[0].label == "zeroslike_1_1"
    assert loop.ops[-1].children == ("output_1",)
    assert loop.ops["add_1_4:1"].parents == ("linear_1_2:1", "linear_2_3:1")
    assert [op.label for op in loop.ops[:2]] == ["zeroslike_1_1", "linear_1_2:1"]
    assert loop.nodes[0].kind == "input"
    assert [m.address for m in loop.modules] == ["", "inp", "rec"]
    assert loop.modules["rec"].num_params == 20
    assert loop.modules[0].num_params == 40


def test_fields_that_differ_between_passes_are_refused(loop):
    layer = loop.layers["linear_2_3"]
    assert layer.shape == (2, 4)
    assert layer.total_activation_memory == 3 * 32
    assert layer.total_flops_forward == 3 * 2 * 2 * 4 * 4
    with pytest.raises(tl.TorchLensError) as caught:
        _ = layer.parents
    assert caught.value.code == "layer_pass_ambiguous"
    assert "linear_2_3:1" in str(caught.value)


def test_module_ops_cover_inner_modules():
    trace = tl.trace(zoo.Conv().eval(), torch.randn(1, 3, 8, 8))
    assert trace["features"].ops == ("conv2d_1_1", "batchnorm_1_2", "relu_1_3", "maxpool2d_1_4", "identity_1_5")
    assert trace["features"].children == ("features.0", "features.1", "features.2", "features.3", "features.4")


def test_call_sites_name_the_users_line(loop):
    site = loop["tanh_1_5"].call_site
    assert site.file.endswith("recording.py")
    assert site.function == "Loop.forward"
    assert loop["linear_1_2:1"].call_site == site


def test_a_trace_shows_and_iterates_its_ops(loop):
    assert [op.label for op in loop][:2] == ["zeroslike_1_1", "linear_1_2:1"]
    assert repr(loop.ops).startswith("[Op('zeroslike_1_1'")
    assert repr(loop.ops).endswith("(13 in all)")
    with pytest.raises(KeyError, match=r"trace\.ops\[0\]"):
        loop[0]


def test_an_op_lists_its_fields_and_names_the_nearest(loop):
    op = loop.ops[0]
    assert {"label", "func_name", "kind", "shape", "func_duration", "out", "parents"} <= set(dir(op))
    with pytest.raises(AttributeError, match="perhaps you meant 'func_duration'"):
        _ = op.duration
    with pytest.raises(KeyError, match=r"trace.params the parameters"):
        loop["zzz"]


def test_layers_never_compare_tensors(loop):
    with pytest.raises(tl.TorchLensError) as caught:
        _ = loop.layers["linear_2_3"].out
    assert caught.value.code == "layer_pass_ambiguous"


def test_counts_and_names_of_the_whole():
    model = zoo.Conv().train()
    model.head.bias.requires_grad_(False)
    trace = tl.trace(model, torch.randn(2, 3, 8, 8))
    assert (trace.input_layers, trace.output_layers, trace.orphans) == (("input_1",), ("output_1",), ())
    assert trace.num_ops == len(list(trace)) == 8
    assert trace.num_params_frozen == 2
    assert trace.num_params == sum(p.numel() for p in model.parameters())
    assert trace.total_param_memory == 4 * trace.num_params
    assert trace.total_activation_memory == trace.data.totals["output_bytes"]
    assert trace.module_calls[:3] == ("self:1", "features:1", "features.0:1")
    assert trace["features.0"].parent == "features"
    assert trace["self"].parent is None
    assert trace["features"].output_ops == ("identity_1_6",)
    assert trace["features.1"].training


def test_fields_of_an_op_by_their_names():
    op = tl.trace(torch.nn.Linear(4, 2), torch.ones(1, 4)).ops[0]
    assert op.parent_arg_positions == (("input_1", (0,)),)
    assert op.func_config == {"in_features": 4, "out_features": 2}
    assert (op.flops_forward, op.flops_backward, op.cost.flops_total) == (16, 32, 48)
    assert (op.is_input, op.is_output, op.is_buffer, op.bool_value) == (False, False, False, None)


def test_showing_a_trace_counts_no_flops(monkeypatch):
    trace = tl.trace(torch.nn.Linear(4, 2), torch.ones(1, 4))
    monkeypatch.setattr(type(trace.data.nodes.flops), "__getitem__", lambda *_: pytest.fail("worked out a column"))
    assert repr(trace) == "Trace(Linear, 1 ops, 10 params)"
    assert trace.total_activation_memory == 8


def test_totals_of_the_whole_by_name():
    class Mixed(torch.nn.Module):
        def forward(self, x):
            return torch.cdist(x @ x, x, p=3.0) + 1

    trace = tl.trace(Mixed(), torch.ones(4, 4, requires_grad=True), capture={"saved_for_backward": True})
    assert (trace.total_flops_forward, trace.total_macs_forward, trace.total_flops_backward) == (144, 64, 272)
    assert trace.ops_without_flops == ("cdist_1_2",)
    assert trace.total_func_duration == sum(op.func_duration for op in trace.ops)
    # The input once, the product and the distances.
    assert trace.total_autograd_memory == 3 * 64
    assert (trace["matmul_1_1"].num_autograd_tensors, trace["matmul_1_1"].autograd_memory) == (1, 64)
    assert trace.totals == trace.data.totals
