"""Who wins over an option: every pair of the settings layers, in what the runner and the API draw and tell.

Who wins over a node's look: `test_precedence.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch

import torchlens
from torchlens.examples.mlp import Mlp
from torchlens.runner.main import main

# Option -> the values of a lower and of a higher layer.
OPTIONS: dict[str, tuple[Any, Any]] = {
    "font_size": (16, 17),
    "direction": ("topdown", "leftright"),
    "caption": ("lower", "higher"),
    "color_by": ("bytes", None),
    "show_legend": (True, False),
    "node_label_fields": (["name", "shape"], ["name", "dtype", "shape"]),
    "graph_attrs": ({"ranksep": 2}, {"nodesep": 2}),
}
LAYERS = ("theme", "view", "collapse", "encoding", "figure", "explicit")
SETTING_PAIRS = list(combinations(LAYERS, 2))
LOW, HIGH = ({name: pair[k] for name, pair in OPTIONS.items()} for k in range(2))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder in which every group has a file `low` and a file `high`, and each pair of layers a figure."""
    from omegaconf import OmegaConf

    def write(name: str, keys: Mapping[str, Any]) -> None:
        path = tmp_path / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(OmegaConf.to_yaml(OmegaConf.create(dict(keys))))

    for level, draw in (("low", LOW), ("high", HIGH)):
        write(f"themes/{level}.yaml", {"draw": draw})
        write(f"views/{level}.yaml", {"question": "mine?", "draw": draw})
        for group in ("collapse", "encodings"):
            write(f"{group}/{level}.yaml", {"draw": draw})

    def entry(low: str, high: str) -> dict[str, Any]:
        chosen = {
            layer: level for layer, level in ((low, "low"), (high, "high")) if layer not in ("figure", "explicit")
        }
        return {**chosen, "draw": HIGH} if high == "figure" else {**chosen, "draw": LOW} if low == "figure" else chosen

    inner = [pair for pair in SETTING_PAIRS if "explicit" not in pair]
    write("figures/inner.yaml", {"_".join(pair): entry(*pair) for pair in inner})
    write("figures/outer.yaml", {f"{low}_explicit": entry(low, "explicit") for low in LAYERS[:-1]})
    write("figures/alone.yaml", {"low": {"draw": LOW}, "high": {"draw": HIGH}})
    monkeypatch.setenv("TORCHLENS_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _words(draw: Mapping[str, Any]) -> list[str]:
    """The options as words of the command line."""

    def word(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key}: {item}" for key, item in value.items()) + "}"
        return "null" if value is None else f"[{','.join(value)}]" if isinstance(value, list) else str(value).lower()

    return [f"draw.{name}={word(value)}" for name, value in draw.items()]


def _run(out: Path, *words: str) -> dict[str, str]:
    """Name of a figure -> its DOT."""
    assert main(["model=mlp", "formats=[dot]", f"out={out}", *words]) == 0
    return {path.stem: path.read_text() for path in out.glob("*.dot")}


def test_of_any_two_layers_of_settings_the_higher_one_is_drawn(folder: Path) -> None:
    """All fifteen pairs with every option of the table: the runner draws what the higher layer alone would have."""
    alone = _run(folder / "alone", "figures=alone")
    assert alone["low"] != alone["high"]
    drawn = {
        **_run(folder / "inner", "figures=inner"),
        **_run(folder / "outer", "figures=outer", *_words(HIGH)),
    }
    assert set(drawn) == {"_".join(pair) for pair in SETTING_PAIRS}
    assert {name for name, document in drawn.items() if document != alone["high"]} == set()


def test_the_runner_tells_the_winner_and_the_beaten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["figures=inner"], ["figures=outer", *_words(HIGH)]):
        capsys.readouterr()
        assert main(["model=mlp", "explain=true", *words]) == 0
        for part in capsys.readouterr().out.split("\n\n"):
            low, high = part[1 : part.index("]")].split("_")
            lines = {line.split()[0]: line for line in part.splitlines()[1:] if line.strip()}
            for name in OPTIONS:
                winner, _, beaten = lines[name].partition(f" {high}")
                assert winner, lines[name]
                assert f"{low}:low=" in beaten or f"{low}:{low}_{high}=" in beaten, lines[name]


@pytest.mark.parametrize(("low", "high"), [("theme", "view"), ("theme", "explicit"), ("view", "explicit")])
def test_the_api_draws_the_same_as_the_runner(low: str, high: str, folder: Path) -> None:
    explicit = _words(HIGH) if high == "explicit" else []
    chosen: dict[str, Any] = {layer: level for layer, level in ((low, "low"), (high, "high")) if layer != "explicit"}
    told = _run(folder / "run", *(f"{layer}={level}" for layer, level in chosen.items()), *explicit)
    torch.manual_seed(0)
    trace = torchlens.trace(Mlp(), input_shape=(2, 8))
    given: dict[str, Any] = {**chosen, **(HIGH if explicit else {})}
    drawing = trace.draw(**given)
    assert drawing.dot == told["main"]
    assert drawing.settings["font_size"][0] == HIGH["font_size"]
    told_here = next(line for line in str(drawing.explain()).splitlines() if line.startswith("font_size"))
    assert told_here.split() == ["font_size", "17", high if explicit else f"{high}:high", f"{low}:low=16"]


def test_an_explicit_null_beats_a_view_and_leaving_out_does_not(folder: Path) -> None:
    nullable: dict[str, Any] = dict.fromkeys(
        ("font_size", "direction", "caption", "show_legend", "node_label_fields", "graph_attrs")
    )
    view = {"question": "mine?", "draw": {**HIGH, "color_by": "bytes"}}
    trace = torchlens.trace(Mlp(), input_shape=(2, 8))
    plain = trace.draw()
    switched_off = trace.draw(view=view, color_by=None, **nullable)
    assert switched_off.dot == plain.dot
    assert trace.draw(view=view).dot != plain.dot
    off = [f"draw.{name}=null" for name in ("color_by", *nullable)]
    assert _run(folder / "null", "view=high", *off) == _run(folder / "plain", "view=plain")
    assert _run(folder / "kept", "view=high") != _run(folder / "plain2", "view=plain")
