"""Every option of a drawing, with every value, on six recorded models: a document, a picture, and honest ids.

What a drawing says depends on the trace and its settings alone: not on the model, nor on who asks for it.
"""

from __future__ import annotations

import copy
import gc
import weakref
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import torchlens as tl
from tests import builders
from tests.models import drawing as zoo
from tests.option_values import CHOICES, OUTPUT, REFUSALS, keywords_for, words
from torchlens.base.errors import TorchLensError
from torchlens.drawings import Drawing, draw_trace
from torchlens.examples.mlp import Mlp
from torchlens.records.trace_data import TraceData
from torchlens.runner.main import main
from torchlens.settings.options import options

ALIKE = [
    {},
    {"node_label_fields": ["name", "shape", "dtype", "module", "params"]},
    {"show_redundant_args": True, "show_edge_shapes": True},
    {"show_saved_for_backward": True, "show_legend": True},
    {"depth": 1, "direction": "leftright", "caption": "Figure 1"},
    {"color_by": "flops", "color_scale": "rank", "show_buffers": "always"},
    {"color_by": "bytes", "color_scale": "log", "size_by": "dims", "size_cap": 3},
]

EVERYTHING = [
    {"node_label_fields": options()["node_label_fields"].choices},
    {"node_style": "profiling", "show_saved_for_backward": True, "show_redundant_args": True},
    {"show_edge_shapes": True, "show_containers": "labels", "show_legend": True, "show_orphans": True},
]

pytestmark = pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")


def ids_of(svg: bytes) -> list[str]:
    return [name for element in ET.fromstring(svg).iter() if (name := element.get("id")) is not None]


def _parts(drawing: Drawing) -> set[str]:
    """Ids of nodes, frames and arrows."""
    return {name for name in ids_of(drawing.data) if not name.startswith(("key", "caption", "gradient"))}


def draw(data: TraceData, **given: object) -> Drawing:
    return draw_trace(data, None, {"file_format": "svg", **given})


@pytest.mark.parametrize("model", zoo.SAMPLES)
@pytest.mark.parametrize(("name", "value"), [c for c in CHOICES if c[0] not in OUTPUT], ids=words)
def test_every_option_draws_every_model(name: str, value: object, model: str) -> None:
    data = zoo.recorded(model)
    given = keywords_for(name, value, data)
    try:
        drawing = draw(data, **given)
    except TorchLensError as refused:
        if refused.code not in REFUSALS.get(name, ()):
            raise
        return
    assert drawing.dot.startswith("digraph ")
    if not callable(given[name]):
        assert drawing.settings[name][0] == given[name]
    ids = ids_of(drawing.data)
    assert len(ids) == len(set(ids))
    assert len([i for i in ids if i.startswith("edge:")]) == drawing.dot.count(" -> ")
    again = draw(data, **given)
    assert (again.dot, again.data) == (drawing.dot, drawing.data)


@pytest.mark.parametrize("name", builders.SAMPLES)
@pytest.mark.parametrize("given", EVERYTHING, ids=",".join)
def test_whatever_is_written_is_written_on_whatever_is_drawn(given: dict[str, object], name: str) -> None:
    data = builders.SAMPLES[name]()
    for module in (None, *(module.address for module in data.modules[1:])):
        for shape in ({}, {"rolled": True}, {"depth": 1}):
            drawing = draw(data, file_format="dot", module=module, **shape, **given)
            assert drawing.dot.count("label=<<TABLE") >= len(drawing._scene.nodes)


@pytest.mark.parametrize("model", zoo.SAMPLES)
def test_an_op_keeps_its_id_whatever_is_written_on_it(model: str) -> None:
    data = zoo.recorded(model)
    plain = _parts(draw(data))
    for given in ({"node_label_fields": ["type"]}, {"show_edge_shapes": True}, {"direction": "leftright"}):
        assert _parts(draw(data, **given)) == plain
    assert {data.nodes.label[i] for i in data.op_indexes if data.from_input[i]} <= plain


@pytest.mark.parametrize("model", zoo.SAMPLES)
def test_a_recording_draws_the_same_when_its_model_is_gone(model: str) -> None:
    sample = zoo.SAMPLES[model]
    torch.manual_seed(0)
    module = sample.factory().train(sample.training)
    trace = tl.trace(module, sample.x(), save="none")
    shown = {"show_redundant_args": True, "node_style": "default", "show_buffers": "always", "depth": 1000}
    before, gone = draw(trace.data, **shown).data, weakref.ref(module)
    kept = copy.deepcopy(trace.data)
    del module, trace
    gc.collect()
    assert gone() is None
    assert draw(kept, **shown).data == before


def test_a_record_alone_tells_all_its_arguments() -> None:
    data = zoo.recorded("conv and norm")
    record = data.record(data.index_of["conv2d_1_1"])
    assert dict(record.config) == {"in_channels": 3, "out_channels": 4, "kernel_size": (3, 3), "padding": (1, 1)}
    assert "in_channels" not in draw(data).dot
    # Without the shapes of what it read nothing can be checked, and so nothing is left out.
    blind = copy.deepcopy(data)
    blind.nodes.parents = [()] * len(blind.nodes)
    assert "in_channels=3, kernel_size=(3, 3)" in draw(blind, show_orphans=True).dot


@pytest.mark.parametrize("given", ALIKE, ids=str)
def test_the_runner_draws_the_bytes_of_the_api(
    given: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(given) <= set(options())
    monkeypatch.chdir(tmp_path)
    assert main(["model=mlp", "out=o", "formats=[dot,svg,png,pdf]", *_words(given)]) == 0
    torch.manual_seed(0)
    capture = {"save": "none", "saved_for_backward": True}
    trace = tl.trace(Mlp().train(), input_shape=(2, 8), capture=capture)
    trace.data.outcome.advisories.clear()
    drawing = trace.draw(**given)
    assert (tmp_path / "o" / "main.dot").read_text() == drawing.dot
    for file_format in ("svg", "png", "pdf"):
        path = drawing.save(tmp_path / f"api.{file_format}")
        assert (tmp_path / "o" / f"main.{file_format}").read_bytes() == path.read_bytes(), file_format


def _words(given: dict[str, object]) -> Iterator[str]:
    """Keywords as the command line writes them."""
    for name, value in given.items():
        text = f"[{','.join(value)}]" if isinstance(value, list) else str(value)
        yield f"draw.{name}={text if not isinstance(value, bool) else text.lower()}"
