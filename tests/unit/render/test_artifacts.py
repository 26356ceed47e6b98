"""The page of a file: its size in print and that of its text."""

from __future__ import annotations

import pytest

from torchlens.render.artifacts import Page


def test_text_scales_with_the_page() -> None:
    page = Page(400, 900).with_text(8)
    assert (page.width_pt, page.smallest_text) == (400, 8)
    assert page.text_at(200) == 4
    assert page.text_at(400) == 8


def test_a_shrunk_page_has_smaller_text() -> None:
    page = Page(200, 14_400, "pt", 0.5).with_text(8)
    assert page.smallest_text == 4
    assert page.text_at(200) == 4


def test_pixels_are_points_at_their_resolution() -> None:
    page = Page(800, 1800, "px", 2.0).with_text(8)
    assert (page.width_pt, page.smallest_text) == (400, 8)
    assert page.text_at(100) == pytest.approx(2)


def test_without_text() -> None:
    assert Page(10, 10).with_text(None).text_at(5) is None
