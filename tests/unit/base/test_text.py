"""Cutting, wrapping and cleaning of figure text."""

from __future__ import annotations

import pytest

from torchlens.base.text import clean, listing, truncate, wrap


@pytest.mark.parametrize(
    ("text", "limit", "cut"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("ab cd", 4, "ab…"), ("abc", 1, "…"), ("", 5, "")]
)
def test_truncate(text: str, limit: int, cut: str) -> None:
    assert truncate(text, limit) == cut


def test_wrap_keeps_a_short_text_on_one_line() -> None:
    assert wrap("a=1, b=2", 60, [", ", " · "]) == ["a=1, b=2"]
    assert wrap("", 60, [", "]) == [""]


def test_wrap_breaks_behind_separators_only() -> None:
    assert wrap("alpha=1, beta=2, gamma=3", 12, [", "]) == ["alpha=1,", "beta=2,", "gamma=3"]
    assert wrap("weight (16, 8) · bias (16,)", 20, [", ", " · "]) == ["weight (16, 8) ·", "bias (16,)"]


def test_wrap_never_breaks_inside_brackets() -> None:
    text = "kernel_size=(3, 3), padding=(1, 1), index=[:, 0]"
    lines = wrap(text, 20, [", "])
    assert lines == ["kernel_size=(3, 3),", "padding=(1, 1),", "index=[:, 0]"]


def test_wrap_ignores_brackets_that_do_not_pair() -> None:
    assert wrap("a=(1, b=2, c=3", 6, [", "]) == ["a=(1,", "b=2,", "c=3"]


def test_wrap_leaves_a_long_piece_whole() -> None:
    assert wrap("x" * 30 + ", y", 10, [", "]) == ["x" * 30 + ",", "y"]


def test_wrapped_lines_hold_the_whole_text() -> None:
    text = "in_features=512, out_features=1000, padding=(1, 1), mode=nearest"
    for limit in range(1, 70):
        assert " ".join(wrap(text, limit, [", "])) == text


def test_clean_replaces_what_no_format_can_hold() -> None:
    assert clean("a\x00b\x1bc\x7fd\x85") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert clean("lone \ud800 \ufffe \U0001ffff") == "lone \ufffd \ufffd \ufffd"


def test_clean_keeps_everything_else() -> None:
    text = 'Größe · Δ … 模型 🙂 <b>&"\n'
    assert clean(text) == text


@pytest.mark.parametrize(
    ("parts", "limit", "text"),
    [
        (["1", "3"], 1, "1,3"), (["1", "2", "3", "4"], 7, "1,2,3,4"), (["1", "2", "3", "4"], 6, "1,…,4"),
        ([str(k) for k in range(1, 1200, 2)], 16, "1,3,5,7,9,…,1199"),
    ],
)  # fmt: skip
def test_listing_keeps_both_ends(parts: list[str], limit: int, text: str) -> None:
    assert listing(parts, limit) == text
