"""`trace.annotate`: who is meant, what is kept, and that a file keeps it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import torchlens as tl
from torchlens.base.errors import InvalidArgumentError, UnknownNameError
from torchlens.records.notes import note_of
from torchlens.trace_view import Trace
from torchlens.viz.subjects import nodes_behind


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("relu_1_2", ("relu_1_2",)),
        ("features", ("maxpool2d_1_3",)),
        (tl.in_module("features"), ("conv2d_1_1", "relu_1_2", "maxpool2d_1_3")),
        (tl.func("linear") | tl.label("input_1"), ("input_1", "linear_1_5")),
        (lambda op: op.kind == "output", ("output_1",)),
    ],
)
def test_it_returns_the_labels_it_touched(trace: Trace, target: Any, labels: tuple[str, ...]) -> None:
    assert trace.annotate(target, data={"a": 1}) == labels
    assert [note_of(trace.data, i).data for i in range(len(trace.nodes)) if note_of(trace.data, i).data] == [
        {"a": 1}
    ] * len(labels)


def test_all_passes_are_meant(looped: Trace) -> None:
    assert looped.annotate("tanh_1_2", data=3) == ("tanh_1_2:1", "tanh_1_2:2", "tanh_1_2:3")


@pytest.mark.parametrize("target", ["relu_9", tl.func("relu9"), lambda op: False, 3])
def test_what_means_nothing_is_refused(trace: Trace, target: Any) -> None:
    with pytest.raises(UnknownNameError) as caught:
        trace.annotate(target, data=1)
    assert caught.value.code == "selector_no_match"


def test_nothing_to_attach_is_refused(trace: Trace) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        trace.annotate("relu_1_2")
    assert caught.value.code == "annotation_invalid"


def test_a_refused_picture_attaches_nothing(trace: Trace) -> None:
    with pytest.raises(InvalidArgumentError, match="image_unreadable"):
        trace.annotate("relu_1_2", data={"a": 1}, image="no such file.jpg")
    assert not trace.annotations.get("nodes")


def test_a_file_keeps_data_and_pictures(trace: Trace, tmp_path: Path) -> None:
    trace.annotate("relu_1_2", data={"score": [1, 2.5, None], "ok": True}, image=Image.new("RGB", (200, 100), "red"))
    trace.batch_render = "first"
    loaded = tl.load(trace.save(tmp_path / "a.tl"))
    assert loaded.annotations == trace.annotations
    assert loaded.batch_render == "first"
    first, second = trace.draw(), loaded.draw()
    assert first.dot == second.dot
    assert "score: [1, 2.5, null]" in first.dot.replace("&#91;", "[").replace("&#93;", "]")
    assert first.data == second.data


def test_the_input_shows_the_picture_it_was_made_from(tmp_path: Path) -> None:
    import torch

    from tests.unit.viz.conftest import Net

    Image.new("RGB", (200, 100), "blue").save(tmp_path / "cat.jpg")
    options = tl.options.CaptureOptions(input_image=[tmp_path / "cat.jpg"] * 3, batch_render="first_n:2")
    trace = tl.trace(Net(), torch.zeros(3, 3, 8, 8), capture=options)
    (node,) = [node for node in trace.draw()._scene.nodes if node.pictures]
    assert (node.name, len(node.pictures), node.rows[-1].lines) == ("input_1", 2, ("+1 more picture",))
    trace.batch_render = "shape_only"
    plain = tl.trace(Net(), torch.zeros(3, 3, 8, 8))
    assert trace.draw().dot == plain.draw().dot


def test_the_picture_goes_to_the_input_that_looks_like_images() -> None:
    import torch
    from torch import nn

    class Two(nn.Module):
        def forward(self, mask: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return x * mask.sum()

    image = Image.new("RGB", (200, 100))
    trace = tl.trace(Two(), (torch.ones(5), torch.ones(1, 3, 8, 8)), capture={"input_image": image})
    assert [node.name for node in trace.draw()._scene.nodes if node.pictures] == ["input_2"]


def test_an_unreadable_picture_is_refused_before_the_model_runs() -> None:
    import torch
    from torch import nn

    class Never(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise AssertionError

    with pytest.raises(InvalidArgumentError, match="image_unreadable"):
        tl.trace(Never(), torch.ones(1), capture={"input_image": "no such file.png"})


def test_a_wrong_way_to_show_a_batch_is_refused(trace: Trace) -> None:
    with pytest.raises(InvalidArgumentError, match="batch_render_invalid"):
        trace.batch_render = "some"
    with pytest.raises(InvalidArgumentError, match="batch_render_invalid"):
        tl.options.CaptureOptions(batch_render="some")
    assert trace.batch_render == "auto"


def test_nodes_behind_a_record(trace: Trace, looped: Trace) -> None:
    assert nodes_behind(trace["relu_1_2"]) == (trace.data, (trace.data.index_of["relu_1_2"],))
    assert len(nodes_behind(looped["tanh_1_2"])[1]) == 3
    assert {trace.data.nodes.label[i] for i in nodes_behind(trace["features"])[1]} >= {"conv2d_1_1", "relu_1_2"}
    with pytest.raises(TypeError):
        nodes_behind(trace.data.record(0))  # type: ignore[arg-type]
