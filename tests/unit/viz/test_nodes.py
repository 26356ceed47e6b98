"""Ready-made hooks: what each writes, where it stays silent, and how they combine."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.unit.viz.conftest import Net, record
from torchlens.base.errors import InvalidArgumentError, UnknownNameError
from torchlens.record_views import Layer, Module, Op
from torchlens.scene.model import SceneNode
from torchlens.scene.node_spec import NodeSpec
from torchlens.trace_view import Trace
from torchlens.viz import nodes


def drawn(trace: Trace, hook: Any, **options: Any) -> dict[str, SceneNode]:
    return {node.name: node for node in trace.draw(node_spec_fn=hook, **options)._scene.nodes}


def last(node: SceneNode) -> str:
    return node.rows[-1].lines[0]


def test_hooks_are_told_views_of_the_trace(trace: Trace, looped: Trace) -> None:
    seen: list[Any] = []
    boxes: list[Any] = []
    trace.draw(
        node_spec_fn=lambda record, spec: seen.append(record),
        collapsed_node_spec_fn=lambda record, spec: boxes.append(record),
        depth=1,
    )
    assert {type(record) for record in seen} == {Op}
    assert [type(record) for record in boxes] == [Module]
    assert boxes[0].address == "features"
    rolled: list[Any] = []
    looped.draw(node_spec_fn=lambda record, spec: rolled.append(record), rolled=True)
    assert [type(record) for record in rolled] == [Op, Layer, Layer, Op]
    assert rolled[1].num_passes == 3


def test_a_chain_calls_all_in_order(trace: Trace) -> None:
    def first(record: Any, spec: NodeSpec) -> NodeSpec:
        return spec.replace(lines=["one"])

    def second(record: Any, spec: NodeSpec) -> None:
        spec.lines = [*spec.lines, "two"]

    found = drawn(trace, nodes.chain(first, second))
    assert {tuple(row.lines[0] for row in node.rows) for node in found.values()} == {("one", "two")}
    assert nodes.chain(first, second).__qualname__.endswith("second)")
    assert drawn(trace, nodes.chain()) == drawn(trace, None)


@pytest.mark.parametrize(
    "target", [tl.func("relu"), "relu_1_2", tl.module("features.1"), lambda op: op.func_name == "relu"]
)
def test_highlight_marks_what_is_meant(trace: Trace, target: Any) -> None:
    found = drawn(trace, nodes.highlight(target, color="#d1242f", penwidth=5, fillcolor="#ffeeee"))
    assert [name for name, node in found.items() if node.style.stroke == "#d1242f"] == ["relu_1_2"]
    style = found["relu_1_2"].style
    assert (style.stroke_width, style.fill) == (5, "#ffeeee")


def test_highlight_marks_the_box_that_holds_it(trace: Trace) -> None:
    drawing = trace.draw(collapsed_node_spec_fn=nodes.highlight(tl.func("relu")), depth=1)
    assert [node.name for node in drawing._scene.nodes if node.style.stroke == "#d1242f"] == ["module:features:1"]
    assert not [
        node for node in trace.draw(collapsed_node_spec_fn=nodes.highlight("head"), depth=1)._scene.nodes
        if node.style.stroke == "#d1242f"
    ]  # fmt: skip


def test_one_hook_serves_several_traces(trace: Trace, looped: Trace) -> None:
    hook = nodes.highlight(tl.func("linear"))
    for each, names in (
        (trace, ["linear_1_5"]),
        (looped, ["linear_1_1:1", "linear_1_1:2", "linear_1_1:3"]),
        (trace, ["linear_1_5"]),
    ):
        assert [name for name, node in drawn(each, hook).items() if node.style.stroke == "#d1242f"] == names


def test_a_selector_that_matches_nothing_is_named_with_the_hook(trace: Trace) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"highlight at input_1 raised UnknownNameError.*selector_no_match"
    ) as caught:
        trace.draw(node_spec_fn=nodes.highlight(tl.func("conv9")))
    assert isinstance(caught.value.__cause__, UnknownNameError)


def test_shade_runs_from_the_least_to_the_largest_and_writes_the_number(trace: Trace) -> None:
    found = drawn(trace, nodes.shade("activation_memory", ramp=["#ffffff", "#000000"]))
    sizes = {op.label: op.activation_memory for op in trace.ops}
    least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    assert found[least].style.fill == "#ffffff"
    assert found[most].style.fill == "#000000"
    assert found[most].style.font_color == "#ffffff"
    assert last(found[least]) == f"activation_memory: {sizes[least]}"
    assert found["input_1"].rows == drawn(trace, None)["input_1"].rows


def test_shade_leaves_alone_what_has_no_one_number(looped: Trace) -> None:
    passes = {"linear_1_1": "three"}
    found = drawn(looped, nodes.shade(lambda op: op.pass_number, name="pass"), rolled=True)
    assert found["linear_1_1"].rows == drawn(looped, None, rolled=True)["linear_1_1"].rows
    some = drawn(looped, nodes.shade(lambda op: 1.5 if op.label in passes else None, name="x"), rolled=True)
    assert last(some["linear_1_1"]) == "x: 1.5"


def test_statistics_tell_the_size_of_values_and_what_is_not_finite() -> None:
    class Bad(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.log(x) + 1

    trace = tl.trace(Bad(), torch.tensor([[-1.0, 0.0, 1.0, 1.0]]))
    found = drawn(trace, nodes.statistics())
    assert last(found["input_1"]) == "|x|: mean 0.75, max 1"
    assert [row.lines[0] for row in found["log_1_1"].rows][-2:] == ["|x|: mean 0, max 0", "1 NaN, 1 -Inf of 4"]


def test_statistics_have_nothing_to_say_without_values(facts: Trace) -> None:
    assert drawn(facts, nodes.statistics()) == drawn(facts, None)


@pytest.mark.parametrize("hook", [nodes.rdm(), nodes.mds(), nodes.feature_maps()], ids=lambda hook: hook.__qualname__)
def test_plots_stand_in_the_nodes_that_have_one(trace: Trace, hook: Any) -> None:
    found = drawn(trace, hook)
    assert found["conv2d_1_1"].pictures
    assert found["conv2d_1_1"].style.shape == "box"
    shown = [name for name, node in found.items() if node.pictures]
    assert ("mean_1_4" in shown) == (hook.__qualname__ != "feature_maps")
    assert drawn(trace, hook) == found


def test_plots_say_what_they_show(trace: Trace) -> None:
    rows = [row.lines[0] for row in drawn(trace, nodes.rdm("head"))["linear_1_5"].rows]
    assert rows[-2] == "RDM (correlation): 6 items"
    assert rows[-1].startswith("0 (dark) to ")
    rows = [row.lines[0] for row in drawn(trace, nodes.mds("head"))["linear_1_5"].rows]
    assert rows[-3] == "MDS (euclidean): 6 items"
    assert rows[-2].endswith("% of the variance in the plane")
    assert rows[-1] == "colour: order"
    assert last(drawn(trace, nodes.feature_maps(max_channels=4))["conv2d_1_1"]) == "4 of 6 channels, item 0"


def test_a_target_limits_the_plots(trace: Trace) -> None:
    found = drawn(trace, nodes.rdm(tl.module("features")))
    assert [name for name, node in found.items() if node.pictures] == ["maxpool2d_1_3"]


def test_a_long_batch_is_cut_and_says_so() -> None:
    torch.manual_seed(0)
    trace = record(Net(), 70, 3, 4, 4)
    assert "RDM (correlation): first 64 of 70 items" in [
        row.lines[0] for row in drawn(trace, nodes.rdm("head"))["linear_1_5"].rows
    ]


def test_a_batch_that_is_too_small_or_not_finite_has_no_plot() -> None:
    torch.manual_seed(0)
    single = record(Net(), 1, 3, 4, 4)
    assert not [node for node in drawn(single, nodes.rdm()).values() if node.pictures]
    bad = tl.trace(nn.ReLU(), torch.full((4, 3), float("nan")))
    assert not [node for node in drawn(bad, nodes.mds()).values() if node.pictures]


def test_rolled_passes_have_no_common_picture(looped: Trace) -> None:
    found = drawn(looped, nodes.rdm(), rolled=True)
    assert not found["linear_1_1"].pictures
    assert found["input_1"].pictures


def test_a_trace_without_values_is_refused_by_the_name_of_the_hook(facts: Trace) -> None:
    with pytest.raises(InvalidArgumentError, match=r"rdm at input_1 .*payload_unavailable.*save="):
        facts.draw(node_spec_fn=nodes.rdm())


def test_values_kept_for_some_ops_are_plotted_there() -> None:
    torch.manual_seed(0)
    trace = record(Net(), 6, 3, 8, 8, save=["head"])
    assert [name for name, node in drawn(trace, nodes.rdm()).items() if node.pictures] == ["linear_1_5"]


def test_a_plot_of_ones_own(trace: Trace) -> None:
    from PIL import Image

    def square(value: Any) -> Any:
        return Image.new("RGB", (100, 100), "red") if value.dim() == 2 else None

    found = drawn(trace, nodes.plot(square))
    assert [name for name, node in found.items() if node.pictures] == ["mean_1_4", "linear_1_5", "output_1"]


def test_classes_colour_the_points(trace: Trace) -> None:
    plain, grouped = drawn(trace, nodes.mds("head")), drawn(trace, nodes.mds("head", groups=[0, 1, 0, 1, 0, 1]))
    assert last(grouped["linear_1_5"]) == "colour: group"
    assert plain["linear_1_5"].pictures[0].name != grouped["linear_1_5"].pictures[0].name


@pytest.mark.parametrize("make", [nodes.rdm, nodes.mds])
def test_an_unknown_metric_is_refused_at_once(make: Any) -> None:
    with pytest.raises(ValueError, match="correlation, cosine, euclidean"):
        make(metric="manhattan")


def test_a_drawing_keeps_neither_the_trace_nor_the_hook() -> None:
    torch.manual_seed(0)
    trace = record(Net(), 6, 3, 8, 8)

    def note(record: Any, spec: NodeSpec, whole: Trace = trace) -> None:
        spec.lines.append(str(len(whole)))

    drawing = trace.draw(node_spec_fn=nodes.chain(nodes.highlight("head"), nodes.shade("activation_memory"), note))
    watched, called = weakref.ref(trace), weakref.ref(note)
    assert drawing.settings["node_spec_fn"][0].startswith("chain(highlight, shade(activation_memory)")
    assert "node_spec_fn" in str(drawing.explain())
    del trace, note
    gc.collect()
    assert watched() is None
    assert called() is None
    assert drawing.data


def test_what_is_no_function_is_refused(trace: Trace) -> None:
    for value in ("highlight", 3, NodeSpec):
        with pytest.raises(InvalidArgumentError, match="in YAML a _target_") as caught:
            trace.draw(node_spec_fn=value)  # type: ignore[arg-type]
        assert caught.value.code == "draw_node_spec_fn_invalid"
