"""What a view needs of a trace."""

from __future__ import annotations

import pytest

from torchlens.base.errors import EvidenceError, InvalidArgumentError
from torchlens.records.ops import ArgRef, LayerRecord
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import NodeTable, TraceData
from torchlens.settings.compose import resolve
from torchlens.settings.evidence import FAMILIES, SOURCES
from torchlens.settings.options import options


def _trace(
    time: float | None = 0.1, flops: int | None = 5, nbytes: int | None = 8, input_time: float | None = None
) -> TraceData:
    """An input and one op."""
    spec = TensorSpec((2,), "float32", "cpu", nbytes)
    nodes = NodeTable(
        label=("input_1", "relu_1_1"), layer=(0, 1), pass_number=(1, 1), kind=("input", "op"), func=("", "relu"),
        path=("", ""), parents=((), (ArgRef(0, 0, (0,)),)), outs=((spec,), (spec,)),
        time_s=(input_time, time), flops=(None, flops), macs=(None, None),
    )  # fmt: skip
    layers = [LayerRecord("input_1", "input", 1, None, (0,)), LayerRecord("relu_1_1", "relu", 1, 1, (1,))]
    return TraceData("Net", False, nodes, layers, [], [], [], [])


def test_a_view_with_its_evidence_passes() -> None:
    assert resolve(_trace(), {"view": "speed"}).options.color_by == "time"


@pytest.mark.parametrize(("need", "missing"), [("timings", "time"), ("bytes", "nbytes"), ("flops", "flops")])
def test_a_view_without_its_headline_evidence_is_refused(need: str, missing: str) -> None:
    view = {"question": "q", "needs": [need]}
    resolve(_trace(), {"view": view})
    with pytest.raises(EvidenceError, match=r"\[view_headline_evidence_missing\]") as caught:
        resolve(_trace(**{missing: None}), {"view": view})
    assert isinstance(caught.value, InvalidArgumentError)
    assert caught.value.remedy


def test_speed_needs_timings_even_when_coloured_by_something_else() -> None:
    with pytest.raises(EvidenceError, match="view_headline_evidence_missing"):
        resolve(_trace(time=None), {"view": "speed", "color_by": "bytes"})


def test_a_source_that_no_op_has_a_value_of_is_refused_under_a_view() -> None:
    with pytest.raises(EvidenceError, match=r"\[view_source_zero_coverage\].*colours by flops"):
        resolve(_trace(flops=None), {"view": "speed", "color_by": "flops"})


def test_what_is_known_of_inputs_is_no_evidence() -> None:
    with pytest.raises(EvidenceError, match="view_headline_evidence_missing"):
        resolve(_trace(time=None, input_time=0.0), {"view": "speed"})


def test_without_a_view_or_a_trace_nothing_is_refused() -> None:
    assert resolve(_trace(flops=None), {"color_by": "flops"}).options.color_by == "flops"
    assert resolve(None, {"view": "speed"}).view is not None


def test_every_colour_source_belongs_to_a_family() -> None:
    assert set(SOURCES) == set(options()["color_by"].choices)
    assert set(SOURCES.values()) == set(FAMILIES)
