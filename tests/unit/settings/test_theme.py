"""Theme files: every shipped one is complete and legible; wrong ones are refused by file and key."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import atan2, degrees, hypot
from pathlib import Path

import pytest

from torchlens.base.colors import contrast, fill_colors, is_color, oklab, oklab_distance, simulate, text_on
from torchlens.base.errors import ConfigError, InvalidArgumentError
from torchlens.settings import catalog
from torchlens.settings.theme import EDGES, ROLES, Theme, load_theme

NAMES = catalog.names("theme")
OUTLINES = ("edit", "changed", "ellipsis")

# The fixed looks: page, other fill, border, text, arrow, input, output, trainable, frozen, branch test.
LOOKS = {
    "torchlens": "#ffffff #ffffff #000000 #000000 #000000 #98fb98 #ff9999 #d9d9d9 #b0b0b0 #f7d460",
    "paper": "#ffffff #ffffff #222222 #111111 #222222 #98fb98 #ff9999 #d9d9d9 #b0b0b0 #f7d460",
    "dark": "#111827 #1f2937 #e5e7eb #f9fafb #9ca3af #166534 #991b1b #374151 #4b5563 #a16207",
    "colorblind": "#ffffff #ffffff #333333 #111111 #333333 #009e73 #d55e00 #d9d9d9 #b0b0b0 #f0e442",
    "high_contrast": "#ffffff #ffffff #000000 #000000 #000000 #98fb98 #ff9999 #d9d9d9 #b0b0b0 #f7d460",
}


@pytest.fixture(params=NAMES)
def theme(request: pytest.FixtureRequest) -> Theme:
    return load_theme(request.param)


def test_every_role_and_edge_resolves(theme: Theme) -> None:
    assert tuple(theme.roles) == ROLES
    assert tuple(theme.edges) == EDGES
    for name, role in theme.roles.items():
        if name not in OUTLINES:
            assert role.fill
            assert role.stroke
            assert role.stroke_width
            assert role.dash
    assert {"sequential", "viridis", "ylorbr"} == set(theme.ramps)


def test_the_fixed_looks(theme: Theme) -> None:
    r = theme.roles
    names = ("input", "output", "trainable", "frozen", "branch_test")
    page = (theme.page.background, r["op"].fill, r["op"].stroke, theme.page.text, theme.edges["data"].color)
    found = (*page, *(r[name].fill for name in names))
    assert " ".join(str(color) for color in found) == LOOKS[theme.name]
    assert r["mixed"].fill == f"{r['trainable'].fill}:{r['frozen'].fill}"
    assert r["buffer"] == r["constant"] == r["box"] == r["op"]
    assert r["module"].fill == theme.page.background
    assert (theme.fonts.base, theme.fonts.annotation, theme.fonts.secondary, theme.fonts.emphasis) == (14, 8, 10, 18)


def test_text_reads_on_every_fill_and_on_the_page(theme: Theme) -> None:
    for name, role in theme.roles.items():
        if role.fill is not None:
            text = text_on(role.fill, role.font_color or theme.page.text)
            assert min(contrast(text, color) for color in fill_colors(role.fill)) >= 4.5, name
    page = theme.page.background
    for color in (
        theme.page.text,
        theme.page.secondary,
        theme.roles["ellipsis"].font_color,
        theme.edges["data"].font_color,
    ):
        assert color is not None
        assert contrast(color, page) >= 4.5


def test_borders_and_arrows_stand_out_from_the_page(theme: Theme) -> None:
    page = theme.page.background
    assert contrast(theme.roles["op"].stroke or "", page) >= 4.5
    assert contrast(theme.edges["data"].color, page) >= 3


def test_ramps_are_monotone_in_lightness_and_high_values_stand_out(theme: Theme) -> None:
    page = oklab(theme.page.background)[0]
    for stops in theme.ramps.values():
        lightness = [oklab(stop)[0] for stop in stops]
        steps = [b - a for a, b in pairwise(lightness)]
        assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
        assert abs(lightness[-1] - page) > abs(lightness[0] - page)


# Hues in degrees of OKLab; pure blue is at 264, purple at 304. Below this chroma a colour is a grey.
BLUES, GREY = (190, 290), 0.04


def _is_blue(color: str) -> bool:
    _, green_red, blue_yellow = oklab(color)
    hue = degrees(atan2(blue_yellow, green_red)) % 360
    return hypot(green_red, blue_yellow) > GREY and BLUES[0] < hue < BLUES[1]


def test_no_theme_draws_blue(theme: Theme) -> None:
    assert all(map(_is_blue, ("#0000ff", "#1f77b4", "#0072b2", "#56b4e9", "navy")))
    assert not any(map(_is_blue, ("#7b2cbf", "#009e73", "#777788")))
    page = [theme.page.background, theme.page.text, theme.page.secondary, theme.edges["data"].color]
    for role in theme.roles.values():
        page += [*fill_colors(role.fill or ""), *filter(None, (role.stroke, role.ring, role.font_color))]
    assert not [color for color in page if _is_blue(color)]


def test_fills_of_the_colorblind_theme_stay_apart() -> None:
    theme = load_theme("colorblind")
    fills = {role.fill for role in theme.roles.values() if role.fill and ":" not in role.fill}
    ends = {theme.roles["input"].fill, theme.roles["output"].fill}
    assert len(fills) == 8
    for kind in ("protan", "deutan", "tritan"):
        for a, b in combinations(sorted(fills), 2):
            apart = oklab_distance(simulate(a, kind), simulate(b, kind))
            assert apart >= (0.10 if {a, b} == ends else 0.05), (kind, a, b)


def test_what_is_special_about_paper_and_high_contrast() -> None:
    paper, bold = load_theme("paper"), load_theme("high_contrast")
    assert (paper.page.tooltips, paper.page.cluster_margin) == (False, 12)
    assert paper.page.pad < load_theme("torchlens").page.pad
    assert bold.page.font == "Helvetica-Bold"
    assert bold.roles["op"].stroke_width == bold.roles["input"].stroke_width == bold.edges["data"].width == 2


def test_the_dark_ramps_run_the_other_way() -> None:
    light, dark = load_theme("torchlens").ramps, load_theme("dark").ramps
    for name in light:
        assert dark[name] == light[name][::-1]


# -- mappings and extension
def test_a_mapping_changes_only_what_it_names() -> None:
    theme, paper = load_theme({"extends": "paper", "page": {"background": "ivory"}}), load_theme("paper")
    assert theme.page.background == theme.roles["module"].fill == "#fffff0"
    assert theme.page.text == paper.page.text
    assert theme.roles["op"] == paper.roles["op"]
    assert theme.name == "paper (changed)"


def test_a_mapping_without_extends_starts_from_the_default() -> None:
    assert load_theme({"fonts": {"base": 11}}).roles == load_theme("torchlens").roles


def test_the_plain_role_completes_the_others_after_all_extensions() -> None:
    theme = load_theme({"extends": "dark", "roles": {"op": {"stroke": "red"}}})
    assert theme.roles["input"].stroke == "#ff0000"
    assert theme.roles["module"].stroke == "#6b7280"
    assert load_theme({"roles": {"input": {"fill": None}}}).roles["input"].fill is None


def test_fills_may_name_the_page_and_roles() -> None:
    theme = load_theme({"roles": {"box": {"fill": "frozen"}, "segment": {"fill": "page:input"}}})
    assert theme.roles["box"].fill == "#b0b0b0"
    assert theme.roles["segment"].fill == "#ffffff:#98fb98"


def test_a_ramp_may_be_the_name_of_another_one() -> None:
    theme = load_theme({"ramps": {"sequential": "ylorbr"}})
    assert theme.ramps["sequential"] == theme.ramps["ylorbr"]


def test_files_extend_each_other_and_their_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "house.yaml").write_text("extends: paper\npage: {font: Times-Roman}\n")
    (folder / "house2.yaml").write_text("extends: house\ndraw: {direction: topdown}\n")
    (folder / "paper.yaml").write_text("extends: paper\npage: {background: ivory}\n")
    theme = load_theme("house2", [tmp_path])
    assert (theme.page.font, theme.page.background, theme.page.tooltips) == ("Times-Roman", "#fffff0", False)
    assert dict(theme.draw) == {"direction": "topdown"}


@pytest.mark.parametrize(
    ("theme", "words"),
    [
        ({"pages": {}}, ["pages is not a known key", "perhaps you meant 'page'"]),
        ({"page": {"backgrund": "red"}}, ["page.backgrund is not a known key", "'background'"]),
        ({"page": {"background": "reddd"}}, ["page.background is not a colour but 'reddd'"]),
        ({"page": {"background": False}}, ["page.background is not a colour but False"]),
        ({"page": {"background": None}}, ["page.background is not a colour"]),
        ({"page": {"tooltips": 1}}, ["page.tooltips is not true or false"]),
        ({"page": {"pad": -1}}, ["page.pad is not a number of at least 0"]),
        ({"page": {"pad": True}}, ["page.pad"]),
        ({"page": []}, ["page is not a mapping"]),
        ({"roles": {"inputs": {}}}, ["roles.inputs is not a known key", "'input'"]),
        ({"roles": {"op": {"fill": "a:b"}}}, ["roles.op.fill is not a colour"]),
        ({"roles": {"op": {"dash": "wavy"}}}, ["roles.op.dash is not solid or dashed or dotted"]),
        ({"roles": {"op": {"fill": "edit"}}}, ["roles.op.fill names a role without one colour of its own: 'edit'"]),
        ({"edges": {"dat": {}}}, ["edges.dat is not a known key"]),
        ({"fonts": {"base": "big"}}, ["fonts.base"]),
        ({"ramps": {"sequential": ["red"]}}, ["ramps.sequential"]),
        ({"ramps": {"sequential": "virids"}}, ["ramps.sequential names no ramp", "'viridis'"]),
        ({"ramps": {"a": "b", "b": "a"}}, ["ramps.a names no ramp"]),
        ({"draw": {"colour_by": "time"}}, ["draw.colour_by is not a known key", "'color_by'"]),
        ({"extends": ""}, ["extends names no theme: ''"]),
        ({"extends": 3}, ["extends is not the name of a theme"]),
        ({"extends": "papr"}, ["extends names no theme: 'papr'"]),
    ],
)
def test_wrong_keys_and_values_name_themselves(theme: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_theme(theme)
    text = str(caught.value)
    assert text.startswith("[config_invalid] the theme given: ")
    assert all(word in text for word in words), text


def test_errors_of_a_file_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    bad = tmp_path / "themes" / "bad.yaml"
    bad.write_text("roles: {op: {fil: red}}\n")
    with pytest.raises(ConfigError, match=str(bad)):
        load_theme("bad", [tmp_path])
    with pytest.raises(ConfigError, match=str(bad)):
        load_theme({"extends": "bad"}, [tmp_path])
    bad.write_text("draw: {direction: up}\n")
    with pytest.raises(
        InvalidArgumentError, match=r"\[visualization_direction_invalid\] .*bad.yaml: draw.direction='up'"
    ):
        load_theme("bad", [tmp_path])


def test_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "a.yaml").write_text("extends: b\n")
    (tmp_path / "themes" / "b.yaml").write_text("extends: a\n")
    with pytest.raises(ConfigError, match="leads back to 'a' in a circle"):
        load_theme("a", [tmp_path])


def test_an_unknown_name_has_its_own_code() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[visualization_theme_invalid\].*high_contrast.*'paper'"):
        load_theme("papr")


def test_a_theme_cannot_be_changed() -> None:
    theme = load_theme("torchlens")
    with pytest.raises(TypeError):
        theme.roles["op"] = theme.roles["input"]  # type: ignore[index]
    assert all(is_color(stop) for stop in theme.ramps["sequential"])
