"""The key of a theme: every row that a figure's own key may have, with the theme's looks, and nothing on top of it."""

from __future__ import annotations

from itertools import combinations

import pytest

from torchlens.plan.graph import FOLD
from torchlens.scene.legend import FILLS, OWN_FILLS, SHAPES
from torchlens.scene.marks import MOTIFS, WORDS
from torchlens.scene.sheet import Area, Shape, Sheet, Words
from torchlens.scene.theme_key import theme_key
from torchlens.settings import catalog
from torchlens.settings.theme import load_theme

THEMES = catalog.names("theme")
every_theme = pytest.mark.parametrize("name", THEMES)


def _shapes(sheet: Sheet) -> dict[str, Shape]:
    return {mark.name.removeprefix("key:"): mark for mark in sheet.marks if isinstance(mark, Shape)}


def _texts(sheet: Sheet) -> set[str]:
    return {mark.text for mark in sheet.marks if isinstance(mark, Words)}


@every_theme
def test_every_fill_of_the_theme_has_a_row(name: str) -> None:
    theme = load_theme(name)
    sheet = theme_key(theme)
    shapes, texts = _shapes(sheet), _texts(sheet)
    for role, words in FILLS.items():
        assert words in texts
        assert shapes[f"fill:{role}"].style.fill == theme.roles[role].fill
        assert shapes[f"fill:{role}"].style.stroke == theme.roles[role].stroke
    for role in OWN_FILLS:
        assert (f"fill:{role}" in shapes) == (theme.roles[role].fill != theme.roles["op"].fill)


@every_theme
def test_every_outline_and_mark_has_a_row(name: str) -> None:
    sheet = theme_key(load_theme(name))
    shapes, texts = _shapes(sheet), _texts(sheet)
    for shape, words in SHAPES.items():
        if shape != FOLD:
            assert words.partition(": ")[2] in texts
            assert f"outline:{shape}" in shapes
    assert any(text.startswith("+") and text.endswith("more") for text in texts)
    assert {shapes[f"value:{state}"].style.fill for state in WORDS} == set(MOTIFS.values())
    assert len({shapes[f"outline:{shape}"].style for shape in SHAPES if shape != FOLD}) == len(SHAPES) - 1


@every_theme
def test_nothing_overlaps_or_leaves_the_page(name: str) -> None:
    sheet = theme_key(load_theme(name))
    areas = [mark.area for mark in sheet.marks if isinstance(mark, (Shape, Words))]
    for left, top, width, height in areas:
        assert left >= -5
        assert top >= 0
        assert left + width <= sheet.width + 1
        assert top + height <= sheet.height + 1
    assert not [pair for pair in combinations(areas, 2) if _overlap(*pair)]


def _overlap(a: Area, b: Area) -> bool:
    across = min(a.left + a.width, b.left + b.width) - max(a.left, b.left)
    down = min(a.top + a.height, b.top + b.height) - max(a.top, b.top)
    return across > 4.5 and down > 0.5


@every_theme
def test_every_part_has_a_name_of_its_own(name: str) -> None:
    names = [mark.name for mark in theme_key(load_theme(name)).marks]
    assert len(set(names)) == len(names)


def test_themes_differ() -> None:
    assert len({theme_key(load_theme(name)).marks for name in THEMES}) == len(THEMES)
