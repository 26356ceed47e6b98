"""Commands that draw one figure of a set."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from torchlens.runner.commands import command


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({}, "torchlens"),
        ({"model": "rnn", "draw": {"rolled": True}}, "torchlens model=rnn draw.rolled=true"),
        ({"theme": "dark", "view": "speed", "model": None}, "torchlens view=speed theme=dark"),
        ({"input": {"kind": "image", "path": "a.png"}}, "torchlens input=image input.path=a.png"),
        ({"input": {"shape": [2, 3]}, "draw": None}, "torchlens 'input.shape=[2,3]'"),
        ({"draw": {"show_legend": None, "caption": "true"}}, "torchlens draw.show_legend=null 'draw.caption=\"true\"'"),
        ({"theme": "dark", "kind": "legend"}, "torchlens theme=dark figures.main.kind=legend"),
        (
            {"annotate": [{"select": "a", "data": {"b": 1}}]},
            "torchlens 'figures.main.annotate=[{select:a,data:{b:1}}]'",
        ),
    ],
)
def test_an_entry_as_a_command(entry: dict[str, Any], text: str) -> None:
    assert command(entry) == text


@pytest.mark.parametrize("value", ["it's", 'a "b" \\', "a, b: {c}", "", "null", "1", "$x", "#fff", 1.5, [True, "x y"]])
def test_any_value_comes_back_through_the_shell_and_hydra(value: object) -> None:
    (word,) = shlex.split(command({"draw": {"caption": value}}))[1:]
    (override,) = OverridesParser.create().parse_overrides([word])
    found = override.value()
    assert found == value or [str(item) for item in found] == [str(item) for item in value]  # type: ignore[union-attr]
