"""The page about folding says of its figures what they show, counted in the kept files themselves."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "images" / "collapse_gallery"
PAGE = (ROOT / "docs" / "collapse.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def figure(name: str) -> ET.Element:
    return ET.parse(FOLDER / f"{name}.svg").getroot()


def nodes(name: str) -> set[str]:
    """The ids of what is drawn as a node."""
    groups = [group for group in figure(name).iter(f"{SVG}g") if (group.get("class") or "").startswith("node")]
    return {group.get("id") or "" for group in groups}


def texts(name: str) -> list[str]:
    return ["".join(text.itertext()).strip() for text in figure(name).iter(f"{SVG}text")]


def boxes(name: str) -> set[str]:
    return {node for node in nodes(name) if node.startswith("module:")}


def hidden(name: str) -> set[str]:
    """The ops of the full figure that another one does not draw."""
    return {node for node in nodes("none") if not node.startswith("module:")} - nodes(name)


def test_the_ladder_has_as_many_nodes_as_the_text_says() -> None:
    assert [len(nodes(name)) for name in ("none", "auto", "max")] == [71, 13, 11]
    assert "71 nodes" in PAGE
    assert boxes("auto") == {f"module:layer{k}:1" for k in (1, 2, 3, 4)}
    assert "layer1-layer3 -- 3 blocks" in texts("max")


def test_levels_only_ever_hide_more() -> None:
    names = [f"level_{k}" for k in (0, 25, 50, 75, 100)]
    assert nodes("level_0") == nodes("none")
    assert nodes("level_100") == nodes("max")
    for lower, higher in pairwise(names):
        assert hidden(lower) < hidden(higher)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("evened", "stages.2.blocks.0-8 -- 9 blocks"),
        ("decoder", "... +11 more GPT2Block"),
        ("folded", "... +7 more Block"),
        ("members", "... +7 more Block"),
        ("recurrence", "tanh_1_5 (x3)"),
        ("segments", "layer1-layer2 -- 2 blocks"),
        ("bundled", "OUTPUTS: past_key_values.keys"),
        ("bundled", "OUTPUTS: past_key_values.values"),
        ("rule_hide", "via 1 hidden"),
    ],
)
def test_a_figure_has_the_label_that_the_text_is_about(name: str, words: str) -> None:
    assert words in texts(name)


def test_folding_repeats_leaves_stem_and_head_alone() -> None:
    assert len(nodes("unfolded")) == 44
    stem_and_head = {"input_1", "linear_1_1", "linear_18_42", "output_1"}
    assert nodes("folded") == stem_and_head | {"module:blocks.0:1", "fold:blocks.0"}


def test_every_output_is_drawn_once_or_counted() -> None:
    assert texts("bundled").count("12 tensors, 1x2x8x8 each") == 2
    assert len({node for node in nodes("opened") if node.startswith("output_")}) == 25


def test_rules_fold_and_keep_what_the_text_says() -> None:
    assert boxes("rule_fold") == {f"module:layer{k}.{n}:1" for k in (1, 2, 3, 4) for n in (0, 1)}
    kept = {node for node in nodes("rule_keep") if not node.startswith("module:")}
    assert {"conv2d_19_60", "conv2d_20_63", "add_8_65"} <= kept
    assert boxes("rule_keep") == {"module:layer4.0:1", *(f"module:layer{k}:1" for k in (1, 2, 3))}


def test_the_schedules_draw_their_steps() -> None:
    for name, steps in (("schedule", 6), ("schedule_evened", 17)):
        assert len({node for node in nodes(name) if node.startswith("step:") and node.count(":") == 1}) == steps
