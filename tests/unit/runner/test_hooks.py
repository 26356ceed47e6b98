"""Hooks and notes that a configuration describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.base.errors import ConfigError, TorchLensError, UnknownNameError
from torchlens.runner.hooks import ConfiguredHook, annotated, make, read_hooks, read_notes
from torchlens.runner.main import main
from torchlens.viz import NodeSpec

HIGHLIGHT: dict[str, Any] = {"_target_": "torchlens.viz.nodes.highlight", "_args_": ["relu_1_2"], "color": "#0000ff"}


@pytest.fixture(scope="module")
def trace() -> tl.Trace:
    return tl.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4))


# -- hooks
def test_a_hook_is_made_when_it_is_called(trace: tl.Trace) -> None:
    found = read_hooks("draw", {"depth": 1, "node_spec_fn": HIGHLIGHT}, ())
    hook = found["node_spec_fn"]
    assert found["depth"] == 1
    assert isinstance(hook, ConfiguredHook)
    assert hook.__qualname__ == "highlight"
    spec = NodeSpec()
    assert hook(trace["relu_1_2"], spec) is None
    assert spec.color == "#0000ff"
    drawn = trace.draw(node_spec_fn=hook)
    assert drawn.dot == trace.draw(node_spec_fn=tl.viz.nodes.highlight("relu_1_2", color="#0000ff")).dot
    assert drawn.settings["node_spec_fn"] == ("highlight", "explicit")


def test_equal_hooks_are_equal_and_say_what_they_are() -> None:
    a, b = (read_hooks("draw", {"node_spec_fn": dict(HIGHLIGHT)}, ())["node_spec_fn"] for _ in range(2))
    assert a == b
    assert repr(a) == repr(b)
    assert "0x" not in repr(a)
    assert str(a) == str(HIGHLIGHT)


@pytest.mark.parametrize("draw", [None, [], {"graph_attrs": {"_target_": "os.system"}}, {"nonsense": HIGHLIGHT}])
def test_what_is_no_hook_is_left_to_the_checks_of_options(draw: object) -> None:
    assert read_hooks("draw", draw, ()) == draw


@pytest.mark.parametrize(
    "target", ["os.system", "torchlens.load", "torchlens.base.files.write_atomically", "torchlens.viz.nodes_of_mine.x"]
)
def test_only_trusted_names_are_called(target: str) -> None:
    for value in ({"_target_": target}, {**HIGHLIGHT, "_args_": [{"_target_": target}]}):
        with pytest.raises(ConfigError, match="config_target_untrusted"):
            read_hooks("draw", {"node_spec_fn": value}, ())
    assert read_hooks("draw", {"node_spec_fn": {"_target_": target}}, (target,))


def test_a_trusted_name_of_something_defined_elsewhere_is_refused() -> None:
    # The module imports it; whoever trusts the module's own functions does not mean it.
    hook = read_hooks("draw", {"node_spec_fn": {"_target_": "torchlens.viz.nodes.Ramp", "stops": []}}, ())
    with pytest.raises(ConfigError, match=r"really 'torchlens\.base\.colors\.Ramp'"):
        hook["node_spec_fn"](None, NodeSpec())


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ({**HIGHLIGHT, "bogus": 1}, "cannot be called: TypeError"),
        ({"_target_": "torchlens.viz.nodes.nowhere"}, "nodes.nowhere cannot be called: ModuleNotFoundError"),
        ({"_target_": "torchlens.func", "name": "relu"}, "makes a Selector, no function"),
    ],
)
def test_a_hook_that_cannot_be_made_is_named(factory: dict[str, Any], words: str) -> None:
    hook = ConfiguredHook(factory, "figures.x: draw.node_spec_fn")
    with pytest.raises(ConfigError) as caught:
        hook(None, NodeSpec())
    assert "figures.x: draw.node_spec_fn" in str(caught.value)
    assert words in str(caught.value)


def test_a_selector_can_be_made() -> None:
    assert repr(make({"_target_": "torchlens.func", "_args_": ["relu"]}, "here", ())) == "func('relu')"


# -- notes
def test_notes_are_attached_to_a_copy(trace: tl.Trace) -> None:
    selector = {"_target_": "torchlens.func", "_args_": ["relu"]}
    notes = read_notes("figures.x", [{"select": selector, "data": {"a": 1}}, {"select": "0", "data": "b"}], ())
    noted = annotated(trace, notes)
    assert "a: 1" in noted.draw().dot
    assert trace.annotations.get("nodes") is None
    assert annotated(trace, ()) is trace
    with pytest.raises(UnknownNameError):
        annotated(trace, read_notes("figures.x", [{"select": "nowhere", "data": 1}], ()))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"select": "a"}, "annotate is not a list"),
        ([{"select": "a"}], "annotate[0]: data is missing"),
        ([{"data": 1}], "select is missing"),
        ([{"select": ["a"], "data": 1}], "select is missing"),
        ([{"select": "a", "image": 3}], "image is not the name of a picture"),
        ([{"select": "a", "data": 1, "picture": "x"}], "picture is not a known key"),
        ([{"select": {"_target_": "os.system"}, "data": 1}], "not trusted"),
    ],
)
def test_wrong_notes_are_refused_before_anything_runs(value: object, words: str) -> None:
    with pytest.raises(TorchLensError) as caught:
        read_notes("figures.x", value, ())
    assert words in str(caught.value)


def test_the_command_line_takes_hooks_and_notes_and_refuses_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["model=mlp", "formats=[dot]", "out=o"]
    hook = "draw.node_spec_fn={_target_:torchlens.viz.nodes.statistics}"
    assert main([*words, hook, "figures.main.annotate=[{select:fc1,data:{checked:twice}}]"]) == 0
    text = Path("o/main.dot").read_text(encoding="utf-8")
    assert "|x|: mean" in text
    assert "checked: twice" in text
    assert "statistics" in Path("o/manifest.json").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*words, "draw.node_spec_fn={_target_:os.system,command:x}"]) == 2
    assert "os.system" in capsys.readouterr().err
