"""One number per node: exact sums or nothing."""

from __future__ import annotations

import math

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.plan import make_plan
from torchlens.plan.graph import Plan
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import TraceData
from torchlens.scene.values import SOURCES, Readings, total, value_of
from torchlens.settings.compose import resolve
from torchlens.settings.options import options


def plan_of(data: TraceData, **options: object) -> Plan:
    return make_plan(data, resolve(data, options))


def test_a_box_is_the_exact_sum_over_its_ops() -> None:
    data = builders.demo()
    box = next(node for node in plan_of(data, depth=1).nodes if node.kind == "module")
    ops = [i for i in box.members if data.nodes.kind[i] == "op"]
    assert value_of(SOURCES.get("bytes"), box, data) == sum(data.nbytes[i] or 0 for i in ops) == 18448
    assert value_of(SOURCES.get("time"), box, data) == pytest.approx(sum(data.nodes.time_s[i] or 0 for i in ops))


def test_a_member_without_a_value_leaves_the_sum_out() -> None:
    data = builders.multi_output()
    lstm = next(node for node in plan_of(data).nodes if node.name == "lstm_1_1")
    assert value_of(SOURCES.get("flops"), lstm, data) is None
    assert total(SOURCES.get("flops"), range(len(data.nodes)), data) is None


def test_what_calls_no_function_adds_nothing_to_a_sum() -> None:
    b = builders.Builder()
    h = b.op("relu", [b.input()], time_s=1e-3)
    b.output(b.op("identity", [h], synthetic=True, time_s=None))
    data = b.build()
    assert total(SOURCES.get("time"), range(len(data.nodes)), data) == 1e-3
    identity = next(node for node in plan_of(data).nodes if node.name == "identity_1_2")
    assert value_of(SOURCES.get("time"), identity, data) is None


def test_inputs_and_outputs_have_bytes_and_no_time() -> None:
    data = builders.chain()
    first = plan_of(data).nodes[0]
    assert value_of(SOURCES.get("bytes"), first, data) == 64
    assert value_of(SOURCES.get("time"), first, data) is None


def test_buffers_and_constants_have_none() -> None:
    data = builders.state()
    others = [node for node in plan_of(data).nodes if node.kind in ("buffer", "constant")]
    assert others
    assert all(value_of(SOURCES.get("bytes"), node, data) is None for node in others)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_number_that_is_none_counts_as_missing(odd: float) -> None:
    data = builders.chain()
    data.nodes.time_s = [odd] * len(data.nodes)
    assert value_of(SOURCES.get("time"), plan_of(data).nodes[1], data) is None


def test_passes_are_summed() -> None:
    data = builders.loop(3)
    node = next(node for node in plan_of(data, rolled=True).nodes if node.name == "tanh_1_5")
    assert value_of(SOURCES.get("bytes"), node, data) == 3 * 64


def test_an_unknown_source_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidArgumentError, match="bytes, device_time, dims"):
        SOURCES.get("speed")


def test_one_function_serves_rows_and_channels() -> None:
    data = builders.residual()
    nodes = plan_of(data, depth=1).nodes
    for name in ("time", "bytes", "flops"):
        readings = Readings(SOURCES.get(name), data)
        assert [readings.value(node) for node in nodes] == [value_of(SOURCES.get(name), node, data) for node in nodes]


def test_dims_count_elements_per_item_and_the_outputs_of_one_call_together() -> None:
    b = builders.Builder()
    x = b.input(shape=(5, 3, 4))
    several = b.op("chunk", [x], outs=[(5, 1, 4), (5, 2, 4)])
    scalar = b.op("sum", [several], ())
    b.op("nested", [scalar], None)
    data = b.build()
    assert SOURCES.get("dims").column(data) == [12, 12, 1, None]


def test_magnitude_is_the_mean_over_the_finite_elements_of_all_outputs() -> None:
    data = builders.chain()
    data.nodes.stats = [
        None,
        (OutStats(4, 1.0, 2.0, 1.0, n_nan=1), OutStats(1, 5.0, 5.0, 5.0)),
        (OutStats(2, None, None, None, n_nan=2),),
        *[None] * (len(data.nodes) - 3),
    ]
    assert SOURCES.get("magnitude").column(data)[:3] == [None, 2.0, None]


def test_fields_of_one_call_must_agree_over_passes_and_totals_do() -> None:
    data = builders.loop(3)
    node = next(node for node in plan_of(data, rolled=True).nodes if node.name == "tanh_1_5")
    passes = [data.nodes.time_s[i] or 0 for i in node.members]
    assert len(set(passes)) > 1
    assert value_of(SOURCES.get("func_duration"), node, data) is None
    assert Readings(SOURCES.get("func_duration"), data).varies(node)
    assert value_of(SOURCES.get("total_func_duration"), node, data) == pytest.approx(sum(passes))
    assert value_of(SOURCES.get("time"), node, data) == pytest.approx(sum(passes))
    assert value_of(SOURCES.get("num_passes"), node, data) == 3
    single = next(node for node in plan_of(data).nodes if node.name == "tanh_1_5:2")
    assert value_of(SOURCES.get("pass_number"), single, data) == 2
    assert value_of(SOURCES.get("total_func_duration"), single, data) == pytest.approx(sum(passes))


def test_what_ops_keep_for_the_backward_pass_adds_up_over_passes_but_not_over_ops() -> None:
    data = builders.loop(3)
    data.nodes.autograd_memory = [10] * len(data.nodes)
    rolled = next(node for node in plan_of(data, rolled=True).nodes if node.name == "tanh_1_5")
    assert value_of(SOURCES.get("autograd_memory"), rolled, data) == 30
    data = builders.demo()
    data.nodes.autograd_memory = [10] * len(data.nodes)
    box = next(node for node in plan_of(data, depth=1).nodes if node.kind == "module")
    assert value_of(SOURCES.get("autograd_memory"), box, data) is None


def test_forward_and_backward_flops_are_summed_where_both_are_known() -> None:
    data = builders.chain()
    count = len(data.nodes)
    data.nodes.flops, data.nodes.flops_backward = [1] * count, [None, *[2] * (count - 1)]
    assert SOURCES.get("flops_total").column(data) == [None, *[3] * (count - 1)]


def test_an_op_without_a_kernel_has_no_device_time_and_adds_nothing() -> None:
    data = builders.demo()
    box = next(node for node in plan_of(data, depth=1).nodes if node.kind == "module")
    ops = [i for i in box.members if data.nodes.kind[i] == "op"]
    count = len(data.nodes)
    data.nodes.device_time = [None if i == ops[0] else 7 for i in range(count)]
    source = SOURCES.get("device_time")
    data.nodes.num_kernels = [0 if i == ops[0] else 1 for i in range(count)]
    assert value_of(source, box, data) == 7 * (len(ops) - 1)
    # Not joined is not the same as no kernel.
    data.nodes.num_kernels = [None if i == ops[0] else 1 for i in range(count)]
    assert value_of(source, box, data) is None


def test_every_name_of_the_options_is_a_source_and_the_other_way_round() -> None:
    table = options()
    assert {*table["color_by"].choices, *table["size_by"].choices} == set(SOURCES)
    assert set(SOURCES) - set(table["color_by"].choices) == {"dims"}


def test_ops_that_launched_no_kernel_have_no_device_time_however_many_are_drawn_as_one() -> None:
    data = builders.loop(3)
    for kernels, known in ((0, False), (2, True)):
        data.nodes.num_kernels = [kernels] * len(data.nodes)
        data.nodes.device_time = [7 if kernels else None] * len(data.nodes)
        for given in ({}, {"rolled": True}, {"depth": 1}, {"depth": 1, "rolled": True}):
            readings = Readings(SOURCES.get("device_time"), data)
            for node in plan_of(data, **given).nodes:
                ops = [i for i in node.members if data.nodes.kind[i] == "op"]
                assert readings.value(node) == (7 * len(ops) if known and ops else None)
                assert readings.is_idle(node) == (bool(ops) and not known)


@pytest.mark.parametrize("name", SOURCES.names())
def test_inputs_and_outputs_have_what_a_tensor_has_and_nothing_of_a_call(name: str) -> None:
    data = builders.demo()
    data.nodes.stats = [(OutStats(4, 0.5, 1.0, 1.0),)] * len(data.nodes)
    ends = [node for node in plan_of(data).nodes if node.kind in ("input", "output")]
    known = {Readings(SOURCES.get(name), data).value(node) is not None for node in ends}
    assert known == {name in ("bytes", "activation_memory", "magnitude", "dims")}
