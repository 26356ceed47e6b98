"""Every channel with every source and scale, on every sample and in every theme; measured in the finished picture."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests import builders
from torchlens.base.colors import contrast, luminance, oklab, oklab_distance, simulate
from torchlens.drawings import Drawing, draw_trace
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import BarLine, TextLine
from torchlens.scene.scales import SCALES
from torchlens.scene.values import SINGLE, SOURCES, UNMEASURED, Readings
from torchlens.settings import catalog
from torchlens.settings.options import options

THEMES = catalog.names("theme")
Extent = tuple[float, float, float, float]
SVG = "{http://www.w3.org/2000/svg}"
CHANNELS: dict[str, dict[str, object]] = {
    "none": {},
    "color": {"color_by": "time"},
    "rank": {"color_by": "bytes", "color_scale": "rank"},
    "log": {"color_by": "flops", "color_scale": "log"},
    "size": {"size_by": "dims"},
    "both": {"color_by": "magnitude", "size_by": "bytes"},
    "blank": {"color_by": "macs_forward"},
    "function": {"color_by": lambda record: record.index},
    "stack": {"stack_by": "type", "color_by": "pass_number"},
}


def measured(name: str) -> TraceData:
    """A sample with every kind of value."""
    data = builders.SAMPLES[name]()
    data.saved_for_backward, data.kernel_join = 100, "joined"
    nodes, count = data.nodes, len(data.nodes)
    nodes.stats = [(OutStats(4, 0.5 + i, 1.0, 1.0),) * len(nodes.outs[i]) or None for i in range(count)]
    nodes.autograd_memory = [8 * i for i in range(count)]
    nodes.num_autograd_tensors = [i % 3 for i in range(count)]
    nodes.num_kernels = [i % 2 for i in range(count)]
    nodes.device_time = [1000 + i if i % 2 else None for i in range(count)]
    return data


def draw(data: TraceData, **given: object) -> Drawing:
    return draw_trace(data, None, {"file_format": "svg", **given})


# -- what is seen
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("channel", CHANNELS)
def test_every_text_of_the_picture_has_enough_contrast_with_what_is_behind_it(theme: str, channel: str) -> None:
    for name, depth in itertools.product(("demo", "residual", "multi_output", "state", "awkward"), (1, 1000)):
        drawing = draw(measured(name), theme=theme, depth=depth, show_legend=True, **CHANNELS[channel])
        found = list(texts(drawing.data))
        assert len(found) > 5
        for text, color, behind in found:
            for fill in behind:
                assert contrast(color, fill) >= 4.5, (name, text, color, fill)


def texts(svg: bytes) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every text with its colour, and the colours of the innermost filled shape around it, as the picture has them."""
    root = ET.fromstring(svg)
    gradients = {
        str(gradient.get("id")): tuple(_color(stop) for stop in gradient.iter(f"{SVG}stop"))
        for gradient in root.iter(f"{SVG}linearGradient")
    }
    page = ("#ffffff",)
    shapes: list[tuple[Extent, bool, tuple[str, ...]]] = []
    for element in root.iter():
        kind = element.tag.removeprefix(SVG)
        fill = element.get("fill") or ""
        if kind in ("polygon", "ellipse", "path") and fill not in ("", "none", "transparent"):
            colors = gradients[fill[5:-1]] if fill.startswith("url(#") else (_plain(fill),)
            shapes.append((_extent(element, kind), kind == "ellipse", colors))
        elif kind == "text" and (element.text or "").strip():
            x, y = float(element.get("x") or 0), float(element.get("y") or 0)
            size = float(element.get("font-size") or 14)
            # The middle of the text, whichever end it is placed by.
            half = 0.25 * size * len(element.text or "")
            x += {"start": half, "end": -half}.get(element.get("text-anchor") or "start", 0.0)
            around = [colors for box, round_, colors in shapes if _holds(box, round_, x, y - size / 3)]
            yield element.text or "", _plain(element.get("fill") or "black"), around[-1] if around else page


def _holds(extent: Extent, is_round: bool, x: float, y: float) -> bool:
    left, top, right, bottom = extent
    across, down = (2 * x - left - right) / (right - left or 1), (2 * y - top - bottom) / (bottom - top or 1)
    return across**2 + down**2 <= 1 if is_round else max(abs(across), abs(down)) <= 1


def _extent(element: ET.Element, kind: str) -> Extent:
    if kind == "ellipse":
        cx, cy, rx, ry = (float(element.get(name) or 0) for name in ("cx", "cy", "rx", "ry"))
        return cx - rx, cy - ry, cx + rx, cy + ry
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", element.get("points") or element.get("d") or "")]
    return min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])


def _color(stop: ET.Element) -> str:
    found = re.search(r"stop-color:\s*([^;]+)", stop.get("style") or "")
    return _plain(found.group(1) if found else str(stop.get("stop-color")))


def _plain(color: str) -> str:
    return color.strip()


@pytest.mark.parametrize("theme", THEMES)
def test_rank_colours_run_one_way_in_lightness(theme: str) -> None:
    data = builders.residual(6)
    data.nodes.time_s = [float(i) if kind == "op" else None for i, kind in enumerate(data.nodes.kind)]
    scene = draw(data, theme=theme, color_by="time", color_scale="rank")._scene
    fills = [node.style.fill or "" for node in scene.nodes if node.kind == "op"]
    assert len(set(fills)) == len(data.op_indexes)
    for measure in (luminance, lambda color: oklab(color)[0]):
        steps = [measure(fill) for fill in fills]
        assert steps in (sorted(steps), sorted(steps, reverse=True))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", ["protan", "deutan", "tritan"])
def test_a_ramp_stays_ordered_without_colour_vision_and_its_ends_apart(theme: str, kind: str) -> None:
    bar = next(
        line for line in draw(builders.demo(), theme=theme, color_by="time")._scene.root if isinstance(line, BarLine)
    )
    seen = [simulate(color, kind) for color in bar.cells[:: len(bar.cells) // 8]]
    steps = [luminance(color) for color in seen]
    assert steps in (sorted(steps), sorted(steps, reverse=True))
    assert oklab_distance(seen[0], seen[-1]) > 0.5


# -- what is said
@pytest.mark.parametrize("name", SOURCES.names())
def test_a_sum_is_exact_or_absent(name: str) -> None:
    source = SOURCES.get(name)
    for sample, given in itertools.product(
        builders.SAMPLES, ({"depth": 1}, {"rolled": True}, {"depth": 1, "rolled": True})
    ):
        data = measured(sample)
        scene = draw(data, color_by=_total_of_anything, file_format="dot", **given)._scene
        assert scene.encoding is not None
        readings, column = Readings(source, data), source.column(data)
        for node in _plan(data, given):
            ops = [i for i in node.members if data.nodes.kind[i] == "op"]
            if node.kind in UNMEASURED or len(ops) < 2:
                continue
            parts = [column[i] for i in ops]
            summed = source.over_passes if node.kind == "op" else source.additive
            known = all(part is not None or source.idle(data, i) for part, i in zip(parts, ops, strict=True))
            if summed:
                # Ops that launched no kernel have no device time, which is not the same as one of 0.
                nothing = name == "device_time" and all(part is None for part in parts)
                exact = sum(Fraction(part or 0) for part in parts) if known and not nothing else None
            else:
                exact = parts[0] if node.kind == "op" and len(set(parts)) == 1 else None
            value = readings.value(node)
            assert (value is None) == (exact is None), (sample, node.name)
            assert value is None or float(value) == pytest.approx(float(exact or 0))


def _total_of_anything(record: object) -> float:
    return 1.0


def _plan(data: TraceData, given: dict[str, object]) -> tuple:
    from torchlens.plan import make_plan
    from torchlens.settings.compose import resolve

    return make_plan(data, resolve(data, given)).nodes


@pytest.mark.parametrize("name", [n for n in SOURCES.names() if n != "grad_norm"])
@pytest.mark.parametrize("given", [{}, {"depth": 1}, {"rolled": True}], ids=str)
def test_the_state_counts_what_is_coloured(name: str, given: dict[str, object]) -> None:
    if name not in options()["color_by"].choices:
        return
    for sample in builders.SAMPLES:
        data = measured(sample)
        drawing = draw(data, color_by=name, **given)
        state = drawing.encoding and drawing.encoding.color
        assert state is not None
        coloured = [
            node
            for node in drawing._scene.nodes
            if node.kind not in UNMEASURED
            and node.origin.get("fill") == f"color_by {name}"
            and node.style.fill not in ("#ffffff", "#ececec")
        ]
        ops = sum(data.nodes.kind[data.index_of[label]] == "op" for node in coloured for label in node.members)
        assert state.encoded == ops, sample
        assert state.eligible == len(data.op_indexes)
        if not SOURCES.get(name).additive and any(node.kind not in SINGLE for node in drawing._scene.nodes):
            assert f"collapsed nodes unencoded: {name} has no exact sum over ops" in state.aggregation


@pytest.mark.parametrize("sample", list(builders.SAMPLES))
def test_bare_channels_add_key_lines_and_nothing_else(sample: str) -> None:
    data = measured(sample)
    plain = draw(data)._scene
    made = draw(data, color_by="time", size_by="bytes")._scene
    added = [line for line in made.root if line not in plain.root]
    assert all(isinstance(line, BarLine) or getattr(line, "kind", "key") == "key" for line in added)
    for line in added:
        text = line.text if isinstance(line, TextLine) else ""
        assert not any(word in text for word in ("rank", "linear", "encoded", "sqrt", "coverage"))
    assert [(n.name, n.rows, n.box) for n in made.nodes] == [(n.name, n.rows, n.box) for n in plain.nodes]
    assert made.edges == plain.edges


@pytest.mark.parametrize("sample", list(builders.SAMPLES))
def test_a_channel_that_is_off_changes_no_byte(sample: str) -> None:
    plain = draw(builders.SAMPLES[sample]()).dot
    data = measured(sample)
    assert draw(data).dot == plain
    assert draw(data, color_by=None, size_by=None, stack_by=None).dot == plain
    view = {"question": "q", "draw": {"color_by": "time", "size_by": "bytes", "color_scale": "rank"}}
    assert draw(data, view=view, color_by=None, size_by=None).dot == plain
    assert draw(data, view=view).dot != plain


def test_the_scales_of_the_options_are_the_ones_that_exist() -> None:
    assert set(options()["color_scale"].choices) == set(SCALES)
