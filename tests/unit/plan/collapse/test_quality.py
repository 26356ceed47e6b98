"""Which drawing a mode gets, and the readable band."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from torchlens.plan.collapse.quality import choose, readable_band
from torchlens.plan.collapse.schedule import make_path
from torchlens.plan.collapse.units import Units

Auto = Callable[[Units], tuple[int, list[str], str]]


def test_small_traces_have_a_larger_band() -> None:
    assert readable_band(builders.residual(8)) == 50
    assert readable_band(builders.residual(19)) == 50, "99 records"
    assert readable_band(builders.residual(20)) == 25, "104 records"
    assert readable_band(builders.residual(20), tuple(range(50))) == 50


def test_a_drawing_within_the_band_is_left_as_it_is(units: Callable[..., Units], auto: Auto) -> None:
    assert auto(units(builders.residual(8))) == (44, [], "44 nodes are within the readable band of 50")


def test_max_and_levels_pick_their_steps(units: Callable[..., Units]) -> None:
    path = make_path(units(builders.residual(8)), 50, None)
    assert choose(path, "max", 50).board.count == choose(path, 1.0, 50).board.count == 9
    assert choose(path, 0.25, 50).board.count == 32
    assert choose(path, 0.0, 50).reason == "step 0 of 9 of the schedule"
