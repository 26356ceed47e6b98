"""The declaration table: what it derives, what it accepts, and what it says when it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from torchlens.base.codes import CODES
from torchlens.base.errors import InvalidArgumentError, UnavailableError
from torchlens.settings.options import DrawOptions, check_keywords, document, options, validate_option


def test_the_table_has_the_fields_of_the_dataclass_with_their_defaults() -> None:
    defaults = DrawOptions()
    assert list(options()) == [item.name for item in dataclasses.fields(DrawOptions)]
    assert {name: option.default for name, option in options().items()} == dataclasses.asdict(defaults)


def test_every_default_is_an_allowed_value() -> None:
    for name, option in options().items():
        assert validate_option(name, option.default) == option.default


def test_every_option_has_a_meaning_and_a_code_with_a_row() -> None:
    for option in options().values():
        assert option.doc
        assert option.code in CODES
        assert CODES[option.code].kind == "InvalidArgumentError"


@pytest.mark.parametrize("name", list(options()))
def test_every_choice_is_accepted_and_anything_else_refused_with_the_options_code(name: str) -> None:
    option = options()[name]
    for choice in option.choices:
        assert validate_option(name, choice) == choice
    for wrong in (
        object(),
        1.5,
        "zzz" if option.choices or option.type is not str else b"zzz",
        [1],
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            validate_option(name, wrong)
        assert caught.value.code == option.code
        assert name in str(caught.value)
        for word in option.allowed:
            assert word in str(caught.value)


@pytest.mark.parametrize("name", [o.name for o in options().values() if o.type is bool])
def test_a_flag_takes_bools_only(name: str) -> None:
    assert validate_option(name, True) is True
    for wrong in (1, 0, "true", "off"):
        with pytest.raises(InvalidArgumentError):
            validate_option(name, wrong)


@pytest.mark.parametrize("name", list(options()))
def test_null_is_a_value_only_where_it_is_declared(name: str) -> None:
    if options()[name].nullable:
        assert validate_option(name, None) is None
    else:
        with pytest.raises(InvalidArgumentError):
            validate_option(name, None)


def test_numbers_have_a_minimum_and_are_not_bools() -> None:
    assert validate_option("depth", 1) == 1
    for wrong in (0, -3, True, 2.0, "2"):
        with pytest.raises(InvalidArgumentError) as caught:
            validate_option("depth", wrong)
        assert caught.value.code == "draw_depth_invalid"


def test_whole_numbers_of_other_types_and_paths_are_stored_plainly() -> None:
    class Whole:
        def __index__(self) -> int:
            return 3

    assert type(validate_option("depth", Whole())) is int
    assert validate_option("pdf_font", Path("a/b.ttf")) == "a/b.ttf"


def test_graph_attributes_are_copied_and_checked() -> None:
    given = {"splines": "ortho", "nodesep": 0.5}
    stored = validate_option("graph_attrs", given)
    given["splines"] = "changed"
    assert stored == {"splines": "ortho", "nodesep": 0.5}
    for wrong in ({"a": [1]}, {1: "a"}, ["a"]):
        with pytest.raises(InvalidArgumentError):
            validate_option("graph_attrs", wrong)


@pytest.mark.parametrize("value", ["auto", "max", 0, 0.0, 0.25, 1.0])
def test_collapse_modes_to_come_say_so(value: object) -> None:
    with pytest.raises(UnavailableError, match=r"\[collapse_unavailable\].*not available yet"):
        validate_option("collapse", value)


@pytest.mark.parametrize("value", ["most", 1.01, -0.1, True, None, float("nan")])
def test_what_no_collapse_mode_will_ever_be_is_invalid(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_mode_invalid\]"):
        validate_option("collapse", value)


def test_an_unknown_keyword_is_a_type_error_naming_the_nearest() -> None:
    check_keywords(["color_by", "view", "theme"])
    with pytest.raises(TypeError, match=r"no option 'colour_by'\. Did you mean 'color_by'"):
        check_keywords(["depth", "colour_by"])
    with pytest.raises(TypeError, match="Options: rolled, depth"):
        check_keywords(["qqqqqqq"])
    with pytest.raises(TypeError, match=r"no option 'module'\. Options"):
        check_keywords(["module"])


def test_a_misspelt_choice_names_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match="perhaps you meant 'profiling'"):
        validate_option("node_style", "profilling")


def test_the_text_form_names_every_option_and_choice() -> None:
    lines = document().splitlines()
    assert len(lines) == len(options())
    for line, option in zip(lines, options().values(), strict=True):
        assert line.startswith(option.name)
        assert option.doc in line
        assert all(word in line for word in option.allowed)
