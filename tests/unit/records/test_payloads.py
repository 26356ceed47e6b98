"""Statistics as plain facts."""

from __future__ import annotations

from torchlens.records.payloads import OutStats


def test_finite_elements_are_those_that_are_left():
    stats = OutStats(10, 1.0, 2.0, 3.0, n_nan=1, n_posinf=2, n_neginf=3)
    assert (stats.n_finite, stats.is_finite) == (4, False)


def test_an_empty_tensor_is_finite_and_has_no_mean():
    stats = OutStats(0, None, None, None)
    assert (stats.n_finite, stats.is_finite, stats.abs_mean) == (0, True, None)
