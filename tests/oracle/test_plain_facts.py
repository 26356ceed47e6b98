"""Calls, edges, shapes, module calls, parameters and outputs agree with what plain PyTorch says, on 85 models."""

from __future__ import annotations

import pytest

from tests.oracle.facts import RECORDS, differences, trace_second_forward


def _case(record: dict) -> object:
    heavy = () if record["family"] == "zoo" else (pytest.mark.models,)
    return pytest.param(record, id=record["key"], marks=heavy)


@pytest.mark.parametrize("record", [_case(record) for record in RECORDS])
def test_trace_agrees_with_plain_facts(record: dict) -> None:
    trace = trace_second_forward(record)
    trace.check()
    assert list(differences(record, trace.data)) == []
