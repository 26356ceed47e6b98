"""`save=` as a list of names or a predicate: what is kept, what is not, and what is said about it."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def kept(trace: tl.Trace) -> list[str]:
    """Labels of the nodes whose value can be read."""
    return [node.label for node in trace.nodes if is_kept(node)]


def is_kept(node) -> bool:
    try:
        return node.out is not None
    except tl.TorchLensError as error:
        return error.code != "payload_unavailable"


def traced(model, x, save, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", tl.TorchLensWarning)
        return tl.trace(model, x, save=save, **options)


X = torch.randn(2, 3, 8, 8)


def test_labels_keep_these_ops_alone():
    trace = traced(zoo.Conv().eval(), X, ["relu_1_3", "mean_1_6"])
    assert kept(trace) == ["relu_1_3", "mean_1_6"]
    assert (trace["relu_1_3"].out >= 0).all()
    assert trace.result is not None


def test_inputs_outputs_and_buffers_are_named_too():
    model = zoo.Conv().train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tl.TorchLensWarning)
        trace = tl.trace(model, X, save=["input_1", "output_1", "features.1.running_mean:1", "@features.1.running_var"])
    named = [node.label for node in trace.nodes if node.path.startswith("features.1.running_mean")][:1]
    named += [node.label for node in trace.nodes if node.path.startswith("features.1.running_var")]
    assert set(kept(trace)) == {"input_1", "output_1", *named}
    assert len(named) == 3


def test_an_address_keeps_what_the_calls_of_the_module_returned():
    trace = traced(zoo.Conv().eval(), X, ["features", "head"])
    assert kept(trace) == ["identity_1_5", "linear_1_7"]
    assert kept(traced(zoo.Conv().eval(), X, ["self"])) == ["linear_1_7"]


def test_a_module_call_keeps_one_of_several():
    trace = traced(zoo.Loop(), torch.randn(2, 4), ["rec:2"])
    assert kept(trace) == [trace.modules["rec"].output_ops[1]]


def test_a_layer_keeps_all_its_passes_and_a_pass_one():
    whole = traced(zoo.Loop(), torch.randn(2, 4), ["linear_1_2"])
    assert kept(whole) == ["linear_1_2:1", "linear_1_2:2", "linear_1_2:3"]
    assert kept(traced(zoo.Loop(), torch.randn(2, 4), ["linear_1_2:2"])) == ["linear_1_2:2"]


def test_an_op_inside_a_python_function_is_found_under_its_public_name():
    trace = traced(zoo.Composite(), torch.randn(2, 8), ["interpolate_1_2", "maxpool1d_1_3"])
    assert kept(trace) == ["interpolate_1_2", "maxpool1d_1_3"]


def test_a_value_overwritten_later_is_kept_as_it_was():
    model = zoo.Conv().eval()
    trace = traced(model, X, ["batchnorm_1_2"])
    assert torch.equal(trace["batchnorm_1_2"].out, model.features[1](model.features[0](X)))


@pytest.mark.parametrize("name", ["relu_1_4", "featurs", "relu_1_3:2", "head:2"])
def test_a_name_that_means_nothing_is_told(name):
    with pytest.warns(tl.TorchLensWarning, match="save_name_unmatched") as caught:
        trace = tl.trace(zoo.Conv().eval(), X, save=[name, "mean_1_6"])
    assert name in str(caught[0].message)
    assert kept(trace) == ["mean_1_6"]


def test_the_nearest_name_is_offered():
    with pytest.warns(tl.TorchLensWarning, match="perhaps you meant 'features'"):
        tl.trace(zoo.Conv().eval(), X, save=["featurs"])


def test_a_module_that_hands_on_what_it_was_given_is_told():
    class Through(nn.Module):
        def forward(self, x):
            self.seen = x.sum()
            return x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Through()

        def forward(self, x):
            return self.inner(x + 1) * 2

    with pytest.warns(tl.TorchLensWarning, match="save_name_unmatched.*made outside"):
        trace = tl.trace(Outer(), torch.ones(2), save=["inner"])
    assert kept(trace) == []


def test_names_are_not_told_of_a_run_that_stopped():
    with pytest.raises(RuntimeError) as caught:
        traced(zoo.Fails(), torch.randn(2, 4), ["relu_1_2", "linear_2_3"])
    assert kept(caught.value.partial_trace) == ["relu_1_2"]


def test_a_predicate_sees_the_facts_of_each_node():
    seen = []

    def wants(facts):
        seen.append(facts)
        return facts.func_name == "linear" and facts.shape == (2, 4)

    trace = traced(zoo.Loop(), torch.randn(2, 4), wants)
    assert len(kept(trace)) == 6
    assert len(seen) == len(trace.nodes)
    second = [facts for facts in seen if facts.module == "rec"][1]
    assert (second.kind, second.type, second.modules, second.is_inplace) == ("op", "linear", ("rec:2",), False)
    assert (second.params, second.dtype, second.device) == (("rec.weight", "rec.bias"), "float32", "cpu")
    assert (seen[0].kind, seen[0].path, seen[0].modules) == ("input", "x", ())


def test_a_predicate_that_raises_is_named_after_the_forward_has_run():
    ran = []

    class Model(nn.Module):
        def forward(self, x):
            y = F.relu(x) + 1
            ran.append(1)
            return y

    with pytest.raises(tl.TorchLensError, match="ZeroDivisionError for relu") as caught:
        tl.trace(Model(), torch.ones(2), save=lambda facts: 1 / (facts.func_name != "relu"))
    assert caught.value.code == "save_predicate_failed"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert ran == [1]


def test_the_error_of_the_forward_comes_before_that_of_the_predicate():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        tl.trace(zoo.Fails(), torch.randn(2, 4), save=lambda facts: 1 / 0)
    assert len(caught.value.partial_trace) == 2


def test_an_empty_list_keeps_the_result_alone():
    trace = traced(zoo.Conv().eval(), X, [])
    assert kept(trace) == []
    assert trace.result.shape == (2, 2)
