"""One level of a layered layout: items with sizes become ranks, and links between them become chains of unit steps.

A level is the inside of one frame, or the page. Knows nothing of scenes: `u` runs across the flow, `v` along it, both
in points; an item may be a node, an inner frame, or a place where an arrow enters or leaves the level.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

NODE, FRAME, ENTRY, EXIT, BEND, LABEL = range(6)
# Ranks that an arrow may cross as a chain of bends; a longer one gets a lane beside everything it passes.
LONGEST_CHAIN = 30
# Links out of one item from which on its readers stand where they are read and not in one row behind it.
HUB = 8
# Bends that a level may hold per item and link, so that the cost stays linear.
BENDS_PER_ITEM, FREE_BENDS = 3, 500


@dataclass(slots=True)
class Item:
    """Something with a place. width across the flow, height along it; key: its place in trace order; round: its border
    is an ellipse; anchored: it belongs at the start of the flow even if it is read late; link: of a bend or label.
    """

    kind: int
    width: float
    height: float
    key: float
    round: bool = False
    anchored: bool = False
    link: int = -1
    rank: int = 0
    u: float = 0.0
    v: float = 0.0


@dataclass(slots=True)
class Link:
    """A connection of two items. start, end: offsets across the flow from their centres; label: its size, or None.

    chain: bends and label between the items; lane: number of the lane, -1 without; back: it runs against the flow.
    """

    a: int
    b: int
    start: float = 0.0
    end: float = 0.0
    label: tuple[float, float] | None = None
    chain: list[int] = field(default_factory=list[int])
    lane: int = -1
    back: bool = False


@dataclass(slots=True)
class Lane:
    """A straight way for long arrows of one source, from rank first to rank last. width: room for a label."""

    first: int
    last: int
    width: float = 0.0
    u: float = 0.0


@dataclass(slots=True)
class Level:
    """Items and links of one level, and what the layout makes of them.

    side: where a line passes a label, in widths from its middle; head, tail: room before the first and behind the last
    rank; steps: per rank, (item, item of the next rank, offsets, weight) across its gap; tops, bottoms: where each rank
    begins and ends; length: of the whole level along the flow.
    """

    items: list[Item] = field(default_factory=list[Item])
    links: list[Link] = field(default_factory=list[Link])
    side: float = -0.5
    head: float = 0.0
    tail: float = 0.0
    lanes: list[Lane] = field(default_factory=list[Lane])
    ranks: list[list[int]] = field(default_factory=list[list[int]])
    steps: list[list[tuple[int, int, float, float, float]]] = field(
        default_factory=list[list[tuple[int, int, float, float, float]]]
    )
    tops: list[float] = field(default_factory=list[float])
    bottoms: list[float] = field(default_factory=list[float])
    length: float = 0.0


def layer(level: Level) -> None:
    """Give every item a rank and every link its way: a step, a chain of bends, or a lane. Near-linear."""
    _assign_ranks(level)
    _bend_links(level)
    last = max((item.rank for item in level.items), default=0)
    level.ranks = [[] for _ in range(last + 1)]
    for k in sorted(range(len(level.items)), key=lambda k: level.items[k].key):
        level.ranks[level.items[k].rank].append(k)
    level.steps = [[] for _ in range(last + 1)]
    main = _main_links(level)
    for number, link in enumerate(level.links):
        _add_steps(level, link, number in main)


def _assign_ranks(level: Level) -> None:
    """Longest path from the start; what does not depend on the input is moved down to its reader."""
    items, links = level.items, level.links
    into: list[list[int]] = [[] for _ in items]
    out: list[list[int]] = [[] for _ in items]
    for number, link in enumerate(links):
        link.back = items[link.a].key >= items[link.b].key
        if not link.back:
            into[link.b].append(number)
            out[link.a].append(number)
    order = sorted(range(len(items)), key=lambda k: items[k].key)
    for k in order:
        item = items[k]
        item.rank = 0 if item.kind == ENTRY else 1
        for number in into[k]:
            source = items[links[number].a]
            item.rank = max(item.rank, source.rank + _length(links[number]))
            item.anchored = item.anchored or source.anchored
    # A row of what all reads one source would be as wide as there are readers.
    loose = [False] * len(items)
    for k in order:
        sources = [links[number].a for number in into[k]]
        late = bool(sources) and all(loose[a] or len(out[a]) > HUB for a in sources)
        loose[k] = items[k].kind in (NODE, FRAME) and (late or not items[k].anchored)
    for k in reversed(order):
        item = items[k]
        if loose[k] and out[k]:
            item.rank = min(items[links[n].b].rank - _length(links[n]) for n in out[k])
    end = max((item.rank for item in items), default=0) + 1
    for item in items:
        if item.kind == EXIT:
            item.rank = end


def _length(link: Link) -> int:
    return 2 if link.label else 1


def _bend_links(level: Level) -> None:
    items = level.items
    room = FREE_BENDS + BENDS_PER_ITEM * (len(items) + len(level.links))
    lanes: dict[tuple[int, float], int] = {}
    readers = Counter(link.a for link in level.links)

    def span(number: int) -> int:
        link = level.links[number]
        return items[link.b].rank - items[link.a].rank

    for number in sorted(range(len(level.links)), key=span):
        link = level.links[number]
        first, last = items[link.a].rank, items[link.b].rank
        if link.back:
            _add_back_lane(level, link, last, first)
            continue
        if last - first < 2:
            continue
        bends = range(first + 1, last - 1 if link.label else last)
        if len(bends) <= min(LONGEST_CHAIN, room) and not (bends and readers[link.a] > HUB):
            room -= len(bends)
            for rank in bends:
                _append(level, number, Item(BEND, 0.0, 0.0, items[link.b].key, link=number, rank=rank))
        else:
            _join_lane(level, link, lanes, bends)
        if link.label:
            width, height = link.label
            _append(level, number, Item(LABEL, width, height, items[link.b].key, link=number, rank=last - 1))


def _append(level: Level, number: int, item: Item) -> None:
    level.links[number].chain.append(len(level.items))
    level.items.append(item)


def _join_lane(level: Level, link: Link, lanes: dict[tuple[int, float], int], ranks: range) -> None:
    """Long arrows of one source share a lane, from which each leaves where its target stands."""
    key = (link.a, link.start)
    if key not in lanes:
        lanes[key] = len(level.lanes)
        level.lanes.append(Lane(ranks[0], ranks[-1]))
    link.lane = lanes[key]
    level.lanes[link.lane].last = max(level.lanes[link.lane].last, ranks[-1])


def _add_back_lane(level: Level, link: Link, first: int, last: int) -> None:
    link.lane = len(level.lanes)
    level.lanes.append(Lane(min(first, last), max(first, last), link.label[0] if link.label else 0.0))


def _main_links(level: Level) -> set[int]:
    """Per item the link from what ran last before it: the line that is drawn straight."""
    best: dict[int, tuple[bool, float, int]] = {}
    for number, link in enumerate(level.links):
        if not link.back and link.lane < 0:
            source = level.items[link.a]
            found = (source.anchored, source.key, -number)
            if link.b not in best or found > best[link.b]:
                best[link.b] = found
    return {-number for *_, number in best.values()}


# How strongly a step pulls: of the main line, between the bends of a long one, any other.
MAIN, INNER, LOOSE = 1000.0, 8.0, 1.0


def _add_steps(level: Level, link: Link, main: bool) -> None:
    if link.back:
        return
    stops = [*link.chain, link.b]
    before, offset = (link.a, link.start) if link.lane < 0 else (stops.pop(0), 0.0)
    if link.lane >= 0 and before == link.b:
        return
    offset = _side(level, level.items[before], offset)
    for stop in stops:
        item = level.items[stop]
        end = link.end if stop == link.b else _side(level, item, 0.0)
        inner = item.kind >= BEND and level.items[before].kind >= BEND
        weight = MAIN if main and len(link.chain) < 2 else INNER if inner else LOOSE
        level.steps[level.items[before].rank].append((before, stop, offset, end, weight))
        before, offset = stop, end


def _side(level: Level, item: Item, offset: float) -> float:
    """Where in an item a line passes: beside the text of a label."""
    return level.side * item.width if item.kind == LABEL else offset


# -- order within the ranks
SWEEPS = 4


def order(level: Level) -> None:
    """Sort the items of each rank so that few steps cross: barycentres down and up, the best of all sweeps is kept."""
    if max((len(rank) for rank in level.ranks), default=0) < 2:
        return
    place = [0.0] * len(level.items)
    _number(level.ranks, place)
    best, fewest = [list(rank) for rank in level.ranks], crossings(level, place)
    above: list[list[tuple[int, float, float]]] = [[] for _ in level.items]
    below: list[list[tuple[int, float, float]]] = [[] for _ in level.items]
    for steps in level.steps:
        for a, b, start, end, _ in steps:
            above[b].append((a, start, end))
            below[a].append((b, end, start))
    beside = {end for link in level.links if link.lane >= 0 for end in (link.a, link.b)}
    for sweep in range(2 * SWEEPS):
        # Lanes are not among the counted steps, so their ends move to their side in any case.
        aside = bool(beside) and sweep < 2
        if not fewest and not aside:
            break
        down = sweep % 2 == 0
        ranks = level.ranks if down else level.ranks[::-1]
        for rank in ranks:
            if len(rank) > 1:
                _sort(level, rank, place, above if down else below, beside)
        found = crossings(level, place)
        if found < fewest or (aside and found == fewest):
            best, fewest = [list(rank) for rank in level.ranks], found
    level.ranks = best
    _number(best, place)
    if fewest:
        _swap(level, place, above, below)


def _number(ranks: Iterable[list[int]], place: list[float]) -> None:
    for rank in ranks:
        for position, k in enumerate(rank):
            place[k] = float(position)


def _at(level: Level, k: int, offset: float, place: list[float]) -> float:
    """A place in the order, refined by where on its item a link ends."""
    width = level.items[k].width
    return place[k] + (0.9 * offset / width if width else 0.0)


def _sort(
    level: Level,
    rank: list[int],
    place: list[float],
    nearby: list[list[tuple[int, float, float]]],
    beside: set[int],
) -> None:
    """beside: items with an arrow in a lane, which is on the right of everything."""
    wish: dict[int, float] = {}
    for k in rank:
        spots = [_at(level, other, offset, place) for other, offset, _ in nearby[k]]
        if k in beside:
            spots.append(float(len(rank)))
        wish[k] = sum(spots) / len(spots) if spots else place[k]
    rank.sort(key=lambda k: wish[k])
    for position, k in enumerate(rank):
        place[k] = float(position)


def crossings(level: Level, place: list[float]) -> int:
    """How many pairs of steps cross."""
    return sum(_inversions(level, steps, place) for steps in level.steps if len(steps) > 1)


def _inversions(level: Level, steps: list[tuple[int, int, float, float, float]], place: list[float]) -> int:
    ends = sorted((_at(level, a, start, place), _at(level, b, end, place)) for a, b, start, end, _ in steps)
    seen: list[float] = []
    count = 0
    for _, right in ends:
        spot = bisect_right(seen, right)
        count += len(seen) - spot
        seen.insert(spot, right)
    return count


def _swap(
    level: Level,
    place: list[float],
    above: list[list[tuple[int, float, float]]],
    below: list[list[tuple[int, float, float]]],
) -> None:
    """Exchange neighbours while that removes crossings, a few rounds at most."""
    for _ in range(SWEEPS):
        changed = False
        for rank in level.ranks:
            for i in range(len(rank) - 1):
                a, b = rank[i], rank[i + 1]
                gain = sum(_pair(level, a, b, place, side) for side in (above, below))
                if gain > 0:
                    rank[i], rank[i + 1] = b, a
                    place[a], place[b] = place[b], place[a]
                    changed = True
        if not changed:
            return


def _pair(level: Level, a: int, b: int, place: list[float], nearby: list[list[tuple[int, float, float]]]) -> int:
    """Crossings of the links of two neighbours that go away when they are exchanged, less those that come."""
    left = sorted(_at(level, k, offset, place) for k, offset, _ in nearby[a])
    right = sorted(_at(level, k, offset, place) for k, offset, _ in nearby[b])
    now = sum(bisect_left(right, spot) for spot in left)
    then = sum(bisect_left(left, spot) for spot in right)
    return now - then
