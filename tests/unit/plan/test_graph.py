"""Counts come from members."""

from __future__ import annotations

from tests import builders
from torchlens.plan.graph import buffer_versions, call_address, tally, tally_network


def test_the_network_counts_every_op_and_every_parameter() -> None:
    data = builders.demo()
    counts = tally_network(data)
    assert (counts.ops, counts.output_bytes, counts.params, counts.trainable) == (12, 19832, 1610, 1610)


def test_members_count_ops_versions_and_each_parameter_once() -> None:
    data = builders.loop(3)
    linears = [i for i, label in enumerate(data.nodes.label) if label.startswith("linear_1_2")]
    counts = tally(data, linears)
    assert (counts.ops, counts.params) == (3, 72)
    frozen = tally(builders.state(), [1])
    assert (frozen.params, frozen.trainable) == (72, 0)


def test_addresses_carry_a_number_only_where_there_are_several_calls() -> None:
    data = builders.loop(2)
    assert call_address(data, 0) == "self"
    assert call_address(data, 1) == "inp:1"
    assert call_address(builders.chain(), 1) == "fc1"


def test_versions_of_buffers_are_numbered_from_one() -> None:
    data = builders.demo()
    first = data.buffers[0]
    assert [buffer_versions(data)[node] for node in first.versions] == [(0, 1), (0, 2)]
