"""One number per node: exact sums or nothing."""

from __future__ import annotations

import math

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.plan import make_plan
from torchlens.plan.graph import Plan
from torchlens.records.trace_data import TraceData
from torchlens.scene.values import SOURCES, total, value_of
from torchlens.settings.compose import resolve


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
    with pytest.raises(InvalidArgumentError, match="bytes, flops, time"):
        SOURCES.get("speed")
