"""What a reader reads: all text has contrast, and header, caption and key stand clear of the graph, in every theme.

Measured in the finished SVG: of every text the colours painted under it, of every line of the root label the shapes
around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import torchlens
from tests.contrast import LEAST, contrast, readings
from tests.golden import figures as golden
from tests.svg_shapes import Sheet, color, overlap, read, touches
from torchlens.base.errors import TorchLensError
from torchlens.examples.buffers import Normed
from torchlens.examples.choice import Choice, Gate
from torchlens.examples.demo import Demo
from torchlens.examples.rnn import Rnn
from torchlens.examples.stack import Stack
from torchlens.examples.strays import Strays
from torchlens.plan import make_plan
from torchlens.render import dot, svg
from torchlens.render.graphviz import EMBEDDED
from torchlens.scene import build
from torchlens.settings import catalog
from torchlens.settings.compose import resolve
from torchlens.settings.theme import load_theme
from torchlens.settings.view import view_names

THEMES = catalog.names("theme")
DIRECTIONS = ("bottomup", "leftright")
KEPT = sorted((Path(__file__).parents[2] / "docs" / "images").rglob("*.svg"))


def check(document: bytes, where: object) -> None:
    """Refuse a figure with a text that does not read, or with a part of the root label on the graph."""
    weak = [reading for reading in readings(document) if reading.ratio < LEAST]
    assert not weak, (where, weak[:5])
    sheet = read(document)
    assert any(not text.owner for text in sheet.texts) or b'class="node input"' not in document, "no header"
    hits = list(collisions(sheet))
    assert not hits, (where, hits[:5])


def collisions(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """Parts of header, caption and key that a node, an arrow, a frame or one of their texts reaches into."""
    page, *samples = [shape for shape in sheet.shapes if not shape.owner]
    assert page.kind == "polygon"
    parts = [(text.text, text.box) for text in sheet.texts if not text.owner and text.text.strip()]
    parts += [("a sample of the key", shape.box) for shape in samples]
    for words, box in parts:
        yield from ((words, f"{s.owner} {s.name}") for s in sheet.shapes if s.owner and touches(s, box))
        yield from ((words, f"text {t.text!r}") for t in sheet.texts if t.owner and overlap(t.box, box))


# -- the measures themselves
def _svg(inside: str) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg"><defs>
<linearGradient id="g" gradientUnits="userSpaceOnUse" x1="0" y1="0" x2="100" y2="0">
<stop offset="0" style="stop-color:#ffffff;stop-opacity:1.;"/>
<stop offset="1" style="stop-color:#000000;stop-opacity:1.;"/>
</linearGradient></defs><g class="graph" transform="scale(1 1) rotate(0) translate(0 0)">
<polygon fill="white" stroke="none" points="0,0 0,200 400,200 400,0 0,0"/>{inside}</g></svg>"""


def _text(x: float, y: float, words: str = "abcdefgh", fill: str = "black") -> str:
    return f'<text text-anchor="start" x="{x}" y="{y}" font-size="10.00" fill="{fill}">{words}</text>'


@pytest.mark.parametrize(
    ("inside", "ratio"),
    [
        (_text(10, 50), 21.0),
        (_text(10, 50, fill="#777777"), 4.48),
        (f'<polygon fill="#777777" points="0,40 0,60 90,60 90,40 0,40"/>{_text(10, 50)}', 4.69),
        # A stripe that only the last letters stand on.
        (f'<polygon fill="#333333" points="40,40 40,60 90,60 90,40 40,40"/>{_text(10, 50)}', 1.66),
        (f'<polygon fill="url(#g)" points="0,40 0,60 100,60 100,40 0,40"/>{_text(0, 50, "ab")}', 17.0),
        (f'<polygon fill="url(#g)" points="0,40 0,60 100,60 100,40 0,40"/>{_text(80, 50, "ab")}', 1.2),
        # Round shapes end where they end: the box of this one reaches under the text, the shape does not.
        (f'<ellipse fill="black" stroke="none" cx="100" cy="100" rx="80" ry="60"/>{_text(20, 50, "ab")}', 21.0),
        (f'<ellipse fill="black" stroke="none" cx="100" cy="100" rx="80" ry="60"/>{_text(90, 100, "ab")}', 1.0),
        # What is painted later hides nothing that a text stands on.
        (f'{_text(10, 50)}<polygon fill="black" points="0,90 0,99 90,99 90,90 0,90"/>', 21.0),
        (f'<path fill="black" d="M0,40C0,40 90,40 90,40L90,60 0,60Z"/>{_text(10, 50)}', 1.0),
    ],
)
def test_the_measure_of_contrast(inside: str, ratio: float) -> None:
    (found,) = readings(_svg(inside))
    assert found.ratio == pytest.approx(ratio, rel=0.15 if "url" in inside else 0.005)


def test_the_ratio_of_two_colours() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((255, 0, 0), (255, 255, 255)) == pytest.approx(3.998, abs=0.001)


def _ellipse(cx: int, rx: int, width: int = 1) -> str:
    ellipse = f'<ellipse fill="none" stroke="black" stroke-width="{width}" cx="{cx}" cy="60" rx="{rx}" ry="14"/>'
    return f'<g class="node">{ellipse}</g>'


def _frame(fill: str) -> str:
    return f'<g class="cluster"><polygon fill="{fill}" stroke="black" points="0,0 0,99 99,99 99,0 0,0"/></g>'


@pytest.mark.parametrize(
    ("part", "hit"),
    [
        (_ellipse(120, 60), False),
        (_ellipse(30, 20), True),
        # The box around it reaches into the text, the ellipse does not; a thick line does.
        (_ellipse(104, 60), False),
        (_ellipse(104, 60, 9), True),
        ('<g class="edge"><path fill="none" stroke="black" d="M0,30C20,40 40,50 90,60"/></g>', True),
        ('<g class="edge"><path fill="none" stroke="black" d="M0,60C20,60 40,70 90,60"/></g>', False),
        (_frame("none"), False),
        (_frame("white"), True),
        (f'<g class="edge">{_text(40, 55)}</g>', True),
        (f'<g class="edge">{_text(70, 55)}</g>', False),
    ],
)
def test_the_measure_of_collisions(part: str, hit: bool) -> None:
    assert bool(list(collisions(read(_svg(_text(10, 50) + part))))) == hit


# -- figures
@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_figures_of_the_documents(path: Path) -> None:
    check(path.read_bytes(), path.name)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", golden.FIGURES)
def test_the_golden_figures_in_every_theme(name: str, theme: str) -> None:
    make, options = golden.FIGURES[name]
    for direction in DIRECTIONS:
        data = make()
        request = resolve(data, {**options, "theme": theme, "direction": direction})
        document = dot.write(build(make_plan(data, request), data, request))
        check(svg.write(svg.read(EMBEDDED.run(document, "svg"))).data, (name, theme, direction))


MODELS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "demo": (lambda: Demo().eval(), (1, 3, 8, 8)),
    "rnn": (lambda: Rnn(8, 3).eval(), (2, 8)),
    "choice": (lambda: Choice(8).eval(), (2, 8)),
    "gate": (lambda: Gate(8).eval(), (2, 8)),
    "strays": (lambda: Strays(4).eval(), (2, 4)),
    "normed": (lambda: Normed(4).eval(), (4, 4)),
    "stack": (lambda: Stack(blocks=8).eval(), (2, 16)),
}
DRAWN: list[tuple[str, dict[str, Any]]] = [
    ("demo", {"depth": 1, "show_legend": True}),
    ("demo", {"node_style": "profiling", "color_by": "bytes"}),
    ("demo", {"color_by": "time", "color_scale": "rank", "show_legend": True}),
    ("demo", {"color_by": "flops", "size_by": "bytes", "show_edge_shapes": True}),
    ("demo", {"size_by": "dims", "show_saved_for_backward": True, "show_redundant_args": True}),
    ("demo", {"layout": "rank", "show_legend": True, "caption": "Figure 1: " + "words " * 30}),
    ("demo", {"font_size": 30, "caption": "one\ntwo\nthree"}),
    ("rnn", {"rolled": True, "color_by": "bytes"}),
    ("rnn", {"stack_by": "auto", "show_legend": True}),
    ("rnn", {"layout": "rank", "rolled": True}),
    ("choice", {"show_legend": True}),
    ("choice", {"color_by": "flops"}),
    ("gate", {"show_legend": True, "rolled": True}),
    ("strays", {"show_orphans": True, "show_legend": True}),
    ("normed", {"show_buffers": "always", "show_legend": True}),
    ("normed", {"show_buffers": "always", "color_by": "magnitude"}),
    ("stack", {"module": "blocks.1", "show_legend": True}),
    ("stack", {"module": "blocks.1", "color_by": "bytes"}),
    ("stack", {"collapse": "max", "show_legend": True}),
    ("stack", {"collapse": "auto", "fold_repeats": True, "color_by": "flops"}),
]


@pytest.fixture(scope="module")
def traces() -> Mapping[str, torchlens.Trace]:
    return {name: _record(make(), shape) for name, (make, shape) in MODELS.items()}


def _record(model: torch.nn.Module, shape: tuple[int, ...]) -> torchlens.Trace:
    torch.manual_seed(0)
    return torchlens.trace(model, torch.rand(shape))


def _data(trace: torchlens.Trace, **options: Any) -> bytes:
    return trace.draw(file_format="svg", engine="embedded", **options).data


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("model", "options"), DRAWN, ids=lambda part: part if isinstance(part, str) else "-".join(part)
)
def test_drawings_in_every_theme(
    model: str, options: dict[str, Any], theme: str, traces: Mapping[str, torchlens.Trace]
) -> None:
    for direction in DIRECTIONS:
        check(_data(traces[model], theme=theme, direction=direction, **options), (model, options, theme, direction))


@pytest.mark.parametrize("theme", THEMES)
def test_every_ramp(theme: str, traces: Mapping[str, torchlens.Trace]) -> None:
    for ramp, source in product(set(load_theme(theme).ramps.values()), ("time", "bytes")):
        changed = {"extends": theme, "ramps": {"sequential": ramp}}
        check(_data(traces["demo"], theme=changed, color_by=source, color_scale="rank"), (theme, ramp, source))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", view_names())
def test_every_view_in_every_theme(view: str, theme: str, traces: Mapping[str, torchlens.Trace]) -> None:
    drawn = 0
    for name in ("demo", "rnn", "normed", "stack"):
        try:
            document = _data(traces[name], view=view, theme=theme)
        except TorchLensError:
            continue
        drawn += 1
        check(document, (view, theme, name))
    assert drawn or view in ("transformer", "interventions"), view


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_not_finite(theme: str) -> None:
    """Every motif, with and without a colour channel over it."""
    x = torch.tensor([[float("nan"), 1.0, 2.0, 3.0]])
    for values in (x, -torch.log(x * 0), torch.log(x.nan_to_num(0.0)), torch.tensor([[float("inf"), -1.0, 0.0, 1.0]])):
        trace = torchlens.trace(Normed(4).eval(), values)
        for options in ({}, {"color_by": "bytes"}, {"show_buffers": "always", "depth": 1}):
            check(_data(trace, theme=theme, show_nonfinite=True, show_legend=True, **options), (theme, options))


@pytest.mark.models
@pytest.mark.parametrize("theme", THEMES)
def test_a_network_with_a_hundred_records(theme: str) -> None:
    import torchvision

    trace = _record(torchvision.models.resnet18().eval(), (1, 3, 64, 64))
    for options in ({"collapse": "auto"}, {"collapse": "max"}, {"module": "layer2", "depth": 1, "color_by": "bytes"}):
        for direction in DIRECTIONS:
            check(_data(trace, theme=theme, direction=direction, show_legend=True, **options), (theme, options))


# -- a page of one's own
@pytest.mark.parametrize("page", ["#000000", "#7f7f7f", "ivory", "navy"])
def test_a_page_of_any_colour_keeps_its_text_readable(page: str, traces: Mapping[str, torchlens.Trace]) -> None:
    """Only the page is changed, as by `theme.page.background=`: what stands on it follows."""
    for theme, model in product(THEMES, ("gate", "strays", "stack")):
        changed = {"extends": theme, "page": {"background": page}}
        options = {"show_orphans": True, "show_legend": True, "collapse": "max" if model == "stack" else "none"}
        document = _data(traces[model], theme=changed, **options)
        check(document, (page, theme, model))
        lines = {color(shape.stroke) for shape in read(document).shapes if shape.owner in ("edge", "cluster")}
        assert lines
        assert all(contrast(line, color(page)) >= 1.2 for line in lines), (page, theme, lines)


@pytest.mark.parametrize("fill", ["#000000", "#7f7f7f", "#d55e00", "#ffff00", "#ffd700:#e0e0e0"])
def test_text_follows_the_fill_that_roles_are_given(fill: str, traces: Mapping[str, torchlens.Trace]) -> None:
    roles = ("input", "output", "trainable", "frozen", "mixed", "branch_test", "op", "box", "segment")
    theme = {"roles": {**{role: {"fill": fill} for role in roles}, "module": {"fill": "#b0c4de"}}}
    for model in ("gate", "stack", "normed"):
        check(_data(traces[model], theme=theme, show_buffers="always", show_legend=True), (fill, model))
