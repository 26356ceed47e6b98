"""Which ops are passes of one layer: one tiny model per phenomenon, its layers written down from its source."""

from __future__ import annotations

import pytest
import torch

import torchlens as tl
from tests.models import loops, recording


def layers_of(model: torch.nn.Module, *args: torch.Tensor) -> list[str]:
    """Layers of ops in order of first execution, as `relu` or `relu x3`; every structural rule is checked too."""
    torch.manual_seed(0)
    result = tl.trace(model.eval(), args, save="none")
    result.check()
    found = [layer for layer in result.layers if layer.record.step is not None]
    return [layer.type + (f" x{layer.num_passes}" if layer.num_passes > 1 else "") for layer in found]


def vector() -> torch.Tensor:
    return torch.randn(2, 4)


def sequence() -> torch.Tensor:
    return torch.randn(2, 3, 4)


def image() -> torch.Tensor:
    return torch.randn(1, 2, 16)


GATE = "linear x3, sigmoid x3"
CASES = {
    "rnn_loop": (recording.Loop, vector, "zeroslike, linear x3, linear x3, add x3, tanh x3"),
    "stacked_cells": (
        loops.StackedCells, sequence,
        "newzeros, newzeros, getitem x3, rnntanhcell x3, relu x3, rnntanhcell x3, relu x3",
    ),
    "tied_residual_block": (loops.TiedResidual, vector, "linear x4, relu x4, linear x4, add x4"),
    "loop_without_parameters": (loops.FreeLoop, vector, "sin x5, add x5"),
    "loop_without_parameters_two_ways": (loops.Alternating, vector, "cos x3, sin x2"),
    "modules_without_parameters_in_turns": (
        loops.AlternatingModules, vector, "linear x4, tanh x2, add x2, sigmoid x2, add x2",
    ),
    "three_lines": (loops.ThreeLines, vector, "sin, sin, sin"),
    "three_in_one_line": (loops.ThreeInOneLine, vector, "sin, sin, sin"),
    "nested": (loops.Nested, vector, "linear x2, linear x6, relu x6"),
    "recursion": (loops.Recursion, vector, "linear x3, relu x3"),
    "recursion_deeper_than_a_site": (lambda: loops.Recursion(230), vector, "linear x230, relu x230"),
    "recursion_on_the_way_back": (lambda: loops.RecursionAfter(230), vector, "linear x231, tanh x231"),
    "recursion_of_a_module_without_parameters": (loops.FreeModuleRecursion, vector, "linear, sin x3"),
    "distinct_blocks": (loops.DistinctBlocks, vector, ", ".join(["linear, relu, add"] * 3)),
    "distinct_blocks_twice": (
        lambda: loops.DistinctBlocks(2), vector, ", ".join(["linear x2, relu x2, add x2"] * 3),
    ),
    "refinement_with_tests": (
        loops.Refinement, vector, "linear x6, mul x6, sub x6, abs x6, mean x6, lt x6, amax x6, gt x6",
    ),
    "early_exit": (loops.EarlyExit, vector, "zeros, linear x3, tanh x3, add x3, gt x3, sigmoid x2"),
    "while_loop": (loops.WhileLoop, vector, "zeros, gt x4, lt x4, linear x3, tanh x3, add x3"),
    "gru_by_hand": (
        loops.HandGru, sequence,
        f"newzeros, getitem x3, cat x3, {GATE}, {GATE}, getitem x3, mul x3, cat x3, linear x3, tanh x3, rsub x3, "
        "mul x3, mul x3, add x3",
    ),
    "op_without_parameters_first": (loops.FreeFirst, vector, "linear, relu x3, linear x3, linear"),
    "one_layer_on_two_lines": (loops.TwoLines, vector, "linear x2, relu, tanh, relu, tanh"),
    "sequential_with_a_shared_relu": (loops.SharedRelu, vector, "linear, relu, linear, relu"),
    "sequential_with_a_shared_relu_twice": (
        lambda: loops.SharedRelu(2), vector, "linear x2, relu x2, linear x2, relu x2",
    ),
    "work_on_the_weight": (loops.ScaledWeight, vector, "mul x3, linear x3, tanh x3"),
    "helper_on_two_lines": (loops.Helper, vector, "linear x2, relu x2, add x2, sin, sin"),
    "helper_with_other_parameters": (
        lambda: loops.Helper(same=False), vector, "linear, relu, add, sin, linear, relu, add, sin",
    ),
    "helper_in_a_helper": (loops.HelperInHelper, vector, "linear x4, relu x4, tanh x2"),
    "helper_beside_distinct_blocks": (
        lambda: loops.HelperBesideBlocks(method=True), vector, "linear, linear x3, tanh x3, linear, linear",
    ),
    "module_beside_distinct_blocks": (
        lambda: loops.HelperBesideBlocks(method=False), vector, "linear, linear x3, tanh x3, linear, linear",
    ),
    "helper_over_distinct_blocks": (loops.HelperOverBlocks, vector, "linear x2, relu x2, linear x2, relu x2"),
    "map_without_parameters": (lambda: loops.Map(layer=False), vector, "chunk, mul, tanh, mul, tanh, cat"),
    "map_with_parameters": (lambda: loops.Map(layer=True), vector, "chunk, linear x2, tanh x2, cat"),
    "shapes_that_grow": (loops.Growing, vector, "getitem x3, linear x3, relu x3, cat x3, sum"),
    "distinct_modules_without_parameters": (loops.FreeModules, vector, "tanh, sigmoid, tanh"),
    "memory_in_a_buffer": (
        loops.RunningBuffer, lambda: torch.randn(3, 4), "getitem x3, add x3, add x3, tanh x3",
    ),
    "modules_without_an_op": (loops.IdentityInLoop, vector, "linear x3, identity x3, identity, add, identity"),
    "shared_pool": (
        lambda: loops.SharedPool(1), image, "conv1d, relu, maxpool1d, conv1d, relu, maxpool1d",
    ),
    "shared_pool_in_a_block_twice": (
        lambda: loops.SharedPool(2), image,
        "conv1d x2, relu x2, maxpool1d x2, conv1d x2, relu x2, maxpool1d x2",
    ),
    "very_many_passes": (loops.Deep, lambda: torch.randn(1, 3), "linear x1200, tanh x1200"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_layers(case):
    make, example, expected = CASES[case]
    assert ", ".join(layers_of(make(), example())) == expected


def test_passes_are_numbered_in_execution_order():
    result = tl.trace(loops.DistinctBlocks(2, size=2), vector(), save="none")
    relu = result.layers["relu_1_2"]
    assert [op.pass_number for op in relu.ops] == [1, 2]
    assert [op.index for op in relu.ops] == sorted(op.index for op in relu.ops)
    assert [op.parents for op in relu.ops] == [("linear_1_1:1",), ("linear_1_1:2",)]


def test_inputs_state_and_outputs_stay_single():
    result = tl.trace(loops.RunningBuffer(), torch.randn(3, 4), save="none")
    kinds = {layer.kind: [] for layer in result.layers}
    for layer in result.layers:
        kinds[layer.kind].append(layer.num_passes)
    assert kinds["buffer"] == [1, 1, 1, 1]
    assert kinds["constant"] == kinds["input"] == kinds["output"] == [1]


def test_an_opened_function_groups_by_its_inner_places():
    found = layers_of(loops.Composite(), sequence())
    assert found[-4:] == ["cosinesimilarity", "mul", "cosinesimilarity", "add"]
    assert {name.partition(" ")[2] for name in found[:-4]} == {"x2"}


def test_a_run_that_fails_keeps_the_passes_so_far():
    class Failing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)

        def forward(self, x):
            for turn in range(5):
                x = torch.tanh(self.lin(x))
                if turn == 2:
                    raise ValueError("enough")
            return x

    with pytest.raises(ValueError, match="enough") as caught:
        tl.trace(Failing(), vector(), save="none")
    partial = caught.value.partial_trace
    partial.check()
    assert [(layer.type, layer.num_passes) for layer in partial.layers[1:]] == [("linear", 3), ("tanh", 3)]


def test_steps_do_not_jump_after_a_loop():
    result = tl.trace(loops.FreeFirst(), vector(), save="none")
    assert [layer.label for layer in result.layers if layer.record.step] == [
        "linear_1_1", "relu_1_2", "linear_2_3", "linear_3_4",
    ]  # fmt: skip


@pytest.mark.models
def test_library_models():
    vision = pytest.importorskip("torchvision.models")
    picture = torch.randn(1, 3, 64, 64)
    for build in (vision.resnet18, vision.densenet121):
        assert all(" x" not in name for name in layers_of(build(weights=None), picture))
    flow = torch.randn(1, 3, 128, 128)
    found = layers_of(vision.optical_flow.raft_small(weights=None), flow, flow.clone())
    assert found.count("conv2d x12") == 9  # motion encoder 4, gates 3, flow head 2
    assert found.count("relu x12") == 5


@pytest.mark.models
def test_language_models():
    library = pytest.importorskip("transformers")
    ids = torch.randint(0, 50, (1, 8))
    shape = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "intermediate_size": 32}
    albert = library.AlbertModel(library.AlbertConfig(**shape, **heads, embedding_size=16))
    found = layers_of(albert, ids)
    assert (len(found), sum(name.endswith(" x2") for name in found)) == (46, 31)
    llama = library.LlamaModel(library.LlamaConfig(**shape, **heads, num_key_value_heads=2))
    gpt2 = library.GPT2Model(library.GPT2Config(vocab_size=60, n_embd=16, n_layer=3, n_head=2))
    assert all(" x" not in name for model in (llama, gpt2) for name in layers_of(model, ids))
    mamba = layers_of(library.MambaModel(library.MambaConfig(**shape, state_size=4)), ids)
    assert {name.partition(" ")[2] for name in mamba} == {"", "x8"}
    assert sum(name.endswith(" x8") for name in mamba) == 18
