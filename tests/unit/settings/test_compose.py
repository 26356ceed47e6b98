"""The fold of settings: every ordered pair of layers, null against missing, and who set what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from torchlens.base.errors import ConfigError, InvalidArgumentError
from torchlens.settings.compose import DrawRequest, SettingLayer, fold, resolve
from torchlens.settings.options import DrawOptions, options
from torchlens.settings.theme import load_theme
from torchlens.settings.view import load_view

LABELS = {
    SettingLayer.VERB: "verb:torchlens.draw",
    SettingLayer.THEME: "theme:torchlens (changed)",
    SettingLayer.VIEW: "view:given",
    SettingLayer.COLLAPSE: "collapse:x",
    SettingLayer.ENCODING: "encoding:x",
    SettingLayer.FIGURE: "figure:x",
    SettingLayer.EXPLICIT: "explicit",
}
# One pair of different values for each kind of option: flag, number, choice, text, mapping, and null.
VALUES: list[tuple[str, Any, Any]] = [
    ("rolled", True, False),
    ("depth", 2, 3),
    ("direction", "topdown", "leftright"),
    ("direction", "topdown", None),
    ("color_by", None, "flops"),
    ("caption", "one", "two"),
    ("graph_attrs", {"a": 1, "b": 2}, {"a": 3}),
    ("dpi", 72, None),
]


def _resolve(layers: Mapping[SettingLayer, Mapping[str, Any]], backwards: bool = False) -> DrawRequest:
    """Give each layer the way it really comes in."""
    given: dict[str, Any] = dict(layers.get(SettingLayer.EXPLICIT, {}))
    if SettingLayer.THEME in layers:
        given["theme"] = {"draw": layers[SettingLayer.THEME]}
    if SettingLayer.VIEW in layers:
        given["view"] = {"question": "q", "draw": layers[SettingLayer.VIEW]}
    middle = (SettingLayer.VERB, SettingLayer.COLLAPSE, SettingLayer.ENCODING, SettingLayer.FIGURE)
    stack = [(LABELS[layer], layers[layer]) for layer in middle if layer in layers]
    return resolve(None, given, layers=stack[::-1] if backwards else stack)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("name", "first", "second"), VALUES)
def test_of_every_two_layers_the_later_one_wins(name: str, first: Any, second: Any, backwards: bool) -> None:
    for a, b in permutations(SettingLayer, 2):
        request = _resolve({a: {name: first}, b: {name: second}}, backwards)
        low, high = sorted((a, b))
        expected = second if high == b else first
        assert getattr(request.options, name) == expected
        assert request.origin[name] == LABELS[high]
        assert [label for label, _ in request.trail[name]] == [LABELS[low], LABELS[high]]


def test_a_layer_that_says_nothing_overrides_nothing() -> None:
    for a, b in permutations(SettingLayer, 2):
        request = _resolve({a: {"depth": 2}, b: {"rolled": True}})
        assert request.options == replace(DrawOptions(), depth=2, rolled=True)
        assert (request.origin["depth"], request.origin["rolled"]) == (LABELS[a], LABELS[b])


def test_all_layers_at_once_fold_in_order() -> None:
    layers = {layer: {"depth": int(layer)} for layer in SettingLayer}
    request = _resolve(layers, backwards=True)
    assert request.trail["depth"] == tuple((LABELS[layer], int(layer)) for layer in SettingLayer)


def test_the_order_of_a_stack_is_of_no_matter() -> None:
    stack = [(label, {"depth": int(layer)}) for layer, label in LABELS.items()]
    assert len({str(fold(order)) for order in permutations(stack)}) == 1


def test_nothing_given_is_the_defaults() -> None:
    request = resolve(None, {})
    assert request.options == DrawOptions()
    assert request.view is None
    assert request.theme == load_theme("torchlens")
    assert set(request.origin.values()) == {"default"}
    assert set(request.origin) == set(options())
    assert not request.trail


def test_an_explicit_null_switches_off_what_a_view_sets() -> None:
    assert resolve(None, {"view": "speed"}).options.color_by == "time"
    request = resolve(None, {"view": "speed", "color_by": None})
    assert request.options.color_by is None
    assert request.origin["color_by"] == "explicit"
    assert request.options.node_style == "profiling"


def test_loaded_values_names_and_mappings_are_the_same() -> None:
    by_name = resolve(None, {"view": "speed", "theme": "paper"})
    assert by_name == resolve(None, {"view": load_view("speed"), "theme": load_theme("paper")})
    assert by_name.options == resolve(None, {"view": {"extends": "speed"}, "theme": {"extends": "paper"}}).options


@pytest.mark.parametrize("view", ["plain", "sped", "", 3, True])
def test_what_is_no_view_is_refused_with_the_views(view: object) -> None:
    words = r"\[draw_view_invalid\] view=.* is not a view. Allowed: compute, .*, transformer"
    with pytest.raises(InvalidArgumentError, match=words):
        resolve(None, {"view": view})


@pytest.mark.parametrize("theme", ["papr", "", 3])
def test_what_is_no_theme_is_refused(theme: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[visualization_theme_invalid\]"):
        resolve(None, {"theme": theme})


def test_wrong_values_and_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match="color_by"):
        resolve(None, {"colour_by": "time"})
    with pytest.raises(InvalidArgumentError, match="draw_depth_invalid"):
        resolve(None, {"depth": 0})
    with pytest.raises(ConfigError, match="config_invalid"):
        resolve(None, {"theme": {"page": {"color": "red"}}})


# -- a colour scale needs a source
@pytest.mark.parametrize("layer", [SettingLayer.ENCODING, SettingLayer.FIGURE, SettingLayer.EXPLICIT])
def test_a_scale_asked_for_without_a_source_is_refused(layer: SettingLayer) -> None:
    with pytest.raises(InvalidArgumentError, match="scale_requires_color_by"):
        _resolve({layer: {"color_scale": "rank"}})


@pytest.mark.parametrize("layer", [SettingLayer.THEME, SettingLayer.VIEW])
def test_a_default_scale_may_stay_unused(layer: SettingLayer) -> None:
    assert _resolve({layer: {"color_scale": "rank"}}).options.color_scale == "rank"


def test_switching_the_colour_off_above_its_scale_is_fine() -> None:
    layers = {
        SettingLayer.FIGURE: {"color_by": "time", "color_scale": "rank"},
        SettingLayer.EXPLICIT: {"color_by": None},
    }
    assert _resolve(layers).options.color_by is None
    with pytest.raises(InvalidArgumentError, match="scale_requires_color_by"):
        _resolve({SettingLayer.EXPLICIT: {"color_by": None, "color_scale": "rank"}})
