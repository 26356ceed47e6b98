"""Each structural rule is really checked: a trace that breaks it alone is refused in the rule's own words."""

from __future__ import annotations

import copy

import pytest
import torch

import torchlens as tl
from tests import builders
from tests.models import recording as zoo
from torchlens.base.errors import CaptureError
from torchlens.records.check import check
from torchlens.records.flow import ArmEdge, Branches, BranchTest
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData


def column(data, name):
    rows = list(getattr(data.nodes, name))
    setattr(data.nodes, name, rows)
    return rows


def of_kind(data, kind):
    return [i for i, own in enumerate(data.nodes.kind) if own == kind]


def op(data, occurrence=0):
    return data.op_indexes[occurrence]


def last(data):
    return len(data.nodes) - 1


def missing_row(data):
    column(data, "inplace").pop()


def same_label(data):
    column(data, "label")[2] = data.nodes.label[1]


def wrong_index(data):
    data.params[1].index = 0


def wrong_call_index(data):
    data.calls[1].index = 0


def unknown_param(data):
    column(data, "params")[op(data)] = (99,)


def param_twice(data):
    node = data.params[0].used_by[0]
    column(data, "params")[node] = data.nodes.params[node] * 2


def unknown_buffer(data):
    column(data, "buffers")[op(data)] = (-1,)


def unknown_layer(data):
    column(data, "layer")[1] = 99


def unknown_call(data):
    column(data, "call")[1] = 99


def unknown_kind(data):
    column(data, "kind")[1] = "thing"


def late_input(data):
    column(data, "kind")[last(data) - 1] = "input"


def early_output(data):
    column(data, "kind")[op(data)] = "output"


def input_with_parents(data):
    column(data, "parents")[1] = (ArgRef(0, 0, (0,)),)


def empty_output(data):
    column(data, "parents")[last(data)] = ()


def nameless_version(data):
    column(data, "buffers")[of_kind(data, "buffer")[0]] = ()


def synthetic_output(data):
    column(data, "synthetic")[last(data)] = True


def backward_arrow(data):
    column(data, "parents")[op(data)] = (ArgRef(last(data), 0, (0,)),)


def own_arrow(data):
    column(data, "parents")[op(data)] = (ArgRef(op(data), 0, (0,)),)


def wrong_output(data):
    column(data, "parents")[last(data)] = (data.nodes.parents[last(data)][0]._replace(output=5),)


def read_output(data):
    nodes = of_kind(data, "output")
    column(data, "parents")[nodes[1]] = (ArgRef(nodes[0], 0, (0,)),)


def same_place(data):
    node = next(i for i in data.op_indexes if len(data.nodes.parents[i]) > 1)
    first, second, *rest = data.nodes.parents[node]
    column(data, "parents")[node] = (first, second._replace(position=first.position), *rest)


def same_writer(data):
    column(data, "parents")[op(data, 1)] += (ArgRef(op(data), 0, (0,), True),) * 2


def empty_layer(data):
    data.layers[1].nodes = ()


def unordered_layer(data):
    layer = next(layer for layer in data.layers if layer.num_passes > 1)
    layer.nodes = layer.nodes[::-1]


def unknown_node_in_layer(data):
    data.layers[-1].nodes = (99999,)


def wrong_pass(data):
    column(data, "pass_number")[op(data)] = 7


def unordered_layers(data):
    first, second = op(data, 0), op(data, 1)
    i, j = data.nodes.layer[first], data.nodes.layer[second]
    data.layers[i], data.layers[j] = data.layers[j], data.layers[i]
    layers = column(data, "layer")
    for index in (i, j):
        for node in data.layers[index].nodes:
            layers[node] = index


def forgotten_node(data):
    data.layers.pop()
    column(data, "layer")[last(data)] = 0


def wrong_number(data):
    data.layers[data.nodes.layer[op(data)]].n = 9


def wrong_step(data):
    data.layers[data.nodes.layer[op(data)]].step = 9


def wrong_label(data):
    column(data, "label")[op(data)] = "other_1_1"


def same_address(data):
    data.modules[2].address = data.modules[1].address


def second_root(data):
    data.modules[1].parent = None
    data.modules[0].children = data.modules[0].children[1:]


def lost_child(data):
    data.modules[0].children = ()


def foreign_child(data):
    data.modules[1].children = (2,)


def wrong_call_number(data):
    data.calls[1].number = 5


def foreign_call(data):
    data.calls[1].module = 2


def forgotten_call(data):
    data.modules[1].calls = ()


def second_root_call(data):
    data.calls[1].parent = None


def call_in_later_call(data):
    data.calls[1].parent = 2


def unordered_ops(data):
    call = next(call for call in data.calls if len(call.ops) > 1)
    call.ops = call.ops[::-1]


def ops_of_another_call(data):
    data.calls[1].ops = (last(data),)


def unknown_return(data):
    data.calls[1].outputs = ((0, 3),)


def unknown_returning_node(data):
    data.calls[1].outputs = ((-1, 0),)


def op_without_call(data):
    data.calls[1].ops = ()


def inverted_span(data):
    data.calls[1].span = (3, 2)


def escaping_span(data):
    data.calls[0].span = (0, 3)


def overlapping_spans(data):
    first, second = [call for call in data.calls if call.parent == 0][:2]
    second.span = (first.span[1] - 1, second.span[1])


def span_without_its_op(data):
    data.calls[1].span = (data.calls[1].span[1], data.calls[1].span[1])


def unread_param(data):
    data.params[0].used_by = ()


def unused_param(data):
    data.params[0].used_by = (*data.params[0].used_by, last(data))


def missing_version(data):
    data.buffers[0].versions = ()


def same_state_address(data):
    data.params[1].address = data.params[0].address


def unknown_test(data):
    data.branches = Branches([BranchTest(99999, "if", True, "", 0)])


def unknown_read(data):
    data.branches = Branches(reads=[-4])


def unknown_deciding_test(data):
    data.branches = Branches(arms=[ArmEdge(0, op(data), "THEN", 0, 3, 1)])


def arm_without_arrow(data):
    test = BranchTest(op(data), "if", True, "", 0)
    data.branches = Branches([test], [ArmEdge(last(data), op(data), "THEN", 0, 0, 1)])


RULES = [
    (missing_row, "column inplace"),
    (same_label, "two nodes bear one label"),
    (wrong_index, "of the params says"),
    (wrong_call_index, "of the calls says"),
    (unknown_param, "one of the params that does not exist"),
    (param_twice, "one of the params twice"),
    (unknown_buffer, "one of the buffers that does not exist"),
    (unknown_layer, "in layer 99"),
    (unknown_call, "in call 99"),
    (unknown_kind, "unknown kind thing"),
    (late_input, "comes after other nodes"),
    (early_output, "comes after an output"),
    (input_with_parents, "has parents"),
    (empty_output, "shows nothing"),
    (nameless_version, "a version of 0 buffers"),
    (synthetic_output, "synthetic and no op"),
    (backward_arrow, "does not come before it"),
    (own_arrow, "does not come before it"),
    (wrong_output, "which it does not have"),
    (read_output, "which is an output of the model"),
    (same_place, "two arrows lead to one place"),
    (same_writer, "two arrows lead to one place"),
    (empty_layer, "are not in order"),
    (unordered_layer, "are not in order"),
    (unknown_node_in_layer, "holds a node that does not exist"),
    (wrong_pass, "and its node"),
    (unordered_layers, "comes after a layer that ran later"),
    (forgotten_node, "do not hold every node once"),
    (wrong_number, "is not layer 9 of its type"),
    (wrong_step, "at step 9"),
    (wrong_label, "other_1_1 is not pass"),
    (same_address, "two modules have the address"),
    (second_root, "has no place in the tree"),
    (lost_child, "is no child of its parent"),
    (foreign_child, "has another parent"),
    (wrong_call_number, "are numbered [5"),
    (foreign_call, "has a call of another one"),
    (forgotten_call, "do not hold every call once"),
    (second_root_call, "is not in another one"),
    (call_in_later_call, "begins before the call around it"),
    (unordered_ops, "are not in order"),
    (ops_of_another_call, "is no op of call"),
    (unknown_return, "returns an output that does not exist"),
    (unknown_returning_node, "returns an output that does not exist"),
    (op_without_call, "belongs to no module call"),
    (inverted_span, "spans nodes 3 to 2"),
    (escaping_span, "is not nested"),
    (overlapping_spans, "is not nested"),
    (span_without_its_op, "outside the span of its call"),
    (unread_param, "disagree about its use"),
    (unused_param, "disagree about its use"),
    (missing_version, "disagree about its versions"),
    (same_state_address, "have one address"),
    (unknown_test, "tests a node that does not exist"),
    (unknown_read, "tests a node that does not exist"),
    (unknown_deciding_test, "names a test that does not exist"),
    (arm_without_arrow, "where no arrow is"),
]


class Model(zoo.Loop):
    """Passes of one layer, a buffer, two inputs and two outputs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, y):
        self.count.add_(1)
        return super().forward(x), y * self.count


@pytest.fixture(scope="module")
def recorded() -> TraceData:
    torch.manual_seed(0)
    data = tl.trace(Model(), (torch.randn(2, 4), torch.randn(2, 4)), save="none").data
    for name in ("config", "flops", "macs", "flops_backward", "site"):
        column(data, name)
    data.branches = Branches()
    return data


@pytest.mark.parametrize(("damage", "words"), RULES, ids=lambda value: getattr(value, "__name__", None))
def test_damage_is_found(recorded, damage, words):
    data = copy.deepcopy(recorded)
    check(data)
    damage(data)
    with pytest.raises(CaptureError, match="trace_inconsistent") as caught:
        check(data)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", builders.SAMPLES)
def test_traces_made_by_hand_keep_the_rules(name):
    check(builders.SAMPLES[name]())


@pytest.mark.parametrize("model", [zoo.Branch, zoo.Several, zoo.Hidden, zoo.AliasWrite, zoo.ListWrite])
def test_recorded_traces_keep_the_rules(model):
    tl.trace(model(), torch.randn(2, 4), save="none").check()


def test_a_partial_trace_keeps_the_rules():
    with pytest.raises(RuntimeError) as caught:
        tl.trace(zoo.Fails(), torch.randn(2, 4))
    caught.value.partial_trace.check()
