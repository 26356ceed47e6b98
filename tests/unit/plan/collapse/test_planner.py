"""The report of a folded drawing, names and rows of its capsules, and the folded plan in its contexts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder, Ref
from tests.honesty import make
from torchlens.base.errors import TorchLensWarning
from torchlens.plan.graph import FOLD, MODULE, SEGMENT, Plan, PlanNode, tally
from torchlens.records.trace_data import TraceData
from torchlens.scene import build
from torchlens.settings.compose import resolve


def _rows(data: TraceData, **options: object) -> dict[str, list[str]]:
    request = resolve(data, options)
    scene = build(make(data, **options), data, request)
    return {node.name: [line for row in node.rows for line in row.lines] for node in scene.nodes}


def _kind(plan: Plan, kind: str) -> list[PlanNode]:
    return [node for node in plan.nodes if node.kind == kind]


def test_the_report_counts_what_is_drawn() -> None:
    data = builders.residual(8)
    plan = make(data, collapse="max")
    report = plan.collapse
    assert report is not None
    assert (report.mode, report.planner, report.nodes, report.total) == ("max", "quality", 9, 44)
    assert report.collapsed == tuple(f"blocks.{k}" for k in range(8))
    assert [(s.name, s.members) for s in report.segments] == [
        ("segment:blocks.0-5", tuple(f"blocks.{k}" for k in range(6)))
    ]
    assert (report.folds, report.bundles, report.manifest) == ((), (), ())
    assert report.context["rolled"] is False
    assert report.context["theme"] == "torchlens"
    with pytest.raises(TypeError):
        report.context["rolled"] = True  # type: ignore[index]


def test_a_segment_says_what_it_holds() -> None:
    rows = _rows(builders.residual(8), collapse="max")
    assert rows["segment:blocks.0-5"] == ["blocks.0-5 -- 6 blocks", "30 ops", "1.68K params"]
    assert rows["module:blocks.6:1"][0] == "@blocks.6"


def test_a_fold_counts_the_others_and_stands_in_their_frame() -> None:
    data = builders.residual(8)
    plan = make(data, fold_repeats=True)
    assert len(plan.nodes) == 6
    (head,), (rest,) = _kind(plan, MODULE), _kind(plan, FOLD)
    assert tally(data, head.members).ops == 5, "the residual add is inside"
    assert tally(data, rest.members).ops == 35
    assert rest.name == "fold:blocks.0"
    assert _rows(data, fold_repeats=True)["fold:blocks.0"] == ["... +7 more Block"]
    edges = {(plan.nodes[e.source].name, plan.nodes[e.target].name): e.tensors for e in plan.edges}
    assert edges == {
        ("input_1", "linear_1_1"): 1,
        ("linear_1_1", head.name): 2,
        (head.name, rest.name): 2,
        (rest.name, "linear_18_42"): 1,
        ("linear_18_42", "output_1"): 1,
    }


def _rounds(rounds: int = 2, blocks: int = 4) -> TraceData:
    b = Builder("Loop")
    h = b.input()
    for _ in range(rounds):
        for k in range(blocks):
            with b.module(f"blocks.{k}", "Block") as block:
                h = b.op("neg", [b.op("relu", [h], layer=("relu", k))], layer=("neg", k))
                block.returns = [h]
        h = b.op("exp", [h], layer="exp")
    b.output(h)
    return b.build()


def test_rolled_a_fold_tells_modules_from_calls() -> None:
    rows = _rows(_rounds(), rolled=True, fold_repeats=True)
    assert rows["fold:blocks.0"] == ["... +3 more Block (6 calls)"]
    plan = make(_rounds(), rolled=True, fold_repeats=True)
    (rest,) = _kind(plan, FOLD)
    assert rest.passes == 2
    ends = {(plan.nodes[e.source].kind, plan.nodes[e.target].kind): e for e in plan.edges}
    assert ends[FOLD, "op"].tensors == 1, "in each round one"
    assert ends["op", MODULE].back


def test_unrolled_each_round_folds_by_itself() -> None:
    rows = _rows(_rounds(), fold_repeats=True)
    assert [name for name in rows if name.startswith("fold:")] == ["fold:blocks.0:1", "fold:blocks.0:2"]
    assert rows["fold:blocks.0:2"] == ["... +3 more Block"]


def test_calls_of_one_module_in_a_row_are_counted_as_calls() -> None:
    b = Builder("Loop")
    h = b.input()
    for _ in range(40):
        with b.module("cell", "Cell") as cell:
            h = b.op("neg", [b.op("tanh", [b.linear("cell.fc", h, 8, layer="fc")], layer="t")], layer="n")
            cell.returns = [h]
    b.output(h)
    rows = _rows(b.build(), collapse="max")
    assert rows["segment:cell:1-30"] == ["cell:1-30 -- 30 calls", "90 ops", "72 params"]
    assert rows["segment:cell:31-40"][0] == "cell:31-40 -- 10 calls"


def test_a_chain_names_its_ends_and_the_modules_it_spans() -> None:
    b = Builder("Net")
    h = b.input()
    h = b.op("tanh", [b.batch_norm("norm", b.op("relu", [h]), 8)])
    for k in range(7):
        h = b.op("add", [h, b.op("sin", [b.linear(f"fc{k}", h, 8)])])
    b.output(h)
    rows = _rows(b.build(), collapse="max")
    assert rows["segment:relu_1_1-tanh_1_3"] == [
        "relu_1_1 ... tanh_1_3 -- 3 ops", "+ 2 buffers", "16 params", "spans @norm",
    ]  # fmt: skip


def test_segments_show_sums_where_nodes_show_costs() -> None:
    data = builders.residual(8)
    rows = _rows(data, collapse="max", node_style="profiling")["segment:blocks.0-5"]
    members = next(node.members for node in make(data, collapse="max").nodes if node.kind == SEGMENT)
    nbytes = sum(data.nbytes[i] or 0 for i in members)
    assert rows[-1] == f"out={nbytes / 1024:.1f} KB"
    assert rows[-2].startswith("t=")


def _outputs(count: int) -> TraceData:
    b = Builder("Decoder")
    with b.module("decoder", "Layers") as decoder:
        h, made = b.input(), list[Ref]()
        for k in range(count):
            h = b.op("relu", [b.linear(f"decoder.fc{k}", h, 8)])
            made.append(b.op("neg", [h], (1, 2, 8, 8)))
        decoder.returns = [h, *made]
    b.output(b.linear("head", h, 8), "logits")
    for k, ref in enumerate(made):
        b.output(ref, f"past_key_values.keys.{k}")
    return b.build()


def test_outputs_alike_are_one_node_in_an_overview() -> None:
    data = _outputs(12)
    rows = _rows(data, collapse="max")
    assert rows["outputs:past_key_values.keys"] == ["OUTPUTS: past_key_values.keys", "12 tensors, 1x2x8x8 each"]
    for options in ({"collapse": "none"}, {"collapse": 0.0}, {"collapse": "max", "rolled": True}):
        assert not _kind(make(data, **options), "outputs")
    assert not _kind(make(data, collapse="max", show_containers="labels"), "outputs")


def test_a_page_that_cannot_be_made_readable_says_so() -> None:
    b = Builder("Bare")
    left, right = b.input(), b.op("relu", [b.input("y")])
    for _ in range(60):
        left, right = b.op("add", [left, right]), b.op("mul", [left, right])
    b.output(b.op("add", [left, right]))
    data = b.build()
    with pytest.warns(TorchLensWarning, match="collapse_near_uncollapsed"):
        plan = make(data, collapse="auto")
    assert plan.collapse is not None
    assert plan.collapse.reason == (
        "no step reaches the band of 25: 125 of 125 nodes are what no module holds that could be a box"
    )
    with pytest.warns(TorchLensWarning):
        scene = build(make(data, collapse="auto"), data, resolve(data, {"collapse": "auto"}))
    assert any(getattr(line, "text", "") == "collapse: 125 nodes, above the readable band" for line in scene.root)


def test_level_0_is_the_full_drawing_with_a_report() -> None:
    data = builders.residual(3)
    plan, none = make(data, collapse=0.0), make(data)
    assert (plan.nodes, plan.edges, plan.boxes) == (none.nodes, none.edges, none.boxes)
    assert none.collapse is None
    assert plan.collapse is not None
    assert (plan.collapse.nodes, plan.collapse.total) == (19, 19)


@pytest.mark.parametrize("option", ["time", "bytes", "flops"])
def test_colours_of_segments_are_exact_sums(option: str) -> None:
    data = builders.residual(8)
    request = resolve(data, {"collapse": "max", "color_by": option})
    scene = build(make(data, collapse="max", color_by=option), data, request)
    fills = {node.name: node.style.fill for node in scene.nodes}
    assert fills["segment:blocks.0-5"] == request.theme.ramps["sequential"][-1], "it holds the most"
    assert "fold:blocks.0" not in fills


def test_a_fold_has_no_colour_of_its_own() -> None:
    data = builders.residual(8)
    request = resolve(data, {"fold_repeats": True, "color_by": "bytes"})
    scene = build(make(data, fold_repeats=True, color_by="bytes"), data, request)
    style = next(node.style for node in scene.nodes if node.kind == FOLD)
    assert (style.shape, style.font_color) == ("plaintext", request.theme.roles["ellipsis"].font_color)


def test_the_legend_explains_what_is_on_the_page(plan_legend: Callable[..., list[str]]) -> None:
    assert "dashed rounded: run of blocks or operations" in plan_legend(builders.residual(8), collapse="max")
    assert "... +N more: modules like the one before" in plan_legend(builders.residual(8), fold_repeats=True)
    assert "double ellipse: several outputs alike" in plan_legend(_outputs(12), collapse="max")
    assert not [line for line in plan_legend(builders.residual(8)) if "dashed rounded" in line or "+N" in line]


@pytest.fixture
def plan_legend() -> Callable[..., list[str]]:
    def make_legend(data: TraceData, **options: object) -> list[str]:
        request = resolve(data, {**options, "show_legend": True})
        scene = build(make(data, **options, show_legend=True), data, request)
        return [str(getattr(line, "text", "")) for line in scene.root]

    return make_legend


def test_sums_of_a_box_that_speaks_for_others_say_that_they_are_its_own() -> None:
    rows = _rows(builders.residual(4), fold_repeats=True, node_style="profiling")
    assert [line for line in rows["module:blocks.0:1"] if line.startswith(("t=", "out="))][1] == (
        "out=448 B (@blocks.0 only)"
    )
    assert rows["fold:blocks.0"] == ["... +3 more Block"]
    rounds = _rows(_rounds(), fold_repeats=True, node_style="profiling")
    assert rounds["module:blocks.0:2"][-1] == "out=128 B (@blocks.0:2 only)"
