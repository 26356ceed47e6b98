"""What a view needs of a trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import builders
from torchlens.base.errors import EvidenceError, InvalidArgumentError, TorchLensWarning
from torchlens.records.ops import ArgRef, LayerRecord
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import NodeTable, TraceData
from torchlens.settings.compose import resolve
from torchlens.settings.evidence import ADDITIVE, DETAIL_LIMIT, FAMILIES, NEEDS, SOURCES, check_bound, lacking
from torchlens.settings.options import DrawOptions, options


def _trace(
    time: float | None = 0.1,
    flops: int | None = 5,
    nbytes: int | None = 8,
    input_time: float | None = None,
    shape: tuple[int, ...] | None = (2,),
) -> TraceData:
    """An input and one op."""
    spec = TensorSpec(shape, "float32", "cpu", nbytes)
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
    assert 'view="overview"' in caught.value.remedy


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


def test_every_family_has_sources_and_every_source_with_one_is_a_source() -> None:
    assert set(SOURCES) < set(options()["color_by"].choices)
    assert set(SOURCES.values()) == set(FAMILIES)
    assert set(ADDITIVE) <= set(SOURCES)


def test_a_view_may_need_every_family() -> None:
    assert set(FAMILIES) < set(NEEDS)


def _view(*needs: str, **keys: object) -> dict[str, object]:
    return {"view": {"question": "q", "needs": list(needs), **keys}}


def test_shapes() -> None:
    resolve(builders.chain(), _view("shapes"))
    with pytest.raises(EvidenceError, match=r"\[view_headline_evidence_missing\].*about shapes"):
        resolve(_trace(shape=None), _view("shapes"))


def test_several_passes() -> None:
    resolve(builders.loop(), _view("several_passes"))
    with pytest.raises(EvidenceError, match=r"\[view_single_pass_no_sequence\].*view=.overview."):
        resolve(builders.chain(), _view("several_passes"))


def test_attention() -> None:
    b = builders.Builder()
    x = b.input()
    b.output(b.op("scaled_dot_product_attention", [x, x, x]))
    single = b.build()
    focus = {"draw": {"module": {"resolve": "first_attention_block"}}}
    with pytest.raises(EvidenceError, match=r"\[view_attention_subject_absent\].*view=.overview."):
        resolve(builders.residual(), _view("attention", **focus))
    with pytest.raises(EvidenceError, match=r"\[view_attention_subject_absent\].*no block that does repeats.*module="):
        resolve(single, _view("attention", **focus))
    # Somebody else says what to show.
    assert resolve(single, {**_view("attention", **focus), "module": None}).options.module is None
    resolve(single, _view("attention"))


def test_detail_counts_what_is_drawn() -> None:
    many = builders.loop(DETAIL_LIMIT // 4 + 1)
    with pytest.raises(EvidenceError, match=r"\[view_above_detail_budget\].*2,005 are more than 2,000.*module="):
        resolve(many, _view("detail"))
    for given in ({"rolled": True}, {"collapse": "auto"}, {"collapse": 0.5}, {"module": "rec"}):
        assert resolve(many, {**_view("detail"), **given})
    for same in ("none", 0.0):
        with pytest.raises(EvidenceError, match="view_above_detail_budget"):
            resolve(many, {**_view("detail"), "collapse": same})


def test_edits_are_refused_without_a_trace() -> None:
    said = r"\[surgery_evidence_missing\] view='interventions'.*overview"
    with pytest.raises(EvidenceError, match=said):
        resolve(builders.chain(), {"view": "interventions"})
    with pytest.raises(EvidenceError, match=said):
        check_bound("interventions", ("flops", "edits"))
    check_bound("speed", [name for name in NEEDS if name != "edits"])


def test_a_wish_without_a_fallback_is_treated_like_a_keyword() -> None:
    draw = {"stack_by": "auto", "show_saved_for_backward": True}
    with pytest.raises(InvalidArgumentError, match="stack_by_auto_underivable"):
        resolve(builders.chain(), {"view": {"question": "q", "draw": draw}})
    view = {"question": "q", "draw": draw, "fallback": dict.fromkeys(draw, "drop")}
    with pytest.warns(TorchLensWarning, match="view_secondary_degraded") as caught:
        request = resolve(builders.chain(), {"view": view})
    assert len(caught) == len(request.left_out) == 2
    assert (request.options.stack_by, request.options.show_saved_for_backward) == (None, False)
    assert request.origin["stack_by"] == "view:given, left out"


def test_a_fallback_does_not_touch_what_somebody_asks_for_in_person() -> None:
    view = {"question": "q", "draw": {"stack_by": "auto"}, "fallback": {"stack_by": "drop"}}
    with pytest.raises(InvalidArgumentError, match="stack_by_auto_underivable"):
        resolve(builders.chain(), {"view": view, "stack_by": "auto"})


def test_a_source_of_no_family_is_not_refused_by_a_view() -> None:
    for source in ("pass_number", abs):
        assert resolve(_trace(flops=None), {"view": "speed", "color_by": source}).options.color_by == source


def test_what_was_not_measured_is_named_with_its_remedy() -> None:
    with pytest.warns(TorchLensWarning, match=r"\[view_secondary_degraded\].*not measured.*saved_for_backward=True"):
        resolve(_trace(), {"show_saved_for_backward": True})
    assert lacking(_trace(), DrawOptions()) == []
    assert lacking(_trace(), DrawOptions(node_label_fields=("name", "saved")))


def test_a_run_without_gradients_is_told_from_one_that_kept_nothing() -> None:
    data = _trace()
    data.saved_for_backward = 0
    (lack,) = lacking(data, DrawOptions(show_saved_for_backward=True))
    assert "without gradients" in lack.what
    assert "tl.trace(" in lack.fix
    (spec,) = data.nodes.outs[1]
    data.nodes.outs = (data.nodes.outs[0], (replace(spec, requires_grad=True),))
    assert lacking(data, DrawOptions(show_saved_for_backward=True)) == []
    data.saved_for_backward = 8
    assert lacking(data, DrawOptions(show_saved_for_backward=True)) == []
