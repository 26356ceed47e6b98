"""One level of the rank layout: ranks, bends, lanes and the order within the ranks."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from torchlens.render.rank_level import (
    BEND,
    ENTRY,
    EXIT,
    HUB,
    LABEL,
    LONGEST_CHAIN,
    NODE,
    Item,
    Level,
    Link,
    crossings,
    layer,
    order,
)


def level(count: int, links: Sequence[tuple[int, int]], loose: Sequence[int] = ()) -> Level:
    items = [Item(NODE, 40.0, 20.0, float(k), anchored=k == 0) for k in range(count)]
    for k in loose:
        items[k].anchored = False
    return Level(items, [Link(a, b) for a, b in links])


def ranks(made: Level, count: int) -> list[int]:
    return [item.rank for item in made.items[:count]]


def places(made: Level) -> list[float]:
    found = [0.0] * len(made.items)
    for rank in made.ranks:
        for position, k in enumerate(rank):
            found[k] = float(position)
    return found


def test_the_longest_path_gives_the_rank() -> None:
    made = level(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
    layer(made)
    assert ranks(made, 4) == [1, 2, 3, 4]


def test_a_constant_stands_before_its_reader() -> None:
    made = level(5, [(0, 1), (1, 2), (3, 4), (2, 4)])
    layer(made)
    assert ranks(made, 5) == [1, 2, 3, 3, 4]


def test_a_long_link_bends_in_every_rank_that_it_passes() -> None:
    made = level(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    layer(made)
    chain = made.links[-1].chain
    assert [made.items[k].kind for k in chain] == [BEND] * 3
    assert [made.items[k].rank for k in chain] == [2, 3, 4]
    assert all(
        made.items[a].rank == rank and made.items[b].rank == rank + 1
        for rank, steps in enumerate(made.steps)
        for a, b, *_ in steps
    )


def test_a_label_has_a_rank_of_its_own() -> None:
    made = level(2, [(0, 1)])
    made.links[0].label = (30.0, 10.0)
    layer(made)
    assert ranks(made, 2) == [1, 3]
    assert [(made.items[k].kind, made.items[k].rank) for k in made.links[0].chain] == [(LABEL, 2)]


def test_very_long_links_of_one_source_share_a_lane() -> None:
    count = LONGEST_CHAIN + 10
    made = level(count, [(k, k + 1) for k in range(count - 1)] + [(0, count - 1), (0, count - 2)])
    layer(made)
    assert len(made.lanes) == 1
    assert made.links[-1].lane == made.links[-2].lane == 0
    assert (made.lanes[0].first, made.lanes[0].last) == (2, count - 1)


def test_the_cost_of_bends_is_bounded() -> None:
    count = 3000
    links = [(k, k + 1) for k in range(count - 1)] + [(k, k + 25) for k in range(count - 25)]
    made = level(count, links)
    layer(made)
    assert len(made.items) < 12 * count


def test_a_link_against_the_order_goes_around() -> None:
    made = level(3, [(0, 1), (1, 2), (2, 1), (1, 1)])
    layer(made)
    assert [link.back for link in made.links] == [False, False, True, True]
    assert ranks(made, 3) == [1, 2, 3]
    assert len(made.lanes) == 2


def test_readers_of_a_hub_stand_where_they_are_read() -> None:
    steps = HUB + 2
    # 0: the hub; odd: one side input per step; even: the main line.
    links = [(0, 1 + 2 * k) for k in range(steps)] + [(1 + 2 * k, 2 + 2 * k) for k in range(steps)]
    links += [(2 * k, 2 + 2 * k) for k in range(1, steps)]
    made = level(1 + 2 * steps, links)
    layer(made)
    found = ranks(made, 1 + 2 * steps)
    assert [found[2 + 2 * k] - found[1 + 2 * k] for k in range(steps)] == [1] * steps


def test_entries_are_first_and_exits_last() -> None:
    made = level(3, [(0, 1), (1, 2)])
    made.items += [Item(ENTRY, 0, 0, -1.0, anchored=True), Item(EXIT, 0, 0, float("inf"))]
    made.links += [Link(3, 1), Link(0, 4)]
    layer(made)
    assert made.items[3].rank == 0
    assert made.items[4].rank == max(item.rank for item in made.items)


def test_order_removes_crossings() -> None:
    made = level(9, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 8), (2, 7), (3, 6), (4, 5)])
    layer(made)
    assert crossings(made, places(made)) == 6
    order(made)
    assert crossings(made, places(made)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_order_never_adds_crossings(seed: int) -> None:
    rng = random.Random(seed)
    links = [(a, b) for b in range(1, 30) for a in rng.sample(range(b), min(b, 2))]
    made = level(30, links)
    layer(made)
    before = crossings(made, places(made))
    everything = sorted(k for rank in made.ranks for k in rank)
    order(made)
    assert crossings(made, places(made)) <= before
    assert sorted(k for rank in made.ranks for k in rank) == everything
