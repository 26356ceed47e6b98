"""Plots of arrays: dissimilarities, the plane, and the same pixels for the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from torchlens.base.colors import parse
from torchlens.viz.plots import NO_VALUE, VIRIDIS, classical_mds, dissimilarities, heat_map, matrix, scatter


@pytest.fixture
def items() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(7, 30))


def test_correlation_agrees_with_numpy(items: np.ndarray) -> None:
    assert dissimilarities(items, "correlation") == pytest.approx(1 - np.corrcoef(items), abs=1e-12)


def test_euclidean_and_cosine_agree_with_the_definition(items: np.ndarray) -> None:
    plain = np.array([[np.linalg.norm(a - b) for b in items] for a in items])
    assert dissimilarities(items, "euclidean") == pytest.approx(plain, abs=1e-6)
    angle = np.array([[1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in items] for a in items])
    assert dissimilarities(items, "cosine") == pytest.approx(angle, abs=1e-12)


def test_a_constant_item_has_no_correlation() -> None:
    items = np.array([[1.0, 2.0, 3.0], [0.1, 0.1, 0.1], [3.0, 1.0, 2.0]])
    found = dissimilarities(items, "correlation")
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    assert np.isfinite(found[np.ix_([0, 2], [0, 2])]).all()


def test_points_of_a_plane_come_back_up_to_turning() -> None:
    points = np.random.default_rng(1).normal(size=(9, 2))
    distances = dissimilarities(points, "euclidean")
    found, share = classical_mds(distances)
    assert dissimilarities(found, "euclidean") == pytest.approx(distances, abs=1e-6)
    assert share == pytest.approx(1.0)


def test_the_sign_of_an_axis_is_fixed(items: np.ndarray) -> None:
    found, share = classical_mds(dissimilarities(items, "euclidean"))
    again, _ = classical_mds(dissimilarities(-items, "euclidean"))
    assert found == pytest.approx(again, abs=1e-6)
    assert all(axis[np.argmax(np.abs(axis))] > 0 for axis in found.T)
    assert 0 < share < 1


def test_equal_items_lie_on_one_point() -> None:
    found, share = classical_mds(np.zeros((4, 4)))
    assert np.abs(found).max() == 0
    assert share == 1.0
    assert scatter(found).size == scatter(np.eye(4)[:, :2]).size


def test_a_heat_map_runs_from_the_first_to_the_last_colour() -> None:
    image = heat_map(np.array([[0.0, 1.0], [np.nan, 0.5]]), cell=3)
    assert image.size == (6, 6)
    assert image.getpixel((0, 0)) == parse(VIRIDIS[0])
    assert image.getpixel((5, 0)) == parse(VIRIDIS[-1])
    assert image.getpixel((0, 5)) == parse(NO_VALUE)
    assert heat_map(np.full((2, 2), 3.0)).getpixel((0, 0)) == heat_map(np.full((2, 2), -1.0)).getpixel((1, 1))
    assert heat_map(np.full((2, 2), np.nan)).getpixel((0, 0)) == parse(NO_VALUE)


def test_the_same_numbers_give_the_same_pixels(items: np.ndarray) -> None:
    found = dissimilarities(items, "correlation")
    assert matrix(found).tobytes() == matrix(found.copy()).tobytes()
    points, _ = classical_mds(found)
    assert scatter(points).tobytes() == scatter(points.copy()).tobytes()
    assert scatter(points).tobytes() != scatter(points, [0, 1] * 3 + [0]).tobytes()


def test_no_point_is_cut_off() -> None:
    for count in (3, 30):
        image = scatter(np.random.default_rng(2).normal(size=(count, 2)))
        inner = image.crop((1, 1, image.width - 1, image.height - 1))
        border = [inner.getpixel((x, y)) for x in range(inner.width) for y in (0, inner.height - 1)]
        border += [inner.getpixel((x, y)) for y in range(inner.height) for x in (0, inner.width - 1)]
        assert set(border) == {(255, 255, 255)}
