"""The rank layout by its geometry: nothing overlaps, frames hold what is theirs, arrows end at borders."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.drawings import draw_trace
from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.render import dot, measure
from torchlens.render.graphviz import EMBEDDED, SYSTEM
from torchlens.render.layout_rank import arrange
from torchlens.render.placement import Placement, Point, Rect
from torchlens.scene import build
from torchlens.scene.model import Scene
from torchlens.settings.compose import resolve

DIRECTIONS = ("bottomup", "topdown", "leftright", "rightleft")
FOLDER = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"
SLACK = 0.11  # coordinates are written with one decimal


def placed(data: TraceData, **options: object) -> tuple[Scene, Placement]:
    request = resolve(data, options)
    return arrange(build(make_plan(data, request), data, request))


def grown(seed: int, ops: int = 60) -> TraceData:
    """A trace of random ops in random modules, with long and short arrows."""
    rng = random.Random(seed)
    b = Builder("Random")
    values: list[Ref] = [b.input("x", (2, 8)), b.input("y", (2, 8))]
    with ExitStack() as stack:
        depth = 0
        for k in range(ops):
            if depth and rng.random() < 0.2:
                stack.pop_all().close()
                depth = 0
            elif depth < 3 and rng.random() < 0.25:
                stack.enter_context(b.module(f"m{k}", "Sequential" * rng.randint(1, 2)))
                depth += 1
            recent = values[-4:] if rng.random() < 0.8 else values
            sources = rng.sample(recent, min(len(recent), rng.choice([1, 1, 2, 3])))
            func = rng.choice(["relu", "sub", "cat", "tanh"])
            values.append(b.op(func, sources, (2, 8)))
    b.output(values[-1])
    b.output(values[len(values) // 2], "aside")
    return b.build()


def points_on(way: tuple[Point, ...]) -> Iterator[Point]:
    """Points along cubic pieces."""
    for k in range(0, len(way) - 1, 3):
        a, c, d, e = way[k : k + 4]
        for step in range(13):
            t = step / 12
            s = 1 - t
            yield (
                s**3 * a[0] + 3 * s * s * t * c[0] + 3 * s * t * t * d[0] + t**3 * e[0],
                s**3 * a[1] + 3 * s * s * t * c[1] + 3 * s * t * t * d[1] + t**3 * e[1],
            )


def inside(point: Point, rect: Rect, margin: float = 0.5) -> bool:
    return rect.left + margin < point[0] < rect.right - margin and rect.bottom + margin < point[1] < rect.top - margin


def frames_of(scene: Scene, box: int | None) -> list[int]:
    chain: list[int] = []
    while box is not None:
        chain.append(box)
        box = scene.boxes[box].parent
    return chain


def check(scene: Scene, place: Placement) -> None:
    for a, b in combinations(place.nodes, 2):
        assert not a.meets(b)
    for k, node in enumerate(scene.nodes):
        around = frames_of(scene, node.box)
        for f, frame in enumerate(place.frames):
            assert frame.holds(place.nodes[k]) if f in around else not frame.meets(place.nodes[k])
    for f, g in combinations(range(len(place.frames)), 2):
        nested = f in frames_of(scene, g) or g in frames_of(scene, f)
        one, other = place.frames[f], place.frames[g]
        assert one.holds(other) or other.holds(one) if nested else not one.meets(other)
    check_arrows(scene, place)
    check_texts(scene, place)


def check_arrows(scene: Scene, place: Placement) -> None:
    left, bottom, right, top = page_of(place)
    for edge, route in zip(scene.edges, place.routes, strict=True):
        assert len(route.points) % 3 == 1
        ends = ((edge.source, route.points[0]), (edge.target, route.tip))
        for k, end in ends:
            assert on_border(scene, k, place.nodes[k], end)
        allowed = {*frames_of(scene, scene.nodes[edge.source].box), *frames_of(scene, scene.nodes[edge.target].box)}
        for x, y in points_on(route.points):
            assert left - SLACK <= x <= right + SLACK
            assert bottom - SLACK <= y <= top + SLACK
            assert not any(in_node(scene, k, rect, (x, y)) for k, rect in enumerate(place.nodes))
            assert not any(inside((x, y), rect) for f, rect in enumerate(place.frames) if f not in allowed)


def in_node(scene: Scene, k: int, rect: Rect, point: Point) -> bool:
    if not inside(point, rect):
        return False
    if scene.nodes[k].style.shape not in (None, "oval"):
        return True
    wide, tall = (rect.right - rect.left) / 2, (rect.top - rect.bottom) / 2
    x, y = point[0] - rect.left - wide, point[1] - rect.bottom - tall
    return (x / wide) ** 2 + (y / tall) ** 2 < 0.98


def on_border(scene: Scene, k: int, rect: Rect, point: Point) -> bool:
    if scene.nodes[k].style.shape in (None, "oval"):
        wide, tall = (rect.right - rect.left) / 2, (rect.top - rect.bottom) / 2
        x, y = point[0] - rect.left - wide, point[1] - rect.bottom - tall
        return abs((x / wide) ** 2 + (y / tall) ** 2 - 1) < 0.01
    near = Rect(rect.left - SLACK, rect.bottom - SLACK, rect.right + SLACK, rect.top + SLACK)
    return inside(point, near, 0.0) and not inside(point, rect)


def check_texts(scene: Scene, place: Placement) -> None:
    sheet = page_of(place)
    for rect in (*place.nodes, *place.frames):
        assert sheet.holds(rect, SLACK)
    labels: list[Rect] = []
    for edge, route in zip(scene.edges, place.routes, strict=True):
        if edge.middle or edge.arms:
            assert route.label is not None
            labels.append(around(route.label, measure.edge_label_size(edge, scene.page)))
    titles = [
        around(spot, measure.frame_label_size(box, scene.page))
        for spot, box in zip(place.frame_labels, scene.boxes, strict=True)
    ]
    for label in (*labels, *titles):
        assert sheet.holds(label, SLACK)
        assert not any(label.meets(node) for node in place.nodes)
    for a, b in combinations([*labels, *titles], 2):
        assert not a.meets(b)
    for f, title in enumerate(titles):
        assert place.frames[f].holds(title)
        for route in place.routes:
            assert not any(inside(point, title) for point in points_on(route.points))


def around(spot: Point, size: tuple[float, float]) -> Rect:
    # The blanks beside the text of an arrow's label are not its text.
    width, height = size[0] / measure.SLACK, size[1]
    return Rect(spot[0] - width / 2, spot[1] - height / 2, spot[0] + width / 2, spot[1] + height / 2)


def page_of(place: Placement) -> Rect:
    found = re.search(r'bb="([^"]*)"', place.graph)
    assert found is not None
    return Rect(*map(float, found[1].split(",")))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sample", sorted(builders.SAMPLES))
def test_samples(sample: str, direction: str) -> None:
    check(*placed(builders.SAMPLES[sample](), direction=direction, show_buffers="always"))


@pytest.mark.parametrize("seed", range(12))
def test_random_traces(seed: int) -> None:
    direction = DIRECTIONS[seed % 4]
    check(*placed(grown(seed), direction=direction))
    check(*placed(grown(seed), direction=direction, rolled=True))
    check(*placed(grown(seed), direction=direction, depth=1, show_edge_shapes=True))


def test_rolled_loops_go_around() -> None:
    scene, place = placed(builders.loop(), rolled=True)
    check(scene, place)
    back = [route for edge, route in zip(scene.edges, place.routes, strict=True) if edge.source >= edge.target]
    assert back
    assert all(route.tip[1] < route.points[0][1] for route in back)


@pytest.mark.parametrize(("direction", "axis", "sign"), [*zip(DIRECTIONS, (1, 1, 0, 0), (1, -1, 1, -1), strict=True)])
def test_the_flow_runs_as_asked(direction: str, axis: int, sign: int) -> None:
    scene, place = placed(builders.chain(), direction=direction)
    middles = [((r.left + r.right) / 2, (r.bottom + r.top) / 2) for r in place.nodes]
    steps = [sign * (b[axis] - a[axis]) for a, b in pairwise(middles)]
    assert all(step > 0 for step in steps)
    assert scene.nodes[0].name == "input_1"


def test_a_main_line_is_straight() -> None:
    _, place = placed(builders.residual(3))
    middle = [(r.left + r.right) / 2 for r in place.nodes]
    assert max(middle) - min(middle) < 40


def test_a_long_row_of_frames_does_not_wander() -> None:
    _, place = placed(builders.large(600))
    assert page_of(place).right < 900


def test_no_crossing_where_none_is_needed() -> None:
    b = Builder("Branches")
    x = b.input("x", (2, 8))
    first = [b.op(f"op{k}", [x], (2, 8)) for k in range(4)]
    second = [b.op(f"next{k}", [first[k]], (2, 8)) for k in (3, 0, 2, 1)]
    b.output(b.op("cat", second, (2, 8)))
    scene, place = placed(b.build(), direction="topdown")
    spots = {node.name: place.nodes[k].left for k, node in enumerate(scene.nodes)}
    firsts = sorted((spots[name], name[2]) for name in spots if name.startswith("op"))
    nexts = sorted((spots[name], name[4]) for name in spots if name.startswith("next"))
    assert [k for _, k in firsts] == [k for _, k in nexts]


def test_the_engine_draws_what_was_placed() -> None:
    scene, place = placed(builders.demo(), direction="topdown", show_legend=True, caption="below")
    root = ET.fromstring(EMBEDDED.run(dot.write(scene, place), "svg"))
    groups = {group.get("id"): group for group in root.iter(f"{SVG}g")}
    found: list[tuple[float, float, float, float]] = []
    for node in scene.nodes:
        ellipses = list(groups[node.name].iter(f"{SVG}ellipse"))
        if ellipses:
            cx, cy, rx, ry = (float(ellipses[-1].get(name, "0")) for name in ("cx", "cy", "rx", "ry"))
            found.append((cx, cy, 2 * rx, 2 * ry))
        else:
            *_, border = groups[node.name].iter(f"{SVG}polygon")  # the outer one of two
            xs, ys = zip(*(map(float, pair.split(",")) for pair in border.get("points", "").split()), strict=True)
            found.append(((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, max(xs) - min(xs), max(ys) - min(ys)))
    dx = found[0][0] - (place.nodes[0].left + place.nodes[0].right) / 2
    dy = found[0][1] + (place.nodes[0].bottom + place.nodes[0].top) / 2
    for (x, y, width, height), rect in zip(found, place.nodes, strict=True):
        assert x - dx == pytest.approx((rect.left + rect.right) / 2, abs=0.2)
        assert dy - y == pytest.approx((rect.bottom + rect.top) / 2, abs=0.2)
        assert width == pytest.approx(rect.right - rect.left, abs=0.2)
        assert height == pytest.approx(rect.top - rect.bottom, abs=0.2)
    assert "cluster:features:1" in groups
    assert set(groups) > {"input_1", "edge:input_1->conv2d_1_1:1", "tl-graph"}


def test_both_engines_take_the_positions() -> None:
    if SYSTEM.locate() is None:
        pytest.skip("no system engine")
    scene, place = placed(builders.residual())
    text = dot.write(scene, place)
    pages = [re.search(rb'width="(\d+)pt" height="(\d+)pt"', engine.run(text, "svg")) for engine in (EMBEDDED, SYSTEM)]
    assert pages[0] is not None
    assert pages[1] is not None
    assert [int(size) for size in pages[0].groups()] == pytest.approx([int(size) for size in pages[1].groups()], abs=12)


def test_the_same_scene_has_the_same_places() -> None:
    assert placed(grown(3)) == placed(grown(3))


def test_an_empty_figure() -> None:
    scene, _ = placed(builders.chain())
    bare = replace(scene, nodes=(), edges=(), boxes=())
    text = dot.write(*arrange(bare))
    assert EMBEDDED.run(text, "svg").count(b"<svg") == 1


def far_reads() -> TraceData:
    """A chain whose input is read at every step, so that it gets stubs."""
    b = Builder("Chain")
    h = x = b.input("x", (2, 8))
    for _ in range(40):
        h = b.op("sub", [b.op("tanh", [h], (2, 8)), x], (2, 8))
    b.output(h)
    return b.build()


def test_stubs_stand_beside_their_readers() -> None:
    scene, place = placed(far_reads())
    check(scene, place)
    stubs = [k for k, node in enumerate(scene.nodes) if node.kind == "copy"]
    assert len(stubs) > 20
    for edge in scene.edges:
        if edge.source in stubs:
            assert abs(place.nodes[edge.source].top - place.nodes[edge.target].bottom) < 120
    main = [(r.left + r.right) / 2 for k, r in enumerate(place.nodes) if k not in stubs]
    assert max(main) - min(main) < 15


@pytest.mark.parametrize("layout", ["dot", "rank"])
def test_every_id_of_the_svg_is_unique(layout: str) -> None:
    text = draw_trace(far_reads(), None, {"layout": layout}).data.decode()
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(set(ids)) == len(ids)
    assert {"stub:from:input_1", "stub:from:input_1~2"} <= set(ids)


def test_nothing_depends_on_locale_time_zone_or_folder(tmp_path: Path) -> None:
    code = (
        "import hashlib; from tests import builders; from torchlens.drawings import draw_trace;"
        "data = draw_trace(builders.demo(), None, {'layout': 'rank'}).data; print(hashlib.sha256(data).hexdigest())"
    )
    other = {"PYTHONPATH": str(FOLDER), "LC_ALL": "C", "TZ": "Asia/Kolkata", "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **other},
        capture_output=True,
        text=True,
        check=True,
    )
    here = draw_trace(builders.demo(), None, {"layout": "rank"}).data
    assert done.stdout.strip() == hashlib.sha256(here).hexdigest()
