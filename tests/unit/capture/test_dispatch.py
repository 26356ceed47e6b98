"""Which ops are recorded, under which names, with which arrows."""

from __future__ import annotations

import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def trace(model, *args, **options):
    result = tl.trace(model, args, **options)
    result.check()
    return result


def labels(result):
    return [op.label for op in result.ops]


def test_names_follow_the_function_and_count_layers():
    result = trace(zoo.Loop(), torch.randn(2, 4))
    assert labels(result)[:5] == ["zeroslike_1_1", "linear_1_2:1", "linear_2_3:1", "add_1_4:1", "tanh_1_5:1"]
    assert [layer.num_passes for layer in result.layers if layer.label.startswith("linear")] == [3, 3]


def test_training_batch_norm_counts_first_and_makes_buffer_versions():
    result = trace(zoo.Conv().train(), torch.randn(2, 3, 8, 8))
    assert labels(result)[:4] == ["conv2d_1_1", "add_1_2", "batchnorm_1_3", "relu_1_4"]
    versions = {b.address.rpartition(".")[2]: len(b.versions) for b in result.buffers}
    assert versions == {"running_mean": 2, "running_var": 2, "num_batches_tracked": 2}
    assert result["features.1.running_mean:2"].parents == ("batchnorm_1_3",)
    assert result["features.1.running_mean:1"].parents == ()
    assert not result["batchnorm_1_3"].is_inplace
    assert result["relu_1_4"].is_inplace


def test_eval_batch_norm_reads_buffers_only():
    result = trace(zoo.Conv().eval(), torch.randn(2, 3, 8, 8))
    assert {len(b.versions) for b in result.buffers} == {0, 1}
    assert set(result["batchnorm_1_2"].buffers) == {"features.1.running_mean", "features.1.running_var"}


def test_a_module_without_an_op_gets_a_synthetic_identity():
    result = trace(zoo.Conv().eval(), torch.randn(2, 3, 8, 8))
    identity = result["identity_1_5"]
    assert identity.synthetic
    assert identity.modules[-1] == "features.4:1"
    assert identity.children == ("mean_1_6",)
    assert [node["label"] for node in result.to_dict()["nodes"] if node.get("synthetic")] == ["identity_1_5"]


def test_a_write_through_a_view_reaches_the_reader_of_the_whole():
    result = trace(zoo.AliasWrite(), torch.randn(2, 4))
    assert result["add_1_4"].parents == ("mul_1_1", "mul_2_3")
    assert [ref.late for ref in result["add_1_4"].inputs] == [False, True]


def test_a_write_to_one_half_does_not_reach_the_reader_of_the_other():
    result = trace(zoo.DisjointWrite(), torch.randn(4, 2))
    assert result.ops[-1].parents == ("chunk_1_2",)


def test_assignments_form_a_chain():
    result = trace(zoo.ListWrite(), torch.randn(2, 4))
    writes = [op for op in result.ops if op.func_name == "__setitem__"]
    assert [op.parents[0] for op in writes] == ["zeros_1_1", "setitem_1_3:1", "setitem_1_3:2"]
    assert result["output_1"].parents == ("setitem_1_3:3",)


def test_tensors_from_outside_are_constants_with_their_address():
    result = trace(zoo.Constants(torch.ones(4)), torch.randn(2, 4))
    constants = {node.label: node.path for node in result.nodes if node.kind == "constant"}
    assert constants == {"constant_1": "scale", "constant_2": "outside[0]"}
    assert result["mul_1_1"].parents == ("input_1", "constant_1")
    assert result["add_1_2"].parents == ("mul_1_1", "constant_2")


def test_python_functions_keep_their_public_name_when_one_call_results():
    result = trace(zoo.Composite(), torch.randn(2, 4))
    assert [op.func_name for op in result.ops] == ["__getitem__", "interpolate", "max_pool1d", "__rsub__"]
    assert labels(result)[-1] == "rsub_1_4"


def test_a_composite_is_recorded_by_its_inner_calls():
    result = trace(zoo.Attention().train(), torch.randn(2, 3, 8))
    names = [op.func_name for op in result.ops]
    assert "scaled_dot_product_attention" in names
    assert "multi_head_attention_forward" not in names
    inside = [c for c in result.data.nodes.composite if c]
    assert set(inside) == {"multi_head_attention_forward"}


def test_one_call_is_one_op_with_several_outputs():
    result = trace(zoo.Several(), torch.randn(3, 4))
    assert len(result["max_1_1"].outs) == 2
    assert len(result["split_1_2"].outs) == 2
    assert [(ref.output, ref.position) for ref in result["sub_1_3"].inputs] == [(0, (0,)), (1, (1,))]
    outputs = {node.path: node.parents for node in result.nodes if node.kind == "output"}
    assert outputs == {"v": ("max_1_1",), "rest.0": ("max_1_1",), "rest.1.0": ("sub_1_3",)}


def test_a_tested_tensor_is_a_branch_with_its_line():
    result = trace(zoo.Branch(), torch.ones(2, 4))
    (test,) = result.branches
    assert test.label == "gt_1_2"
    assert test.value is True
    assert test.file.endswith("recording.py")
    assert result["gt_1_2"].value is True
    assert trace(zoo.Branch(), -torch.ones(2, 4)).branches[0].value is False


def test_scalars_are_recorded_without_keeping_values():
    class Scalar(nn.Module):
        def forward(self, x):
            return x.sum() * 2

    result = tl.trace(Scalar(), torch.tensor([1.0, 2.0]), save="none")
    assert [op.value for op in result.ops] == [3.0, 6.0]


def test_returned_input_and_repeated_tensors_have_their_own_outputs():
    class Same(nn.Module):
        def forward(self, x):
            y = x + 1
            return x, y, y

    result = trace(Same(), torch.randn(2))
    outputs = [node for node in result.nodes if node.kind == "output"]
    assert [(node.path, node.parents) for node in outputs] == [
        ("0", ("input_1",)),
        ("1", ("add_1_1",)),
        ("2", ("add_1_1",)),
    ]


def test_a_number_per_lost_id_is_never_confused():
    """Ids of dead tensors are reused by new ones: a stale entry must not answer for them."""

    class Churn(nn.Module):
        def forward(self, x):
            total = x
            for _ in range(200):
                total = total + (x * 2)
            return total

    result = tl.trace(Churn(), torch.randn(2), save="none")
    result.check()
    for op in result.ops:
        if op.func_name == "add":
            assert len(op.inputs) == 2
            assert op.inputs[1].node == op.index - 1


def test_constant_numbering_and_steps_are_independent():
    result = trace(zoo.Constants(torch.ones(4)), torch.randn(2, 4))
    assert labels(result) == ["mul_1_1", "add_1_2"]


def test_lists_of_tensors_carry_their_position():
    class Cat(nn.Module):
        def forward(self, x):
            return torch.cat([x, x + 1], dim=0)

    result = trace(Cat(), torch.randn(2))
    assert [ref.position for ref in result["cat_1_2"].inputs] == [(0, 0), (0, 1)]


def test_functions_with_out_write_it():
    class Out(nn.Module):
        def forward(self, x):
            target = torch.empty_like(x)
            torch.add(x, 1, out=target)
            return target * 2

    result = trace(Out(), torch.randn(2))
    assert result["mul_1_3"].parents == ("add_1_2",)
    assert result["add_1_2"].is_inplace
