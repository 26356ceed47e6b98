"""Registries: growth by decorator, order, and the refusal of unknown names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlens.base.errors import InvalidArgumentError, UnknownNameError
from torchlens.base.registry import Registry


def test_decorated_entries_come_back_unchanged_and_in_order() -> None:
    table: Registry[Callable[[], int]] = Registry("row")

    @table.add("second")
    def second() -> int:
        return 2

    table.put("first", lambda: 1)
    assert table.get("second") is second
    assert table.names() == ["second", "first"] == list(table)
    assert "first" in table
    assert "third" not in table
    assert len(table) == 2


def test_an_unknown_name_is_refused_with_the_choices_and_the_nearest() -> None:
    table: Registry[int] = Registry("value source", code="encoding_source_invalid")
    table.put("time", 1)
    table.put("bytes", 2)
    with pytest.raises(InvalidArgumentError) as caught:
        table.get("tme")
    assert caught.value.code == "encoding_source_invalid"
    assert caught.value.allowed == ("bytes", "time")
    assert "'time'" in str(caught.value)
    with pytest.raises(UnknownNameError, match="config_name_unknown"):
        Registry[int]("view").get("x")


def test_a_falsy_entry_is_an_entry() -> None:
    table: Registry[int] = Registry("number")
    table.put("zero", 0)
    assert table.get("zero") == 0


def test_a_name_is_given_once() -> None:
    table: Registry[int] = Registry("row")
    table.put("a", 1)
    with pytest.raises(InvalidArgumentError, match="registry_name_taken"):
        table.put("a", 2)
    assert table.get("a") == 1
