"""Ranks by the longest path, early and late."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from torchlens.base.digraph import ranks


def test_the_longest_path_counts() -> None:
    assert ranks(3, [(0, 1), (1, 2), (0, 2)]) == [0, 1, 2]
    assert ranks(4, [(0, 1), (1, 3), (2, 3)]) == [0, 1, 0, 2]


def test_late_moves_side_inputs_to_their_readers() -> None:
    assert ranks(4, [(0, 1), (1, 3), (2, 3)], late=True) == [0, 1, 1, 2]
    assert ranks(2, [], late=True) == [0, 0]


def test_edges_against_the_order_are_ignored() -> None:
    assert ranks(3, [(0, 1), (1, 2), (2, 1), (1, 1)]) == [0, 1, 2]


def test_a_long_chain_is_no_recursion() -> None:
    assert ranks(50_000, pairwise(range(50_000)), late=True)[-1] == 49_999


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=60), st.booleans())
def test_every_edge_leads_to_a_later_rank(edges: list[tuple[int, int]], late: bool) -> None:
    found = ranks(20, edges, late=late)
    assert all(found[source] < found[target] for source, target in edges if source < target)
    assert min(found) >= 0
