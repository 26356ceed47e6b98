"""Coordinates of an ordered level: across the flow by repeated weighted averages, along it rank by rank, then lanes.

No two items of a rank overlap, and a lane stands beside everything that it passes. Near-linear in the level's size.
"""

from __future__ import annotations

from torchlens.render.rank_level import ENTRY, EXIT, FRAME, LABEL, NODE, Item, Level, Link

# Points between neighbours of one rank, and between ranks.
NODE_GAP, LINE_GAP, LANE_GAP = 27.0, 11.0, 10.0
ARROW_GAP, FRAME_GAP, PLAIN_GAP, EXIT_GAP = 27.0, 24.0, 12.0, 4.0
# A gap grows with the widest step across it, so that lines stay steep enough to follow.
SLOPE, STEEPEST = 0.09, 60.0
# Points that a line needs beside a rank to turn against the flow.
TURN = 16.0
ROUNDS = 4
# Frames in a level, and its width in widths of its widest rank, from which on it drifts.
DRIFT_FRAMES, DRIFT = 3, 1.25
# Points between the ends of two arrows at one node, and the share of its width that they may use.
END_GAP, END_SHARE = 13.0, 0.84

Run = tuple[float, float, float]


def place(level: Level) -> None:
    """Set u and v of every item and lane, and where each rank begins and ends."""
    _across(level, straight=True)
    if _drifts(level):
        _across(level, straight=False)
    _lanes(level)
    _along(level)
    _spread_ends(level)


# -- across the flow
def _drifts(level: Level) -> bool:
    """Whether a row of frames that each let the line out beside where it came in wanders across the page."""
    if sum(item.kind == FRAME for item in level.items) < DRIFT_FRAMES:
        return False
    widest = max(sum(level.items[k].width for k in rank) for rank in level.ranks)
    left = min(item.u - item.width / 2 for item in level.items)
    right = max(item.u + item.width / 2 for item in level.items)
    return right - left > DRIFT * widest


def _across(level: Level, straight: bool) -> None:
    """straight: pull frames so that the lines through them are straight, else middle under middle."""
    items = level.items
    for rank in level.ranks:
        _pack(items, rank, [0.0] * len(rank), [1.0] * len(rank))
    above: list[list[tuple[int, float, float]]] = [[] for _ in items]
    below: list[list[tuple[int, float, float]]] = [[] for _ in items]
    for steps in level.steps:
        for a, b, start, end, weight in steps:
            if not straight:
                start, end = (0.0 if items[k].kind == FRAME else offset for k, offset in ((a, start), (b, end)))
            above[b].append((a, start - end, weight))
            below[a].append((b, end - start, weight))
    # A mere chain is straight at once.
    for round_ in range(ROUNDS if max(map(len, level.ranks)) > 1 else 0):
        last = round_ == ROUNDS - 1
        for rank in level.ranks[1:]:
            _settle(items, rank, above, below if last else None)
        for rank in level.ranks[-2::-1]:
            _settle(items, rank, below, above if last else None)
    for rank in level.ranks[1:]:
        _settle(items, rank, above, None)


def _settle(
    items: list[Item],
    rank: list[int],
    side: list[list[tuple[int, float, float]]],
    other: list[list[tuple[int, float, float]]] | None,
) -> None:
    """Move the items of a rank to where their neighbours pull them, as far as they do not overlap."""
    wishes: list[float] = []
    weights: list[float] = []
    for k in rank:
        ends = side[k] if other is None else [*side[k], *other[k]]
        total = sum(weight for _, _, weight in ends)
        if total:
            wishes.append(sum((items[o].u + shift) * weight for o, shift, weight in ends) / total)
            weights.append(total)
        else:
            wishes.append(items[k].u)
            weights.append(0.01)
    if len(rank) == 1:
        items[rank[0]].u = wishes[0]
    else:
        _pack(items, rank, wishes, weights)


def _pack(items: list[Item], rank: list[int], wishes: list[float], weights: list[float]) -> None:
    """The places closest to the wishes in the given order. Weighted isotonic regression by pooling neighbours."""
    offsets: list[float] = []
    edge = 0.0
    for position, k in enumerate(rank):
        if position:
            before = items[rank[position - 1]]
            edge += before.width / 2 + items[k].width / 2 + gap_between(before, items[k])
        offsets.append(edge)
    pools: list[list[float]] = []  # mean, weight, count
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, count = wish - offset, weight, 1.0
        while pools and pools[-1][0] >= mean:
            left, heavy, many = pools.pop()
            mean = (left * heavy + mean * total) / (heavy + total)
            total += heavy
            count += many
        pools.append([mean, total, count])
    position = 0
    for mean, _, count in pools:
        for _ in range(int(count)):
            items[rank[position]].u = mean + offsets[position]
            position += 1


def gap_between(left: Item, right: Item) -> float:
    """Points between two neighbours of one rank."""
    lines = (left.kind not in (NODE, FRAME)) + (right.kind not in (NODE, FRAME))
    return (NODE_GAP, (NODE_GAP + LINE_GAP) / 2, LINE_GAP)[lines]


# -- lanes
def _lanes(level: Level) -> None:
    """Short lanes first, so that long ones go around them."""
    edge = _RightEdge([max((level.items[k].u + level.items[k].width / 2 for k in r), default=0.0) for r in level.ranks])
    for lane in sorted(level.lanes, key=lambda lane: (lane.last - lane.first, lane.first)):
        lane.u = edge.reach(lane.first, lane.last) + LANE_GAP
        edge.raise_to(lane.first, lane.last, lane.u + lane.width + (LANE_GAP if lane.width else 0.0))


class _RightEdge:
    """The largest right edge of any range of ranks, and ranges raised to at least a value, in logarithmic time."""

    def __init__(self, edges: list[float]) -> None:
        self._size = 1 << max(len(edges) - 1, 0).bit_length()
        low = float("-inf")
        self._most = [low] * self._size + edges + [low] * (self._size - len(edges))
        self._floor = [low] * (2 * self._size)  # what a whole subtree was raised to
        for k in range(self._size - 1, 0, -1):
            self._most[k] = max(self._most[2 * k], self._most[2 * k + 1])

    def _parts(self, first: int, last: int) -> list[int]:
        parts: list[int] = []
        left, right = first + self._size, last + self._size + 1
        while left < right:
            if left & 1:
                parts.append(left)
                left += 1
            if right & 1:
                right -= 1
                parts.append(right)
            left, right = left // 2, right // 2
        return parts

    def reach(self, first: int, last: int) -> float:
        """The largest edge among these ranks."""
        found = float("-inf")
        for part in self._parts(first, last):
            found = max(found, self._most[part])
            while part:
                found = max(found, self._floor[part])
                part //= 2
        return found

    def raise_to(self, first: int, last: int, edge: float) -> None:
        """Let every one of these ranks reach at least so far."""
        for part in self._parts(first, last):
            self._floor[part] = max(self._floor[part], edge)
            while part:
                self._most[part] = max(self._most[part], edge)
                part //= 2


# -- along the flow
def _along(level: Level) -> None:
    items = level.items
    widest = _widest_steps(level)
    turns = any(link.back for link in level.links)
    level.tops, level.bottoms = [0.0], [level.head]
    for number, rank in enumerate(level.ranks):
        if number:
            v = level.bottoms[-1]
            if rank and (number > 1 or level.ranks[0]):
                v += _gap(level, number, widest[number - 1])
            elif number == 1 and turns:
                v += ARROW_GAP
            level.tops.append(v)
            level.bottoms.append(v + max((items[k].height for k in rank), default=0.0))
        for k in rank:
            items[k].v = (level.tops[number] + level.bottoms[number]) / 2
    closed = bool(level.ranks) and any(items[k].kind == EXIT for k in level.ranks[-1])
    level.length = level.bottoms[-1] + (0.0 if closed else level.tail) + (TURN if turns else 0.0)


def _gap(level: Level, number: int, widest: float) -> float:
    """Points before a rank."""
    kinds = {level.items[k].kind for k in level.ranks[number]}
    room = ARROW_GAP if NODE in kinds else FRAME_GAP if FRAME in kinds else PLAIN_GAP
    if kinds == {EXIT}:
        room = EXIT_GAP
    # A long slanted step needs height; so do the labels of the rank above, which stand close to it.
    return room + min(STEEPEST, SLOPE * widest)


def _widest_steps(level: Level) -> list[float]:
    items = level.items
    widest = [0.0] * len(level.ranks)
    for number, steps in enumerate(level.steps):
        for a, b, start, end, _ in steps:
            widest[number] = max(widest[number], abs(items[a].u + start - items[b].u - end))
    for link in level.links:
        if link.lane >= 0:
            lane = level.lanes[link.lane].u
            for number, end in ((items[link.a].rank, items[link.a].u), (items[link.b].rank - 1, items[link.b].u)):
                number = max(0, min(number, len(widest) - 1))
                widest[number] = max(widest[number], abs(lane - end))
    return widest


# -- the ways of the links
def _spread_ends(level: Level) -> None:
    """Spread the arrows that end at one node: the main one in the middle, the others on the side they come from."""
    coming: list[list[tuple[float, int]]] = [[] for _ in level.items]
    for number, link in enumerate(level.links):
        if level.items[link.b].kind == NODE:
            coming[link.b].append((_before_end(level, link), number))
    for k, found in enumerate(coming):
        if len(found) < 2:
            continue
        item = level.items[k]
        found.sort()
        middle = min(range(len(found)), key=lambda i: (abs(found[i][0] - item.u), i))
        room = END_SHARE * item.width / 2 / max(middle, len(found) - 1 - middle, 1)
        for i, (_, number) in enumerate(found):
            level.links[number].end = (i - middle) * min(END_GAP, room)


def _before_end(level: Level, link: Link) -> float:
    """Where an arrow comes from in its last step."""
    if link.chain:
        item = level.items[link.chain[-1]]
        return item.u + (level.side * item.width if item.kind == LABEL else 0.0)
    return level.lanes[link.lane].u if link.lane >= 0 else level.items[link.a].u + link.start


def runs(level: Level, link: Link) -> list[Run]:
    """The straight runs of a link along the flow, (u, from v, to v), from its source's border to its target's.

    Between two runs the line bends inside the gap of two ranks, where nothing stands.
    """
    source, target = level.items[link.a], level.items[link.b]
    tops, bottoms = level.tops, level.bottoms
    way = [_leave(level, source, link.start)]
    if link.lane >= 0:
        u = level.lanes[link.lane].u
        if link.back:
            way.append((u, bottoms[source.rank], tops[target.rank]))
        else:
            way.append((u, tops[source.rank + 1], bottoms[target.rank - (2 if link.label else 1)]))
    for k in link.chain:
        item = level.items[k]
        u = item.u + (level.side * item.width if item.kind == LABEL else 0.0)
        way.append((u, tops[item.rank], bottoms[item.rank]))
    way.append(_arrive(level, target, link.end))
    return way


def _leave(level: Level, item: Item, offset: float) -> Run:
    start = level.tops[item.rank] if item.kind == ENTRY else item.v + item.height / 2
    return item.u + offset, start, level.bottoms[item.rank]


def _arrive(level: Level, item: Item, offset: float) -> Run:
    if item.kind == EXIT:
        return item.u + offset, level.tops[item.rank], level.length
    dip = 0.0
    if item.round and item.width:
        share = min(1.0, abs(offset) / (item.width / 2))
        dip = item.height / 2 * (1 - (1 - share * share) ** 0.5)
    return item.u + offset, level.tops[item.rank], item.v - item.height / 2 + dip
