"""Coordinates of a level: no overlap, straight lines where they can be, lanes beside what they pass."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from torchlens.render.rank_coordinates import END_GAP, gap_between, place, runs
from torchlens.render.rank_level import NODE, Item, Level, Link, layer, order


def laid_out(count: int, links: list[tuple[int, int]], seed: int = 0) -> Level:
    rng = random.Random(seed)
    items = [Item(NODE, rng.uniform(20, 120), rng.uniform(10, 40), float(k), anchored=k == 0) for k in range(count)]
    level = Level(items, [Link(a, b) for a, b in links])
    layer(level)
    order(level)
    place(level)
    return level


@pytest.mark.parametrize("seed", range(10))
def test_neighbours_keep_their_distance(seed: int) -> None:
    rng = random.Random(seed)
    level = laid_out(40, [(a, b) for b in range(1, 40) for a in rng.sample(range(max(0, b - 6), b), 1)], seed)
    for rank in level.ranks:
        for a, b in pairwise(rank):
            left, right = level.items[a], level.items[b]
            assert right.u - right.width / 2 - left.u - left.width / 2 >= gap_between(left, right) - 1e-6
    for before, after in zip(level.bottoms, level.tops[1:], strict=False):
        assert after >= before


def test_a_chain_is_straight() -> None:
    level = laid_out(200, [(k, k + 1) for k in range(199)])
    assert {round(item.u, 6) for item in level.items} == {0.0}


def test_a_lane_stands_beside_all_that_it_passes() -> None:
    links = [(k, k + 1) for k in range(99)] + [(0, 60), (10, 99)]
    level = laid_out(100, links)
    assert len(level.lanes) == 2
    for lane in level.lanes:
        passed = [k for rank in level.ranks[lane.first : lane.last + 1] for k in rank]
        assert lane.u > max(level.items[k].u + level.items[k].width / 2 for k in passed)
    assert abs(level.lanes[0].u - level.lanes[1].u) >= 9


def test_arrows_at_one_node_end_apart() -> None:
    level = laid_out(5, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)])
    ends = sorted(link.end for link in level.links[3:])
    assert 0 in ends
    assert all(b - a > 0.5 * END_GAP for a, b in pairwise(ends))


def test_runs_stay_in_their_ranks_and_meet_the_borders() -> None:
    level = laid_out(6, [(k, k + 1) for k in range(5)] + [(0, 5)])
    way = runs(level, level.links[-1])
    source, target = level.items[0], level.items[5]
    assert way[0][1] == source.v + source.height / 2
    assert way[-1][2] == target.v - target.height / 2
    assert all(last >= first for _, first, last in way)
    assert all(b[1] >= a[2] for a, b in pairwise(way))


def test_a_way_back_is_beside_the_ranks() -> None:
    level = laid_out(3, [(0, 1), (1, 2), (2, 1)])
    _, back, _ = runs(level, level.links[-1])
    assert back[1] > back[2]
    assert back[0] > max(item.u + item.width / 2 for item in level.items[1:])
