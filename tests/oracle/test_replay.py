"""Every recorded op of the 85 oracle models gives its values again from its recorded parents."""

from __future__ import annotations

import pytest
import torch

import torchlens as tl
from tests.oracle import zoo
from tests.oracle.facts import RECORDS


def _case(record: dict) -> object:
    heavy = () if record["family"] == "zoo" else (pytest.mark.models,)
    return pytest.param(record, id=record["key"], marks=heavy)


@pytest.mark.parametrize("record", [_case(record) for record in RECORDS])
def test_recording_replays(record: dict) -> None:
    model = zoo.build_model(record)
    args, kwargs = zoo.make_inputs(record)
    torch.manual_seed(2)
    # Whether each argument matters is shown for the small models: for large ones it takes many forwards.
    small = record["family"] == "zoo"
    report = tl.validation.validate_forward_pass(model, args, input_kwargs=kwargs, perturb=small, budget=3)
    assert report.ok, report
    tried, wanted = report.ancestors
    assert tried > 0 or not wanted
    # What cannot be compared is uninitialised memory only; everything else was called again.
    assert {row.reason for row in report.not_compared} <= {"uninitialised memory"}, report
    assert report.replayed == report.ops - len(report.not_compared)
