"""A layer speaks for its passes where they agree, gives totals, and refuses what belongs to one pass."""

from __future__ import annotations

import pytest
import torch

import torchlens as tl
from tests.models import loops, recording


@pytest.fixture(scope="module")
def loop():
    return tl.trace(loops.TiedResidual(), torch.randn(2, 4))


@pytest.mark.parametrize("field", ["out", "parents", "children", "pass_number", "index", "modules", "inputs"])
def test_a_field_of_one_pass_is_refused(loop, field):
    layer = loop.layers["linear_2_3"]
    with pytest.raises(tl.TorchLensError) as caught:
        getattr(layer, field)
    assert caught.value.code == "layer_pass_ambiguous"
    assert f'trace["linear_2_3:1"].{field}' in str(caught.value)


def test_the_label_of_a_layer_names_no_pass(loop):
    assert loop.layers["linear_2_3"].label == "linear_2_3"


class TwoPlaces(torch.nn.Module):
    """One weight is used on two lines, and a scalar grows in a loop."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        total = (x * self.w).sum()
        x = x * self.w
        for _ in range(2):
            total = total + 1
        return total, x


def test_values_and_call_sites_that_differ_are_refused():
    trace = tl.trace(TwoPlaces(), torch.ones(4))
    weighted, grown = trace.layers["mul_1_1"], trace.layers["add_1_3"]
    assert (weighted.num_passes, grown.num_passes) == (2, 2)
    for layer, field in ((weighted, "call_site"), (grown, "value")):
        with pytest.raises(tl.TorchLensError, match="layer_pass_ambiguous"):
            getattr(layer, field)
    assert grown.call_site.function == "TwoPlaces.forward"


def test_a_value_is_refused_also_where_nothing_was_kept():
    layer = tl.trace(loops.TiedResidual(), torch.randn(2, 4), save="none").layers["linear_2_3"]
    with pytest.raises(tl.TorchLensError) as caught:
        _ = layer.out
    assert caught.value.code == "layer_pass_ambiguous"


def test_what_all_passes_agree_on_is_given(loop):
    layer = loop.layers["linear_2_3"]
    assert (layer.shape, layer.dtype, layer.func_name, layer.num_passes) == ((2, 4), "float32", "linear", 4)
    assert layer.params == ("down.weight", "down.bias")
    assert layer.layer_label == "linear_2_3"
    assert layer.flops_forward == 2 * 2 * 8 * 4


def test_totals_are_over_all_passes(loop):
    layer = loop.layers["linear_2_3"]
    assert layer.total_flops_forward == 4 * layer.flops_forward
    assert layer.total_activation_memory == 4 * 32
    assert layer.total_func_duration == sum(op.func_duration for op in layer.ops)


def test_a_total_with_an_unknown_part_is_unknown():
    class Sorted(torch.nn.Module):
        def forward(self, x):
            for _ in range(2):
                x = torch.linalg.qr(x).Q
            return x

    layer = tl.trace(Sorted(), torch.randn(3, 3)).layers["linalgqr_1_1"]
    assert (layer.num_passes, layer.total_flops_forward) == (2, None)


def test_a_layer_that_ran_once_gives_everything(loop):
    layer = tl.trace(recording.Conv().eval(), torch.randn(1, 3, 8, 8)).layers["conv2d_1_1"]
    assert layer.pass_number == 1
    assert layer.out.shape == (1, 4, 8, 8)
    assert layer.shape_summary == ""


def test_a_change_of_shape_is_summarised():
    trace = tl.trace(loops.Growing(), torch.randn(2, 4))
    cat = next(layer for layer in trace.layers if layer.type == "cat")
    assert (cat.num_passes, cat.shape_summary) == (3, "3->5")
    with pytest.raises(tl.TorchLensError, match="layer_pass_ambiguous"):
        _ = cat.shape
    relu = next(layer for layer in trace.layers if layer.type == "relu")
    assert relu.shape_summary == ""


def test_layers_are_equal_by_record_and_list_their_fields(loop):
    assert loop.layers[1] == loop.layers[loop.layers[1].label]
    assert loop.layers[1] != loop.layers[2]
    assert loop.layers[1] in loop.layers
    assert len({loop.layers[1], loop.layers[loop.layers[1].label]}) == 1
    assert {"shape_summary", "total_flops_forward", "parents", "shape", "ops"} <= set(dir(loop.layers[1]))


def test_an_unknown_field_of_a_layer_names_the_nearest(loop):
    with pytest.raises(AttributeError, match="perhaps you meant 'func_duration'"):
        _ = loop.layers["linear_2_3"].duration
