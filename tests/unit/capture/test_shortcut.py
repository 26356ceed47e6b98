"""The shortcut and the general way record the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording
from tests.oracle import zoo
from tests.oracle.facts import RECORDS
from torchlens.capture.dispatch import Recorder

HAND_WRITTEN = [record for record in RECORDS if "zoo" in record["build"]]


def facts(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(2)
    trace = tl.trace(model, args, input_kwargs=kwargs)
    trace.check()
    found = trace.to_dict()
    for node in found["nodes"]:
        node.pop("time_s")
    found["totals"].pop("time_s")
    found["sites"] = list(trace.data.nodes.site)
    found["arguments"] = [op.parent_arg_positions for op in trace.nodes]
    found["calls"] = trace.data.calls
    return found


@pytest.mark.parametrize("record", HAND_WRITTEN, ids=[record["key"] for record in HAND_WRITTEN])
def test_both_ways_record_the_same(record: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    quick = facts(zoo.build_model(record), *zoo.make_inputs(record))
    monkeypatch.setattr(Recorder, "fast", False)
    assert facts(zoo.build_model(record), *zoo.make_inputs(record)) == quick


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        (nn.Sequential(nn.Linear(4, 4), nn.Tanh()), True),
        (nn.Softmax(dim=1), True),
        (nn.ReLU(inplace=True), False),  # writes
        (recording.ListWrite(), False),  # tensors in a list
    ],
    ids=["plain", "keyword", "in_place", "list"],
)
def test_which_calls_take_it(model: nn.Module, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlens.capture.shortcut import Shortcut

    seen: list[object] = []
    append = Shortcut.append

    def spy(self: Shortcut, *args: Any) -> None:
        seen.append(args[0])
        append(self, *args)

    monkeypatch.setattr(Shortcut, "append", spy)
    trace = tl.trace(model, torch.randn(4, 4))
    assert (len(seen) == len(trace)) is taken


def test_inference_tensors_and_unsafe_writes_go_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlens.capture.shortcut import Shortcut

    monkeypatch.setattr(Shortcut, "append", lambda *_: pytest.fail("a call without version took the shortcut"))
    with torch.inference_mode():
        trace = tl.trace(nn.Tanh(), torch.randn(3))
    assert trace.ops[0].parents == ("input_1",)
