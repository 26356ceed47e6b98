"""Rules of `collapse_rules=`: what is taken, and which rule and key a refusal names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from torchlens.base.errors import InvalidArgumentError
from torchlens.settings.layers import check_draw, load_draw
from torchlens.settings.options import options, validate_option
from torchlens.settings.rules import Rule, check_rules, read_rules

GOOD = [{"class": " Attention* ", "do": "fold"}, {"address": 0, "do": "keep"}, {"op": "view", "do": "hide"}]


def test_rules_are_kept_as_texts_and_read_with_their_place() -> None:
    kept = check_rules(GOOD)
    assert kept == ({"class": "Attention*", "do": "fold"}, {"address": "0", "do": "keep"}, {"op": "view", "do": "hide"})
    assert check_rules(kept) == kept
    assert read_rules(kept)[0] == Rule(0, "class", "Attention*", "fold")
    assert str(read_rules(kept)[2]) == "collapse_rules[2] (op: view, do: hide)"
    assert read_rules(None) == read_rules(()) == ()


WRONG: list[tuple[Any, str]] = [
    ({"class": "Block", "do": "fold"}, r"is no list of rules.*write a list, such as \[\{"),
    ("Block", "is no list of rules"),
    (["Block"], r"collapse_rules\[0\] is no mapping but 'Block'"),
    ([GOOD[0], {"clas": "A", "do": "fold"}], r"collapse_rules\[1\].clas is no known key.*perhaps you meant 'class'"),
    ([{"do": "fold"}], r"rules\[0\] names what it is about by none of them.*exactly one of class, address, op"),
    ([{"class": "A", "op": "b", "do": "hide"}], r"collapse_rules\[0\] names what it is about by class and op"),
    ([{"class": ""}], r"collapse_rules\[0\].class='' is no pattern"),
    ([{"class": True, "do": "fold"}], r"collapse_rules\[0\].class=True is no pattern"),
    ([{"address": 1.5, "do": "fold"}], r"collapse_rules\[0\].address=1.5 is no pattern.*quotes"),
    ([{"class": "A"}], r"collapse_rules\[0\] has no key do. Allowed: fold, keep, hide"),
    ([{"class": "A", "do": "hid"}], r"collapse_rules\[0\].do='hid' is no action.*perhaps you meant 'hide'"),
    ([{"class": "A", "do": ["fold"]}], r"collapse_rules\[0\].do=\['fold'\] is no action"),
    ([{"op": "relu", "do": "fold"}], r"do=fold is not for an op.*Allowed: keep, hide.*write do: hide"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "words"), WRONG, ids=str)
def test_a_refusal_names_rule_and_key(value: object, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_rules_invalid\]") as caught:
        validate_option("collapse_rules", value)
    assert re.search(words, str(caught.value)), caught.value
    assert caught.value.allowed


def test_a_refusal_in_a_file_names_the_file() -> None:
    with pytest.raises(InvalidArgumentError, match=r"view\.yaml: draw\.collapse_rules\[0\]\.do='x'"):
        check_draw("view.yaml", {"collapse_rules": [{"op": "relu", "do": "x"}]})


def test_none_and_an_empty_list_are_values() -> None:
    assert validate_option("collapse_rules", None) is None
    assert validate_option("collapse_rules", []) == ()
    assert "fold, keep or hide" in options()["collapse_rules"].allowed[0]


def test_the_preset_hides_and_names_each_op_once() -> None:
    rules: Any = load_draw("collapse", "plumbing")["collapse_rules"]
    assert {rule["do"] for rule in rules} == {"hide"}
    assert len({rule["op"] for rule in rules}) == len(rules)


def test_a_users_file_is_checked_like_a_packaged_one(tmp_path: Path) -> None:
    (tmp_path / "collapse").mkdir()
    (tmp_path / "collapse" / "blocks.yaml").write_text("draw: {collapse_rules: [{class: Block, do: fold}]}")
    assert load_draw("collapse", "blocks", [tmp_path]) == {"collapse_rules": ({"class": "Block", "do": "fold"},)}
