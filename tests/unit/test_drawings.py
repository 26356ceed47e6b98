"""A drawing from a trace made by hand: when it is laid out, what it writes, keeps, shows and explains."""

from __future__ import annotations

import base64
import gc
import io
import subprocess
import sys
import types
import weakref
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from tests import builders
from torchlens import drawings, settled
from torchlens.base.errors import (
    EngineError,
    EvidenceError,
    InvalidArgumentError,
    TorchLensWarning,
    UnknownNameError,
)
from torchlens.drawings import Drawing, draw_trace
from torchlens.records.trace_data import TraceData
from torchlens.render import layouts, rendered
from torchlens.render.graphviz import GraphvizEngine


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data() -> TraceData:
    return builders.chain()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outputs that an engine was asked for."""
    asked: list[str] = []
    run = GraphvizEngine.run

    def count(self: GraphvizEngine, document: str, output: str, **options: Any) -> bytes:
        asked.append(output)
        return run(self, document, output, **options)

    monkeypatch.setattr(GraphvizEngine, "run", count)
    return asked


# -- files
@pytest.mark.parametrize(
    ("path", "options", "name", "signature"),
    [
        ("my_model.jpg", {}, "my_model.jpg", b"\xff\xd8\xff"),
        ("my_model", {}, "my_model.pdf", b"%PDF"),
        ("my_model.svg", {}, "my_model.svg", b"<?xml"),
        (Path("my_model.png"), {}, "my_model.png", b"\x89PNG"),
        ("my_model", {"file_format": "dot"}, "my_model.dot", b"digraph"),
    ],
)
def test_a_path_gets_a_file(
    data: TraceData, path: str | Path, options: dict[str, str], name: str, signature: bytes
) -> None:
    drawing = draw_trace(data, path, options)
    written = Path(name).read_bytes()
    assert written.startswith(signature)
    assert written == drawing.data
    assert drawing.path == Path(name)
    assert drawing.file_format == Path(name).suffix[1:]
    assert [file.name for file in Path().iterdir()] == [name]


def test_without_a_path_nothing_is_written_and_nothing_is_laid_out(data: TraceData, runs: list[str]) -> None:
    drawing = draw_trace(data, None, {})
    assert (drawing.path, drawing.file_format) == (None, "svg")
    assert drawing.dot.startswith("digraph")
    assert runs == []
    assert list(Path().iterdir()) == []
    assert drawing.data.startswith(b"<?xml")
    assert drawing.data is drawing.data
    assert runs == ["svg"]


@pytest.mark.parametrize("path", ["missing/x.pdf", ""])
def test_an_impossible_path_is_refused_before_any_work(
    data: TraceData, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawings, "make_plan", lambda *args: pytest.fail("the figure was planned"))
    with pytest.raises(InvalidArgumentError) as caught:
        draw_trace(data, path, {})
    assert caught.value.code == "output_path_invalid"


def test_a_failing_engine_writes_nothing(data: TraceData) -> None:
    Path("x.pdf").write_bytes(b"the old figure")
    with pytest.raises(EngineError) as caught:
        draw_trace(data, "x.pdf", {"graph_attrs": {"layout": "no such layout"}})
    assert caught.value.code == "render_engine_failed"
    assert Path("x.pdf").read_bytes() == b"the old figure"
    assert [file.name for file in Path().iterdir()] == ["x.pdf"]


def test_the_same_drawing_twice_has_the_same_bytes(data: TraceData) -> None:
    for name in ("x.svg", "x.pdf", "x.png", "x.dot"):
        first = draw_trace(data, name, {"theme": "dark"}).data
        assert draw_trace(builders.chain(), name, {"theme": "dark"}).data == first


def test_dpi_and_font_size_reach_the_file(data: TraceData) -> None:
    low, high = (draw_trace(data, "x.png", {"dpi": dpi}).page for dpi in (72, 144))
    assert low is not None
    assert high is not None
    assert high.width == pytest.approx(2 * low.width, abs=2)
    large = draw_trace(data, "x.png", {"dpi": 72, "font_size": 40}).page
    assert large is not None
    assert large.width > 1.5 * low.width


def test_a_figure_too_large_to_lay_out_is_refused(data: TraceData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "NODE_LIMIT", 3)
    with pytest.raises(InvalidArgumentError, match="depth=") as caught:
        draw_trace(data, None, {})
    assert caught.value.code == "graph_too_large"
    drawing = draw_trace(data, "x.dot", {})
    assert Path("x.dot").exists()
    with pytest.raises(InvalidArgumentError, match="graph_too_large"):
        drawing.save("x.svg")
    assert not Path("x.svg").exists()


def test_a_channel_and_the_rank_layout_exclude_each_other(data: TraceData) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_requires_dot_layout\].*color_by"):
        draw_trace(data, None, {"layout": "rank", "view": "speed"})
    with pytest.raises(InvalidArgumentError, match=r"\[draw_layout_invalid\].*auto, dot, rank"):
        draw_trace(data, None, {"layout": "neato"})


@pytest.mark.parametrize("name", ["x.svg", "x.pdf", "x.png", "x.jpg"])
def test_the_rank_layout_in_every_format(name: str) -> None:
    drawing = draw_trace(builders.demo(), name, {"layout": "rank"})
    assert "layout=nop2" in drawing.dot
    assert draw_trace(builders.demo(), name, {"layout": "rank"}).data == drawing.data
    page, plain = drawing.page, draw_trace(builders.demo(), None, {"layout": "rank"}).page
    assert page is not None
    assert plain is not None
    assert page.width_pt == pytest.approx(plain.width, abs=1)


def test_a_raster_that_would_take_all_memory_is_refused(data: TraceData, runs: list[str]) -> None:
    drawing = draw_trace(data, None, {"layout": "rank"})
    with pytest.raises(InvalidArgumentError, match=r"\[graph_too_large\].* pixels at 9999 dpi") as caught:
        drawing.save("x.png", dpi=9999)
    assert "write svg or pdf" in str(caught.value)
    assert runs == []
    assert not Path("x.png").exists()


# -- size in print
def test_the_smallest_text_of_a_page(data: TraceData) -> None:
    page = draw_trace(data, None, {"font_size": 9}).page
    assert page is not None
    assert page.smallest_text == 9
    assert page.text_at(page.width / 2) == pytest.approx(4.5)
    raster = draw_trace(data, None, {"font_size": 9, "file_format": "png", "dpi": 200}).page
    assert raster is not None
    assert raster.unit == "px"
    assert raster.text_at(page.width / 2) == pytest.approx(4.5, rel=0.01)
    assert draw_trace(data, None, {"file_format": "dot"}).page is None


def test_fit_width_picks_the_direction_with_the_larger_text(data: TraceData) -> None:
    up = draw_trace(data, None, {"fit_width": 200})
    assert up.settings["direction"] == (None, "default")
    assert 'rankdir="BT"' in up.dot
    flat = builders.Builder("Flat")
    x = flat.input("x", (2, 8))
    for k in range(8):
        flat.output(flat.op("relu", [x], (2, 8)), str(k))
    fan = flat.build()
    sideways = draw_trace(fan, None, {"fit_width": 400})
    assert sideways.settings["direction"] == ("leftright", "explicit")
    assert 'rankdir="LR"' in sideways.dot
    assert "leftright" in str(sideways.explain())
    kept = draw_trace(fan, None, {"fit_width": 500, "direction": "topdown"})
    assert kept.settings["direction"] == ("topdown", "explicit")


def test_fit_width_warns_of_text_too_small_to_read() -> None:
    with pytest.warns(TorchLensWarning, match=r"\[figure_text_small\].* points high"):
        drawing = draw_trace(builders.demo(), "x.dot", {"fit_width": 20})
    assert [warning.code for warning in drawing.warnings] == ["figure_text_small"]
    assert draw_trace(builders.demo(), None, {"fit_width": 2000}).warnings == []
    with pytest.raises(InvalidArgumentError, match="draw_fit_width_invalid"):
        draw_trace(builders.demo(), None, {"fit_width": 0})


# -- saving again
def test_save_needs_no_trace(data: TraceData) -> None:
    drawing = draw_trace(data, None, {"theme": "paper"})
    keeper = weakref.ref(data)
    del data
    assert drawing.save("x") == Path("x.pdf")
    assert drawing.save("x.png", dpi=72) == Path("x.png")
    assert drawing.save("y", file_format="svg") == Path("y.svg")
    assert Path("x.pdf").read_bytes() == draw_trace(builders.chain(), "z.pdf", {"theme": "paper"}).data
    assert "linear_1_1" in PdfReader("x.pdf").pages[0].extract_text()
    del keeper


def test_a_drawing_does_not_keep_the_trace_alive() -> None:
    data = builders.demo()
    gone = weakref.ref(data)
    drawing = draw_trace(data, "x.svg", {"view": "speed"})
    del data
    gc.collect()
    assert gone() is None
    assert "conv2d" in drawing.explain("conv2d_1_1")


def test_editable_saves_the_source(data: TraceData) -> None:
    drawing = draw_trace(data, None, {})
    assert drawing.save("x", editable=True) == Path("x.dot")
    assert Path("x.dot").read_text(encoding="utf-8") == drawing.dot
    for path, file_format in (("x.svg", None), ("x", "svg")):
        with pytest.raises(InvalidArgumentError) as caught:
            drawing.save(path, file_format=file_format, editable=True)
        assert caught.value.code == "file_format_conflict"


def test_save_uses_the_resolution_and_the_engine_of_the_drawing(
    data: TraceData, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = draw_trace(data, None, {"dpi": 72})
    drawing.save("a.png")
    assert Path("a.png").read_bytes() == draw_trace(data, "b.png", {"dpi": 72}).data
    seen: list[str | None] = []
    make = rendered.make_artifact

    def remember(*args: object, **options: object) -> object:
        seen.append(options["engine"])  # type: ignore[arg-type]
        return make(*args, **{**options, "engine": None})  # type: ignore[arg-type]

    monkeypatch.setattr(rendered, "make_artifact", remember)
    monkeypatch.setattr(settled, "require_engine", lambda *args: None)
    draw_trace(data, None, {"engine": "system"}).save("c.svg")
    assert seen == ["system"]


@pytest.mark.parametrize("dpi", [0, -5, 72.5, "72", True])
def test_save_refuses_a_wrong_resolution_before_it_writes(data: TraceData, runs: list[str], dpi: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[draw_dpi_invalid\]"):
        draw_trace(data, None, {}).save("a.png", dpi=dpi)  # type: ignore[arg-type]
    assert not Path("a.png").exists()
    assert runs == []


def test_save_twice_lays_out_once(data: TraceData, runs: list[str]) -> None:
    drawing = draw_trace(data, "a.svg", {})
    drawing.save("b.svg")
    drawing.save("c.png")
    drawing.save("d.png")
    drawing.save("e.png", dpi=72)
    assert runs == ["svg", "png", "png"]


# -- display
def test_a_notebook_shows_the_whole_figure(data: TraceData) -> None:
    bundle = draw_trace(data, None, {})._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    text = bundle["image/svg+xml"]
    assert text.startswith("<svg ")
    head = text[: text.index(">")]
    assert 'width="100%"' in head
    assert "viewBox" in head
    assert "height:auto" in head
    ET.fromstring(text)


def test_a_notebook_shows_what_was_asked_for(data: TraceData) -> None:
    png = draw_trace(data, None, {"file_format": "png"})
    assert base64.b64decode(png._repr_mimebundle_()["image/png"]) == png.data
    pdf = draw_trace(data, "x.pdf", {})
    assert pdf._repr_mimebundle_()["image/svg+xml"] == pdf._repr_svg_()


def test_show_in_a_notebook_displays_and_opens_nothing(data: TraceData, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display = types.ModuleType("IPython.display")
    display.display = shown.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(rendered.webbrowser, "open", lambda url: pytest.fail("a viewer was opened"))
    drawing = draw_trace(data, None, {})
    drawing.show()
    assert shown == [drawing]


def test_show_in_a_terminal_opens_the_file(data: TraceData, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(rendered, "in_notebook", lambda: False)
    monkeypatch.setattr(rendered.webbrowser, "open", opened.append)
    draw_trace(data, "x.pdf", {})
    assert opened == []
    draw_trace(data, "x.pdf", {"open_viewer": True})
    assert opened == [Path("x.pdf").resolve().as_uri()]
    drawing = draw_trace(data, None, {"file_format": "png"})
    drawing.show()
    temporary = Path(opened[1].removeprefix("file://"))
    assert temporary.read_bytes() == drawing.data
    temporary.unlink()


def test_the_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = types.SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not rendered.in_notebook()


# -- facts
def test_what_a_drawing_says_of_itself(data: TraceData) -> None:
    drawing = draw_trace(data, None, {"view": "speed", "theme": "paper", "direction": "leftright"})
    assert (drawing.view, drawing.theme) == ("speed", "paper")
    assert drawing.settings["color_by"] == ("time", "view:speed")
    assert drawing.settings["direction"] == ("leftright", "explicit")
    assert drawing.settings["depth"] == (1000, "default")
    assert drawing.provenance is data.provenance
    assert repr(drawing) == "<Drawing of Mlp: 5 nodes, svg>"
    assert draw_trace(data, None, {}).view is None
    assert "in 'x.pdf'" in repr(draw_trace(data, "x.pdf", {}))


def test_explain_the_settings(data: TraceData) -> None:
    drawing = draw_trace(
        data, None, {"view": "speed", "color_by": None}, layers=[("encoding:weight", {"color_by": "bytes"})]
    )
    lines = [line.split() for line in str(drawing.explain()).splitlines()]
    assert lines[0] == ["setting", "value", "set", "by", "over"]
    assert ["view", "speed"] in lines
    assert ["color_by", "None", "explicit", "encoding:weight=bytes,", "view:speed=time"] in lines
    assert repr(drawing.explain()) == str(drawing.explain())


def test_explain_a_node(data: TraceData) -> None:
    drawing = draw_trace(data, None, {"theme": "dark"})
    text = drawing.explain("relu_1_2")
    assert "#1f2937" in text.lower()
    assert "dark" in text
    with pytest.raises(UnknownNameError, match="relu_1_2") as caught:
        drawing.explain("relu_1_3")
    assert caught.value.code == "label_not_found"


def test_warnings_are_listed_whatever_the_filters_say() -> None:
    drawing = draw_trace(builders.awkward(), None, {})
    assert drawing.warnings == []
    with pytest.warns(TorchLensWarning, match="pdf_glyph_missing"):
        drawing.save("x.pdf")
    assert [warning.code for warning in drawing.warnings] == ["pdf_glyph_missing"]


def test_complaints_of_the_engine_are_listed(data: TraceData) -> None:
    with pytest.warns(TorchLensWarning, match="render_engine_warning"):
        drawing = draw_trace(data, "x.svg", {"graph_attrs": {"bgcolor": "nocolor"}})
    assert [warning.code for warning in drawing.warnings] == ["render_engine_warning"]


def test_missing_evidence_is_refused(data: TraceData) -> None:
    data.nodes.time_s = [None] * len(data.nodes)
    with pytest.raises(EvidenceError):
        draw_trace(data, "x.svg", {"view": "speed"})
    assert list(Path().iterdir()) == []


# -- hostile names
@pytest.mark.filterwarnings("ignore::torchlens.base.errors.TorchLensWarning")
def test_awkward_names_reach_every_format() -> None:
    drawing = draw_trace(builders.awkward(), "x.svg", {})
    root = ET.fromstring(drawing.data)
    words = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert 'A<b>&"c\\N[0]' in words
    assert any("name-with <>&\"'\\ 漢" in word for word in words)
    drawing.save("x.pdf")
    assert 'A<b>&"c\\N[0]' in PdfReader(io.BytesIO(Path("x.pdf").read_bytes())).pages[0].extract_text()
    drawing.save("x.png")


def test_importing_drawings_needs_no_torch() -> None:
    code = (
        "import sys, torchlens.drawings;"
        "print([n for n in ('torch', 'hydra', 'reportlab', 'PIL', 'graphviz', 'omegaconf') if n in sys.modules])"
    )
    folder = Path(drawings.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_drawing_is_public() -> None:
    import torchlens

    assert torchlens.Drawing is Drawing
