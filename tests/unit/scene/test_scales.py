"""From numbers to places between 0 and 1."""

from __future__ import annotations

import math

import pytest

from torchlens.scene.scales import SCALES, SIZE_SCALES, on_scale
from torchlens.settings.options import options

VALUES = [3.0, 1.0, 2.0, 2.0, 40.0]


def test_linear_is_proportional_rank_takes_equal_steps_and_log_equal_factors() -> None:
    values = [1.0, 2.0, 2.0, 11.0]
    assert [SCALES.get("linear")(values)(v) for v in values] == [0.0, 0.1, 0.1, 1.0]
    assert [SCALES.get("rank")(values)(v) for v in values] == [0.0, 0.5, 0.5, 1.0]
    assert [SCALES.get("log")([1.0, 10.0, 1000.0])(v) for v in (1.0, 10.0, 100.0)] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [SIZE_SCALES.get("sqrt")([0.0, 1.0, 4.0])(v) for v in (0.0, 1.0, 4.0)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("table", [SCALES, SIZE_SCALES], ids=["color", "size"])
def test_every_scale_maps_ends_to_ends_and_keeps_the_order(table: object) -> None:
    assert table in (SCALES, SIZE_SCALES)
    for name in table:
        place = table.get(name)(VALUES)
        places = [place(value) for value in sorted(VALUES)]
        assert (places[0], places[-1]) == (0, 1)
        assert places == sorted(places)
        assert len(set(places)) == len(set(VALUES))


@pytest.mark.parametrize(
    "values",
    [[-1e308, 0.0, 1e308], [1.0, math.nextafter(1.0, 2.0)], [1e300, math.nextafter(1e300, math.inf)], [0.0, 5e-324]],
    ids=["far apart", "one step apart", "large", "smallest"],
)
def test_values_at_the_limits_of_floats_have_places_too(values: list[float]) -> None:
    for table in (SCALES, SIZE_SCALES):
        for name in (name for name in table if min(values) > 0 or name in ("linear", "rank")):
            places = [table.get(name)(values)(value) for value in values]
            assert (places[0], places[-1]) == (0, 1)
            assert places == sorted(places)


def test_only_a_logarithm_has_values_without_a_place() -> None:
    assert [name for name in SCALES if not on_scale(name, 0.0)] == ["log"]
    assert all(on_scale(name, 0.5) for name in SCALES)


def test_the_options_name_every_scale() -> None:
    assert set(options()["color_scale"].choices) == set(SCALES)
    assert set(options()["size_scale"].choices) == set(SIZE_SCALES)
