"""Text inside labels and quotes: nothing a user writes is read as markup."""

from __future__ import annotations

import pytest

from torchlens.render.dot_text import (
    TEXT_LIMIT,
    attribute_list,
    html,
    number,
    quote,
    quote_label,
    quote_tooltip,
    strong,
)


def test_html_escapes_what_markup_would_be() -> None:
    assert html('<a & "b">[c]') == "&lt;a &amp; &quot;b&quot;&gt;&#91;c&#93;"
    assert html("one\ntwo") == "one<BR/>two"
    assert html("a\x01b") == "a�b"


def test_quote_escapes_and_caps() -> None:
    assert quote('a"b\\N') == '"a\\"b\\\\N"'
    assert len(quote("x" * 9000)) <= TEXT_LIMIT + 2


def test_entities_of_a_user_are_no_entities_in_labels_and_tooltips() -> None:
    assert quote_label("a&lt;b") == '"a&amp;lt;b"'
    assert quote_tooltip("a&lt;\\N\n") == '"a&amp;lt;\\\\\\\\N\\n"'
    assert attribute_list({"tooltip": "\\"}) == '[tooltip="\\\\\\\\"]'
    assert len(quote_tooltip("&" * 9000)) < 16_384


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.7, "0.7"), (2.456, "2.46"), (1e-9, "0"), (48, "48")])
def test_numbers_have_a_fixed_form(value: float, text: str) -> None:
    assert number(value) == text


def test_an_attribute_without_a_value_is_left_out() -> None:
    assert attribute_list({"a": 1.5, "b": None, "c": "x y"}) == '[a=1.5 c="x y"]'


def test_empty_text_is_never_made_bold() -> None:
    assert (strong("", True), strong("x", True), strong("x", False)) == ("", "<B>x</B>", "x")
