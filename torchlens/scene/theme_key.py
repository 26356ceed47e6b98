"""The key of a theme on a page of its own: every fill and outline that a figure may show, beside what it means.

A paper needs it once for many figures. The words are those of the key inside a figure; the samples are drawn as nodes
and arrows are, at a smaller size. Knows no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from torchlens.plan.graph import FOLD, OUTPUTS, SEGMENT
from torchlens.scene.label_size import text_width
from torchlens.scene.layers import Patch, StyleLayer, merge
from torchlens.scene.legend import FILLS, OWN_FILLS, SHAPES
from torchlens.scene.marks import KEY_WORDS, Reading, mark_of
from torchlens.scene.model import NodeStyle
from torchlens.scene.roles import CAPSULE_ROLES
from torchlens.scene.sheet import CENTER, Area, Line, Shape, Sheet, Words
from torchlens.settings.theme import RoleStyle, Theme

TITLE = "Key"
FILL_TITLE, OUTLINE_TITLE, LINE_TITLE, VALUE_TITLE = "Fill", "Outline", "Lines and labels", "Values, if marked"
# Points: a sample, the gap to its words, a row, the gap between columns. Text may turn out wider than it is measured.
SAMPLE, ASIDE, ROW, GUTTER, SLACK = (36.0, 18.0), 8.0, 23.0, 20.0, 1.3
FRAME_WIDTH = 3.5
# Roles whose look a key inside a figure explains only where it differs from that of any other operation.
_LOOKS = ("fill", "stroke", "stroke_width", "dash")
_LINES = {"line": "tensor", "line:dashed": "not computed from the input, or via hidden ops"}
_LABELS = {
    "x2": "the same tensor, twice",
    "[1]": "output 1 of several",
    "(x3)": "applied 3 times, same parameters",
    "+3 more": "3 further modules, own parameters",
}


class _Row(NamedTuple):
    """One row: a sample as a style, a line, or a text, and its words."""

    name: str
    words: str
    style: NodeStyle | None = None
    line: bool = False
    dashed: bool = False
    text: str = ""


def theme_key(theme: Theme) -> Sheet:
    """The key of a theme."""
    columns = [
        [(FILL_TITLE, list(_fills(theme)))],
        [(OUTLINE_TITLE, list(_outlines(theme)))],
        [(LINE_TITLE, list(_lines())), (VALUE_TITLE, list(_values(theme)))],
    ]
    marks: list[Shape | Words | Line] = []
    left = height = 0.0
    for parts in columns:
        top = 0.0
        wide = 0.0
        for title, rows in parts:
            title_room = text_width(title, theme.fonts.secondary, True) * SLACK
            words_room = max(text_width(row.words, theme.fonts.secondary, theme.page.bold) for row in rows) * SLACK
            wide = max(wide, title_room, SAMPLE[0] + ASIDE + words_room)
            area = Area(left, top, title_room, ROW)
            marks.append(Words(f"key:{title}", title, area, theme.fonts.secondary, theme.page.text, bold=True))
            top += ROW
            for row in rows:
                marks += _row(row, left, top, words_room, theme)
                top += ROW
            top += ROW / 2
        left, height = left + wide + GUTTER, max(height, top - ROW / 2)
    page = theme.page
    return Sheet(
        f"{TITLE} of the theme {theme.name}",
        left - GUTTER,
        height,
        page.background,
        page.family,
        page.bold,
        72 * page.pad,
        tuple(marks),
    )


# -- rows
def _fills(theme: Theme) -> Iterator[_Row]:
    plain = theme.roles["op"]
    for role, words in {**FILLS, **OWN_FILLS}.items():
        look = theme.roles[role]
        if role in FILLS or any(getattr(look, name) != getattr(plain, name) for name in _LOOKS):
            yield _Row(f"fill:{role}", words, _style(look))


def _outlines(theme: Theme) -> Iterator[_Row]:
    plain = _style(theme.roles["op"])
    shapes = {
        "oval": plain,
        "box": _with(plain, shape="box"),
        "double": _with(plain, shape="box", peripheries=2),
        "box3d": _with(plain, shape="box3d"),
        "cylinder": _with(plain, shape="cylinder"),
        "picture": _with(plain, shape="box", rounded=True),
        SEGMENT: _with(_style(theme.roles[CAPSULE_ROLES[SEGMENT]]), shape="box", rounded=True),
        OUTPUTS: _with(_style(theme.roles[CAPSULE_ROLES[OUTPUTS]]), peripheries=2),
        "dashed": _with(plain, dash="dashed"),
    }
    for name, text in SHAPES.items():
        if name == FOLD:
            continue
        yield _Row(f"outline:{name}", text.partition(": ")[2], shapes[name])
    look = theme.roles["module"]
    frame = _with(plain, shape="box", fill=look.fill or theme.page.background, stroke=look.stroke or theme.page.text)
    yield _Row("outline:module", "frame: one call of a module, thick outside", _with(frame, stroke_width=FRAME_WIDTH))


def _lines() -> Iterator[_Row]:
    for name, words in _LINES.items():
        yield _Row(name, words, line=True, dashed=name.endswith("dashed"))
    for label, words in _LABELS.items():
        yield _Row(f"label:{label}", words, text=label)


def _values(theme: Theme) -> Iterator[_Row]:
    for state, words in KEY_WORDS.items():
        patch = mark_of(Reading(state), "oval", theme.page.text, whole=True)
        assert patch is not None
        style, _, _ = merge([Patch(StyleLayer.THEME, "theme", _style(theme.roles["op"])), patch])
        yield _Row(f"value:{state}", words, style)


def _style(look: RoleStyle) -> NodeStyle:
    return NodeStyle(
        shape="oval", peripheries=1, fill=look.fill, stroke=look.stroke, stroke_width=look.stroke_width, dash=look.dash
    )


def _with(style: NodeStyle, **changed: object) -> NodeStyle:
    return replace(style, **changed)  # type: ignore[arg-type]


def _row(row: _Row, left: float, top: float, room: float, theme: Theme) -> Sequence[Shape | Words | Line]:
    width, height = SAMPLE
    middle = top + ROW / 2
    area = Area(left, middle - height / 2, width, height)
    size, edge = theme.fonts.secondary, theme.edges["data"]
    words = Words(f"key:{row.name}:words", row.words, Area(left + width + ASIDE, top, room, ROW), size, theme.page.text)
    if row.line:
        ends = ((left, middle), (left + width, middle))
        return (Line(f"key:{row.name}", ends, edge.color, edge.width, row.dashed, arrow=True), words)
    if row.text:
        place = Area(left - ASIDE / 2, top, width + ASIDE, ROW)
        return (Words(f"key:{row.name}", row.text, place, size, theme.page.text, CENTER), words)
    assert row.style is not None
    return (Shape(f"key:{row.name}", area, row.style), words)
