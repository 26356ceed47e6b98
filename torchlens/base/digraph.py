"""Graphs on whole numbers: ranks by the longest path. Knows nothing of what the numbers stand for."""

from __future__ import annotations

from collections.abc import Iterable


def ranks(count: int, edges: Iterable[tuple[int, int]], *, late: bool = False) -> list[int]:
    """Rank of each node: the longest path to it. An edge from a node to an earlier one or itself is ignored.

    late: what has readers stands just before the first of them, which shortens the ways of side inputs.
    Example: ranks(4, [(0, 1), (1, 3), (2, 3)]) == [0, 1, 0, 2], and with late [0, 1, 1, 2]
    """
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        if source < target:
            into[target].append(source)
            out[source].append(target)
    found = [0] * count
    for node in range(count):
        for source in into[node]:
            found[node] = max(found[node], found[source] + 1)
    for node in range(count - 1, -1, -1) if late else ():
        if out[node]:
            found[node] = min(found[target] for target in out[node]) - 1
    return found
