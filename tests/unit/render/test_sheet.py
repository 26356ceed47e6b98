"""Sheets as DOT text: everything stands where it was put, in every engine and format."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from torchlens.render.engine import ENGINES, FORMATS, make_artifact
from torchlens.render.graphviz import find_system
from torchlens.render.sheet import page_of, write
from torchlens.scene.model import NodeStyle
from torchlens.scene.sheet import CENTER, LEFT, RIGHT, Area, Line, Shape, Sheet, Words

LOOK = NodeStyle(shape="oval", peripheries=1, fill="#98fb98", stroke="#000000", stroke_width=1.0)
SIDES = NodeStyle(shape="box", peripheries=1, fill="#ececec", stroke=None, stroke_width=0.0)
HOSTILE = '<b>&"]]> {0}'
MARGIN = 10.0
GROUND = Area(10, 5, 280, 110)
SHEET = Sheet(
    'a "sheet" & more',
    300.0,
    120.0,
    "#ffffff",
    "Helvetica",
    False,
    MARGIN,
    (
        Words("left", "at the left", Area(20, 10, 100, 16), 10.0, "#333333"),
        Words("right", "at the right", Area(150, 10, 100, 16), 10.0, "#333333", RIGHT),
        Words("middle", HOSTILE, Area(150, 40, 100, 16), 10.0, "#333333", CENTER, bold=True),
        Line("line", ((20.0, 100.0), (80.0, 100.0), (80.0, 60.0)), "#ff0000", 2.0),
        Line("arrow", ((100.0, 100.0), (140.0, 100.0)), "#0000ff", 1.0, dashed=True, arrow=True),
        Shape("ellipse", Area(200, 70, 40, 20), LOOK),
        Shape("twice", Area(250, 70, 40, 20), NodeStyle("oval", 2, "#ffffff", stroke="#000000", stroke_width=1.0)),
        Shape("ground", GROUND, SIDES, ground=True),
    ),
)
ENGINE = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=[pytest.mark.skipif(name == "system" and not find_system(), reason="no dot")])
        for name in ENGINES
    ],
)


def _svg(engine: str, sheet: Sheet = SHEET) -> ET.Element:
    text = make_artifact(write(sheet), "svg", engine=engine).data.decode()
    return ET.fromstring(re.sub(r' xmlns="[^"]*"', "", text))


def _part(root: ET.Element, name: str) -> ET.Element:
    (found,) = [element for element in root.iter("g") if element.get("id") == name]
    return found


def _at(x: Any, y: Any) -> tuple[float, float]:
    """From the coordinates of the drawing, whose origin is the ground's lower left corner, to those of the sheet."""
    return float(x) + GROUND.left, float(y) + GROUND.top + GROUND.height


@ENGINE
def test_shapes_are_as_large_as_their_areas_and_in_place(engine: str) -> None:
    root = _svg(engine)
    for name, (left, top, width, height) in (("ellipse", (200, 70, 40, 20)), ("twice", (250, 70, 40, 20))):
        ellipses = list(_part(root, name).iter("ellipse"))
        outer = max(ellipses, key=lambda ellipse: float(ellipse.get("rx")))
        assert len(ellipses) == (2 if name == "twice" else 1)
        center = _at(outer.get("cx"), outer.get("cy"))
        assert center == pytest.approx((left + width / 2, top + height / 2), abs=0.6)
        assert (float(outer.get("rx")), float(outer.get("ry"))) == pytest.approx((width / 2, height / 2), abs=0.6)


@ENGINE
def test_words_stand_at_their_side(engine: str) -> None:
    root = _svg(engine)
    texts = {"".join(text.itertext()): text for text in root.iter("text")}
    x, y = _at(texts["at the left"].get("x"), texts["at the left"].get("y"))
    assert x == pytest.approx(20, abs=1.5)
    assert 10 < y < 26
    right = texts["at the right"]
    x, _ = _at(right.get("x"), right.get("y"))
    # Written from its start: about 5 points per character before the right side.
    assert x == pytest.approx(250 - 5 * len("at the right"), abs=16)
    middle = texts[HOSTILE]
    assert middle.get("font-weight") == "bold"


@ENGINE
def test_lines_go_through_their_points(engine: str) -> None:
    root = _svg(engine)
    (path,) = _part(root, "line").iter("path")
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.get("d"))]
    points = [_at(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
    for point in ((20, 100), (80, 100), (80, 60)):
        assert any(found == pytest.approx(point, abs=0.6) for found in points)
    assert (path.get("stroke"), float(path.get("stroke-width"))) == ("#ff0000", 2.0) or path.get("stroke") == "red"
    assert not list(_part(root, "line").iter("polygon"))
    (head,) = _part(root, "arrow").iter("polygon")
    tip = max(_at(*pair.split(","))[0] for pair in head.get("points").split())
    assert tip == pytest.approx(140, abs=2)


@ENGINE
def test_the_ground_is_painted_first_and_shapes_over_lines(engine: str) -> None:
    names = [element.get("id") for element in _svg(engine).iter("g")]
    assert names.index("ground") < names.index("line") < names.index("ellipse")


@ENGINE
def test_the_page_holds_all_marks_and_the_margin(engine: str) -> None:
    page = make_artifact(write(SHEET), "svg", engine=engine).page
    assert page is not None
    # The ground is the largest mark.
    assert (page.width, page.height) == pytest.approx((280 + 2 * MARGIN, 110 + 2 * MARGIN), abs=1)
    assert page_of(SHEET)[2:] == (300.0, 120.0)


def test_every_format_is_written_and_bytes_repeat() -> None:
    assert write(SHEET) == write(SHEET)
    for file_format in FORMATS:
        assert make_artifact(write(SHEET), file_format).data == make_artifact(write(SHEET), file_format).data


def test_words_without_room_are_not_cut() -> None:
    narrow = Sheet(
        "x", 50.0, 20.0, "#ffffff", "Helvetica", False, 0.0, (Words("w", "", Area(0, 0, 5, 5), 8.0, "#000000", LEFT),)
    )
    assert "w0" in write(narrow)
