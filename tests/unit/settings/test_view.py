"""View files: what the shipped ones set, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlens.base.errors import ConfigError, InvalidArgumentError
from torchlens.settings import catalog
from torchlens.settings.compose import resolve
from torchlens.settings.deferred import Band, FromTrace
from torchlens.settings.evidence import NEEDS, WISHES
from torchlens.settings.layers import check_draw
from torchlens.settings.resolvers import RESOLVERS
from torchlens.settings.view import CAPTION_LINES, FALLBACKS, KEYS, load_view, view_names


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
    assert set(view_names([tmp_path])) == {"mine", *view_names()}


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
        ({"question": "q", "fallback": {"depth": "drop"}}, ["fallback.depth is not a known key", "stack_by"]),
        ({"question": "q", "fallback": {"stack_by": "keep"}}, ["fallback.stack_by does not know 'keep'", "drop"]),
        ({"question": "q", "fallback": ["stack_by"]}, ["fallback is not a mapping"]),
        ({"question": "q", "draw": {"rolled": {"resolve": "several"}}}, ["resolver 'several'", "several_passes"]),
        ({"question": "q", "draw": {"depth": {"resolve": "several_passes"}}}, ["draw.depth", "rolled"]),
        ({"question": "q", "draw": {"depht": {"resolve": "several_passes"}}}, ["draw.depht", "several_passes"]),
        ({"question": "q", "draw": {"collapse": {"band": [100]}}}, ["draw.collapse is no band", "target: 160"]),
        ({"question": "q", "draw": {"collapse": {"band": [9, 5], "target": 7}}}, ["draw.collapse is no band"]),
        ({"question": "q", "draw": {"collapse": {"band": [5, 9], "target": 3}}}, ["draw.collapse is no band"]),
        ({"question": "q", "draw": {"collapse": {"band": [5, 9], "goal": 7}}}, ["draw.collapse is no band"]),
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


def test_the_comment_for_authors_of_views_lists_every_name() -> None:
    (path,) = catalog.find("view", "speed")
    comment = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))
    words = set(comment.replace(",", " ").replace(":", " ").split())
    assert {*KEYS, *NEEDS, *CAPTION_LINES, *WISHES, *RESOLVERS, *FALLBACKS} <= words


def test_a_view_may_leave_values_to_the_trace_and_to_the_planner() -> None:
    view = load_view("overview")
    assert view.draw["rolled"] == FromTrace("several_passes")
    assert view.draw["collapse"] == Band(100, 220, 160)
    given = {"question": "q", "draw": {"collapse": {"band": [5, 9]}}}
    assert load_view(given).draw["collapse"] == Band(5, 9, 9)
    # An extension replaces such a value whole, and plain values replace it.
    assert load_view({"extends": "overview", "draw": {"collapse": "auto", "rolled": True}}).draw["collapse"] == "auto"
    mine = load_view({"extends": "overview", "draw": {"collapse": {"band": [5, 9]}}, "fallback": {"stack_by": "drop"}})
    assert (mine.draw["collapse"], dict(mine.fallback)) == (Band(5, 9, 9), {"stack_by": "drop"})


def test_only_a_view_may_ask_for_a_number_of_nodes() -> None:
    with pytest.raises(InvalidArgumentError, match="collapse_mode_invalid"):
        check_draw("here", {"collapse": {"band": [5, 9], "target": 7}})
    with pytest.raises(InvalidArgumentError, match="collapse_mode_invalid"):
        resolve(None, {"collapse": Band(5, 9, 7)})


def test_an_unknown_name_has_its_own_code() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[draw_view_invalid\].*'speed'"):
        load_view("speeed")
