"""The declaration table: what it derives, what it accepts, and what it says when it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from torchlens.base.codes import CODES
from torchlens.base.errors import InvalidArgumentError
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
        value = (choice,) if option.type is tuple else choice
        assert validate_option(name, value) == value
    for wrong in (
        object(),
        0.5 if option.type is float else 1.5,
        "zzz" if option.choices or option.type is not str else b"zzz",
        [1],
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            validate_option(name, wrong)
        assert caught.value.code == (option.level_code if option.levels and wrong == 1.5 else option.code)
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


def test_a_number_may_be_whole_and_is_stored_as_a_float() -> None:
    assert (validate_option("size_cap", 3), type(validate_option("size_cap", 3))) == (3.0, float)
    for wrong in (0.99, True, "3", float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError, match="draw_size_cap_invalid"):
            validate_option("size_cap", wrong)


def test_a_channel_takes_a_word_a_function_or_nothing_and_columns_take_true() -> None:
    for name in ("color_by", "size_by", "stack_by"):
        assert validate_option(name, abs) is abs
        assert validate_option(name, None) is None
        for wrong in (int, 3, ["time"], False):
            with pytest.raises(InvalidArgumentError, match="encoding_source_invalid"):
                validate_option(name, wrong)
    assert validate_option("stack_by", True) == "auto"
    with pytest.raises(InvalidArgumentError, match="perhaps you meant 'bytes'"):
        validate_option("color_by", "byte")


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


@pytest.mark.parametrize("value", ["none", "auto", "max", 0, 0.0, 0.25, 1.0])
def test_collapse_takes_modes_and_levels(value: object) -> None:
    stored = validate_option("collapse", value)
    assert stored == value
    assert isinstance(stored, str if isinstance(value, str) else float)


@pytest.mark.parametrize("value", [1.01, -0.1, 2, float("nan"), float("inf")])
def test_a_level_outside_of_0_to_1_is_invalid(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_level_invalid\].*a number from 0 to 1"):
        validate_option("collapse", value)


@pytest.mark.parametrize("value", ["most", True, None, "0.5", [0.5]])
def test_what_is_no_collapse_mode_is_invalid(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_mode_invalid\]"):
        validate_option("collapse", value)


@pytest.mark.parametrize("value", ["yes", 1, 0.5])
def test_fold_repeats_is_a_flag_or_none(value: object) -> None:
    assert [validate_option("fold_repeats", v) for v in (None, True, False)] == [None, True, False]
    with pytest.raises(InvalidArgumentError, match=r"\[fold_repeats_invalid\]"):
        validate_option("fold_repeats", value)


def test_an_unknown_keyword_is_a_type_error_naming_the_nearest() -> None:
    check_keywords(["color_by", "view", "theme"])
    with pytest.raises(TypeError, match=r"no option 'colour_by'\. Did you mean 'color_by'"):
        check_keywords(["depth", "colour_by"])
    with pytest.raises(TypeError, match="Options: rolled, depth"):
        check_keywords(["qqqqqqq"])


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


def test_a_list_option_is_stored_as_a_tuple_and_names_the_word_it_refuses() -> None:
    fields = ["name", "shape"]
    stored = validate_option("node_label_fields", fields)
    fields.append("dtype")
    assert stored == ("name", "shape")
    assert validate_option("node_label_fields", []) == ()
    with pytest.raises(
        InvalidArgumentError, match=r"\[node_label_field_invalid\].*perhaps you meant 'shape' by 'shapes'"
    ):
        validate_option("node_label_fields", ["name", "shapes"])
    with pytest.raises(InvalidArgumentError, match=r'write a list, such as \["name"\]'):
        validate_option("node_label_fields", "name")
    for wrong in (["name", 3], {"name"}, b"name", [["name"]]):
        with pytest.raises(InvalidArgumentError, match="node_label_field_invalid"):
            validate_option("node_label_fields", wrong)


def test_a_word_that_may_be_off_takes_false_but_not_true() -> None:
    assert validate_option("show_containers", False) is False
    assert validate_option("show_containers", "labels") == "labels"
    for wrong in (True, 0, None, "false"):
        with pytest.raises(InvalidArgumentError, match="draw_show_containers_invalid"):
            validate_option("show_containers", wrong)
