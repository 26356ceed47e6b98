"""Colours against published values and independent tables."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PIL import ImageColor

from torchlens.base import colors
from torchlens.base.errors import InvalidArgumentError

VIRIDIS = ["#440154", "#482878", "#3E4989", "#31688E", "#26828E", "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C", "#FDE725"]


@pytest.mark.parametrize(
    ("text", "rgb"),
    [
        ("#fff", (255, 255, 255)),
        ("#1a2B3c", (26, 43, 60)),
        ("#1a2b3c80", (26, 43, 60)),
        ("Ivory", (255, 255, 240)),
        (" red ", (255, 0, 0)),
    ],
)
def test_parse_reads_every_form(text: str, rgb: tuple[int, int, int]) -> None:
    assert colors.parse(text) == rgb
    assert colors.is_color(text)


def test_parse_passes_numbers_through() -> None:
    assert colors.parse((1, 2, 3)) == (1, 2, 3)


def test_named_colours_agree_with_pillow() -> None:
    assert {name: colors.parse(name) for name in ImageColor.colormap} == {
        name: ImageColor.getrgb(name) for name in ImageColor.colormap
    }


@pytest.mark.parametrize("text", ["", "#12", "#ggg", "#12345", "rgb(1,2,3)", "redd", "#1234567"])
def test_parse_refuses(text: str) -> None:
    assert not colors.is_color(text)
    with pytest.raises(InvalidArgumentError, match=r"\[color_invalid\]"):
        colors.parse(text)


def test_refusal_names_the_nearest_colour() -> None:
    with pytest.raises(InvalidArgumentError, match="ivory"):
        colors.parse("ivorry")


@pytest.mark.parametrize("value", [None, 3, (1, 2, 3), b"red"])
def test_is_color_is_false_for_other_types(value: object) -> None:
    assert not colors.is_color(value)


def test_to_hex_is_lower_case_and_round() -> None:
    assert colors.to_hex("#ABC") == "#aabbcc"
    assert colors.to_hex((0, 128, 255)) == "#0080ff"


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#777777", "#ffffff", 4.478),
        ("#ff0000", "#ffffff", 3.998),
        ("#0000ff", "#ffffff", 8.592),
        ("#abc", "#abc", 1.0),
    ],
)
def test_contrast_matches_wcag(first: str, second: str, ratio: float) -> None:
    assert colors.contrast(first, second) == pytest.approx(ratio, abs=1e-3)
    assert colors.contrast(second, first) == colors.contrast(first, second)


def test_text_keeps_the_preferred_colour_where_it_reads_well() -> None:
    assert colors.text_on("#ffffff", "#222222") == "#222222"
    assert colors.text_on("#1f2937", "#F9FAFB") == "#f9fafb"


def test_text_switches_to_the_better_extreme() -> None:
    assert colors.text_on("#440154", "#111111") == "#ffffff"
    assert colors.text_on("#fde725", "#f9fafb") == "#111111"


def test_text_has_to_read_on_every_part_of_a_fill() -> None:
    # White reads on the first half only, black on both.
    assert colors.contrast("#ffffff", "#666666") >= 4.5 > colors.contrast("#ffffff", "#d9d9d9")
    assert colors.text_on("#666666", "#ffffff") == "#ffffff"
    assert colors.text_on("#666666:#d9d9d9", "#ffffff") == "#111111"
    assert colors.text_on("#d9d9d9;0.5:#666666;0.5", "#ffffff") == "#111111"


def test_text_threshold_decides() -> None:
    assert colors.text_on("#808080", "#ffffff", threshold=3.0) == "#ffffff"
    assert colors.text_on("#808080", "#ffffff", threshold=4.5) == "#111111"


# Reference values of the colour space's author (https://bottosson.github.io/posts/oklab/) and of CSS Color 4 samples.
@pytest.mark.parametrize(
    ("color", "lab"),
    [
        ("#ffffff", (1.0, 0.0, 0.0)),
        ("#000000", (0.0, 0.0, 0.0)),
        ("#ff0000", (0.62796, 0.22486, 0.12585)),
        ("#00ff00", (0.86644, -0.23389, 0.17950)),
        ("#0000ff", (0.45201, -0.03246, -0.31153)),
    ],
)
def test_oklab_reference_values(color: str, lab: tuple[float, float, float]) -> None:
    assert colors.oklab(color) == pytest.approx(lab, abs=2e-5)


def test_oklab_distance() -> None:
    assert colors.oklab_distance("#000", "#fff") == pytest.approx(1.0, abs=1e-5)
    assert colors.oklab_distance("#123456", "#123456") == 0.0


@pytest.mark.parametrize("kind", ["protan", "deutan", "tritan"])
def test_simulation_keeps_greys(kind: str) -> None:
    for grey in (0, 51, 128, 255):
        assert all(abs(channel - grey) <= 1 for channel in colors.simulate((grey, grey, grey), kind))


@pytest.mark.parametrize(
    # Column sums of the published severity 1.0 matrices, through the sRGB curve, worked out by hand.
    ("color", "kind", "seen"),
    [("#ff0000", "protan", (109, 95, 0)), ("#ff0000", "deutan", (163, 144, 0)), ("#0000ff", "tritan", (0, 107, 150))],
)
def test_simulation_reference_values(color: str, kind: str, seen: tuple[int, int, int]) -> None:
    assert colors.simulate(color, kind) == seen


def test_simulation_merges_what_the_deficiency_merges() -> None:
    red, green = "#c03030", "#5f7a1e"
    before = colors.oklab_distance(red, green)
    assert colors.oklab_distance(colors.simulate(red, "deutan"), colors.simulate(green, "deutan")) < before / 2


def test_simulation_severity() -> None:
    assert colors.simulate("#3a7", "protan", 0.0) == colors.parse("#3a7")
    half = colors.simulate("#ff0000", "protan", 0.5)
    assert colors.simulate("#ff0000", "protan")[0] < half[0] < 255


def test_simulation_refuses_other_names() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[color_vision_invalid\].*protan, deutan, tritan"):
        colors.simulate("#fff", "mono")


def test_ramp_ends_are_its_stops() -> None:
    ramp = colors.Ramp(VIRIDIS)
    assert (ramp.at(0), ramp.at(1)) == ("#440154", "#fde725")
    assert (ramp.at(-3), ramp.at(7)) == ("#440154", "#fde725")


def test_ramp_passes_through_its_stops() -> None:
    ramp = colors.Ramp(["#000", "#888", "#fff"])
    share = colors.oklab_distance("#000", "#888") / (
        colors.oklab_distance("#000", "#888") + colors.oklab_distance("#888", "#fff")
    )
    assert ramp.at(share) == "#888888"
    assert share != pytest.approx(0.5, abs=0.01)


def test_ramp_blends_in_oklab() -> None:
    # The linear average of black and white in OKLab is lightness 0.5: linear light 0.125, grey 99.
    assert colors.Ramp(["#000", "#fff"]).at(0.5) == "#636363"


def test_ramp_steps_are_perceptually_even() -> None:
    # Stops at very uneven distances; 12 steps are large against the rounding to 8 bits.
    cells = colors.Ramp(["#440154", "#482878", "#FDE725"]).cells(12)
    steps = [colors.oklab_distance(a, b) for a, b in pairwise(cells)]
    assert max(steps) / min(steps) < 1.15


def test_ramp_is_monotone_in_lightness() -> None:
    lightness = [colors.oklab(cell)[0] for cell in colors.Ramp(VIRIDIS).cells(48)]
    assert lightness == sorted(lightness)


def test_ramp_cells() -> None:
    ramp = colors.Ramp(VIRIDIS)
    assert ramp.cells(1) == ["#440154"]
    assert ramp.cells(0) == []


def test_ramp_with_equal_stops() -> None:
    assert colors.Ramp(["#123456", "#123456"]).cells(3) == ["#123456"] * 3
    assert colors.Ramp(["#000", "#000", "#fff"]).at(0.5) == "#636363"


def test_ramp_needs_two_colours() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[color_ramp_invalid\]"):
        colors.Ramp(["#123456"])
