"""View files: what the shipped ones set, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlens.base.errors import ConfigError, InvalidArgumentError
from torchlens.settings import catalog
from torchlens.settings.view import load_view, view_names


def test_the_speed_view() -> None:
    view = load_view("speed")
    assert dict(view.draw) == {
        "node_style": "profiling", "color_by": "time", "color_scale": "rank", "show_legend": True,
    }  # fmt: skip
    assert view.needs == ("timings",)
    assert view.caption == ("coverage", "quantity", "rank_order", "instrumented")
    assert view.question.endswith("?")


def test_every_shipped_view_loads_and_plain_sets_nothing() -> None:
    for name in catalog.names("view"):
        assert load_view(name).name == name
    assert not load_view("plain").draw
    assert "plain" not in view_names()


def test_extension_merges_settings_and_replaces_lists(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "mine.yaml").write_text(
        "question: Mine?\nextends: speed\ndraw: {color_by: flops, depth: 2}\ncaption: [coverage]\n"
    )
    view = load_view("mine", [tmp_path])
    assert view.draw["color_by"] == "flops"
    assert view.draw["node_style"] == "profiling"
    assert view.draw["depth"] == 2
    assert (view.caption, view.needs, view.question) == (("coverage",), ("timings",), "Mine?")
    assert view_names([tmp_path]) == ["mine", "speed"]


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ({"extends": "speed", "settings": {}}, ["settings is not a known key"]),
        ({"draw": {"depth": 1}}, ["question is missing"]),
        ({"question": 3}, ["question is not a text"]),
        ({"question": "q", "draw": [1]}, ["draw is not a mapping"]),
        ({"question": "q", "draw": {"view": "speed"}}, ["draw.view is not a known key"]),
        ({"question": "q", "needs": ["timing"]}, ["needs does not know 'timing'", "timings"]),
        ({"question": "q", "needs": "timings"}, ["needs is not a list"]),
        ({"question": "q", "caption": ["coverag"]}, ["caption does not know 'coverag'", "coverage"]),
        ({"question": "q", "fallback": {"depth": "drop"}}, ["fallback is not a known key"]),
    ],
)
def test_wrong_keys_and_values_name_themselves(view: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_view(view)
    assert str(caught.value).startswith("[config_invalid] the view given: ")
    assert all(word in str(caught.value) for word in words)


def test_a_wrong_value_keeps_the_code_of_its_option() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[draw_depth_invalid\] the view given: draw.depth=0"):
        load_view({"question": "q", "draw": {"depth": 0}})


def test_an_unknown_name_has_its_own_code() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[draw_view_invalid\].*'speed'"):
        load_view("speeed")
