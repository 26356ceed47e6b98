"""Layers of the oracle models: loops as their source says, and module calls as plain PyTorch counts them."""

from __future__ import annotations

import pytest

from tests.oracle.facts import RECORDS, trace_second_forward

# Written down from the source in `zoo.py`. Every zoo model that is not listed runs each of its layers once.
LOOPS = {
    "zoo_rnn_loop": "zeroslike, linear x5, linear x5, add x5, tanh x5",
    "zoo_rnn_cell_sequence": "newzeros, getitem x6, grucell x6, linear x6, stack",
    "zoo_same_module_two_names": "linear x2, flip, sub",
    "zoo_nested_loops": "linear x6, relu x6, linear x3, sigmoid x3",
    "zoo_two_sequential_loops": "linear x4, tanh x4, linear x3, relu x3, add x3",
    "zoo_parameter_free_loop": "sin x6, mul x6",
    "zoo_recursive_forward": "mul x3, linear, relu x3, add x3",
    "zoo_module_calls_itself": "linear x3, tanh x3",
    "zoo_while_halting_act": "zeros, lt x4, linear x3, tanh x3, linear x3, sigmoid x3, mean x3, add x3",
    "zoo_generator_of_outputs": "add x3, square x3",
}
ZOO = [record for record in RECORDS if record["family"] == "zoo"]
REUSING = [
    record
    for record in RECORDS
    if record["family"] != "zoo" and any(count > 1 for _, _, count in record["plain"]["module_calls"])
]


@pytest.mark.parametrize("record", ZOO, ids=[record["key"] for record in ZOO])
def test_layers_are_what_the_source_says(record: dict) -> None:
    trace = trace_second_forward(record)
    layers = [layer.record for layer in trace.layers if layer.record.step is not None]
    if record["key"] in LOOPS:
        found = [layer.type + (f" x{layer.num_passes}" if layer.num_passes > 1 else "") for layer in layers]
        assert ", ".join(found) == LOOPS[record["key"]]
    else:
        assert [layer.label for layer in layers if layer.num_passes > 1] == []


def test_every_loop_is_a_model_of_the_list() -> None:
    assert LOOPS.keys() <= {record["key"] for record in ZOO}


@pytest.mark.models
@pytest.mark.parametrize("record", REUSING, ids=[record["key"] for record in REUSING])
def test_a_layer_with_parameters_has_as_many_passes_as_its_module_has_calls(record: dict) -> None:
    trace = trace_second_forward(record)
    data, compared = trace.data, 0
    counts = {address: count for address, _, count in record["plain"]["module_calls"]}
    for module in data.modules:
        ops = [op for call in module.calls for op in data.calls[call].ops]
        if len(ops) != len(module.calls) or not ops or not all(data.nodes.params[op] for op in ops):
            continue
        assert {data.nodes.layer[op] for op in ops} == {data.nodes.layer[ops[0]]}
        assert data.layers[data.nodes.layer[ops[0]]].num_passes == counts[module.address]
        compared += 1
    assert compared > 0
