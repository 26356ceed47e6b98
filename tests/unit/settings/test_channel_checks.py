"""What a trace must hold for a channel, and what must not be asked together."""

from __future__ import annotations

import pytest

from tests import builders
from torchlens.base.errors import EvidenceError, InvalidArgumentError, TorchLensWarning
from torchlens.drawings import draw_trace
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import TraceData
from torchlens.settings.channel_checks import has_channel, measures
from torchlens.settings.compose import resolve
from torchlens.settings.evidence import in_lockstep


@pytest.mark.parametrize("option", ["color_by", "size_by"])
@pytest.mark.parametrize(
    ("source", "code", "remedy"),
    [
        ("grad_norm", "encoding_evidence_missing", "another source"),
        ("magnitude", "encoding_evidence_missing", "out_stats=True"),
        ("autograd_memory", "encoding_evidence_missing", "saved_for_backward=True"),
        ("num_autograd_tensors", "encoding_evidence_missing", "saved_for_backward=True"),
        ("device_time", "device_time_unavailable", "kernel_profile"),
    ],
)
def test_what_was_not_measured_is_refused_with_the_way_to_get_it(
    option: str, source: str, code: str, remedy: str
) -> None:
    with pytest.raises(EvidenceError, match=remedy) as caught:
        resolve(builders.demo(), {option: source})
    assert caught.value.code == code
    assert resolve(None, {option: source}).options


def test_what_was_measured_is_not() -> None:
    data = builders.demo()
    data.saved_for_backward, data.kernel_join = 0, "joined"
    data.nodes.stats = [(OutStats(1, 1.0, 1.0, 1.0),)] * len(data.nodes)
    for source in ("magnitude", "autograd_memory", "device_time"):
        assert resolve(data, {"color_by": source}).options.color_by == source


def test_a_join_that_failed_says_why() -> None:
    data = builders.demo()
    data.kernel_join = "3 of 12 ops were not found in the profiler's session"
    with pytest.raises(EvidenceError, match=r"\[device_time_unavailable\] 3 of 12 ops"):
        resolve(data, {"size_by": "device_time"})


@pytest.mark.parametrize("given", [{"color_by": "time"}, {"size_by": "bytes"}, {"stack_by": True}, {"color_by": abs}])
def test_a_channel_needs_the_layout_of_the_engine(given: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_requires_dot_layout\]"):
        resolve(None, {"layout": "rank", **given})
    assert has_channel(resolve(None, given).options)


@pytest.mark.parametrize("given", [{"size_scale": "linear"}, {"size_cap": 3}])
def test_a_size_scale_without_a_size_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[scale_requires_size_by\]"):
        resolve(None, given)
    assert resolve(None, {"size_by": "dims", **given}).options.size_by == "dims"


@pytest.mark.parametrize("scale", ["log", "rank"])
def test_sizes_have_two_scales(scale: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_scale_invalid\].*sqrt, linear"):
        resolve(None, {"size_by": "bytes", "size_scale": scale})


@pytest.mark.parametrize("source", ["speed", "dims", True, 3, int])
def test_an_unknown_source_is_refused_with_the_names(source: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_source_invalid\].*time, bytes, flops.*a function"):
        resolve(None, {"color_by": source})


def test_lockstep_is_a_matter_of_pass_numbers_in_the_order_of_execution() -> None:
    assert in_lockstep(builders.loop(3))
    assert not in_lockstep(builders.chain())
    b = builders.Builder()
    h = b.input()
    for _ in range(2):
        for _ in range(2):
            h = b.op("tanh", [h], layer="inner")
        h = b.op("relu", [h], layer="outer")
    assert not in_lockstep(b.build())


def test_a_recording_for_drawings_measures_what_they_show() -> None:
    def measured(*drawn: dict[str, object]) -> tuple[bool, bool]:
        return measures([resolve(None, given).options for given in drawn])

    assert measured({}, {"color_by": "time"}) == (False, False)
    assert measured({}, {"color_by": "magnitude"}) == (False, True)
    assert measured({"size_by": "autograd_memory"}) == (True, False)
    assert measured({"show_saved_for_backward": True}, {"size_by": "magnitude"}) == (True, True)


def test_a_recording_for_a_view_measures_what_the_view_shows() -> None:
    assert measures([resolve(None, {"view": "memory"}).options]) == (True, False)
    assert measures([resolve(None, {"view": "memory", "show_saved_for_backward": False}).options]) == (False, False)
    assert measures([resolve(None, {"view": "speed"}).options]) == (False, False)


@pytest.mark.parametrize(
    ("data", "given", "why"),
    [
        (builders.chain(), {}, "they do not run in lockstep"),
        (builders.loop(), {"rolled": True}, "they are drawn as one"),
    ],
)
def test_columns_that_a_view_cannot_have_are_left_out_with_a_word(
    data: TraceData, given: dict[str, object], why: str
) -> None:
    view = {"question": "q", "draw": {"stack_by": "auto", "color_by": "pass_number"}, "fallback": {"stack_by": "drop"}}
    with pytest.warns(TorchLensWarning, match=rf"\[view_secondary_degraded\] passes not aligned: {why}"):
        request = resolve(data, {"view": view, **given})
    assert request.options.stack_by is None
    assert request.left_out == (f"passes not aligned: {why}",)
    assert request.origin["stack_by"] == "view:given, left out"
    assert request.trail["stack_by"][0] == ("view:given", "auto")
    fine = resolve(builders.loop(), {"view": view})
    assert (fine.options.stack_by, fine.left_out) == ("auto", ())
    # Asked for in person, the same is refused.
    with pytest.raises(InvalidArgumentError, match=r"stack_by_(auto_underivable|requires_unrolled)"):
        resolve(data, {"view": view, "stack_by": True, **given})


def test_the_caption_says_that_the_columns_were_left_out() -> None:
    view = {"question": "q", "draw": {"stack_by": "auto"}, "fallback": {"stack_by": "drop"}}
    with pytest.warns(TorchLensWarning, match="view_secondary_degraded"):
        drawing = draw_trace(builders.chain(), None, {"view": view})
    assert "passes not aligned: they do not run in lockstep" in drawing.dot
    assert "rank=same" not in drawing.dot


@pytest.mark.parametrize(
    "given", [{"view": "debug"}, {"show_nonfinite": True}, {"node_label_fields": ["name", "nonfinite"]}]
)
def test_what_shows_nonfinite_values_needs_statistics(given: dict[str, object]) -> None:
    assert measures([resolve(None, given).options]) == (False, True)
    plain = [{}, {"view": "debug", "show_nonfinite": False}]
    assert measures([resolve(None, one).options for one in plain]) == (False, False)
