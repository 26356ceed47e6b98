"""`layout="rank"`: a layered layout of our own, near-linear in the size of the figure.

Frames are laid out from the inside out, each as one level whose result is an item of the level around it, so that a
frame holds its nodes and never overlaps another by construction. Trace order decides ranks and breaks every tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from torchlens.render import measure, rank_coordinates, rank_level
from torchlens.render.dot import ARM_ASIDE, ARROW_SIZE, ASIDE, CELL_WIDTH, GAP, PART_GAP, SWATCH_WIDTH
from torchlens.render.placement import Placement, Point, Rect, Route, root_attributes
from torchlens.render.rank_coordinates import Run
from torchlens.render.rank_level import ENTRY, EXIT, FRAME, LABEL, NODE, Item, Level, Link
from torchlens.scene import label_size
from torchlens.scene.model import Scene, SceneEdge

ARROW = 10 * ARROW_SIZE
# Points of a straight line before an arrow's head, of a bend against the flow, and around a frame's label.
STEM, TURN, LABEL_ROOM = 2.0, 14.0, 8.0
# Kinds that stand at the start of the flow even if they are read late.
_ANCHORS = ("input",)

# A side of a frame where an arrow of this source passes: (source node, or ~edge where the arrow has a label).
Port = int
# An item of a level before it has a number: ("n", node, 0), ("f", frame, port), ("i", port, 0) or ("o", port, 0).
Ref = tuple[str, int, int]


@dataclass(slots=True)
class _Frame:
    """One frame or the page while it is laid out. links: what connects its items, by their ends and label."""

    depth: int
    level: Level = field(default_factory=Level)
    links: dict[tuple[Ref, Ref, int], int] = field(default_factory=dict[tuple[Ref, Ref, int], int])
    numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    ends: list[tuple[Ref, Ref, int]] = field(default_factory=list[tuple[Ref, Ref, int]])
    left: float = 0.0
    right: float = 0.0
    u: float = 0.0
    v: float = 0.0


def arrange(scene: Scene) -> tuple[Scene, Placement]:
    """Place everything. Also the scene with every label of an arrow at its middle, where there is room for it."""
    scene = replace(scene, edges=tuple(_gather_labels(edge) for edge in scene.edges))
    return scene, _Arranger(scene).run()


def _gather_labels(edge: SceneEdge) -> SceneEdge:
    if not edge.head and not edge.tail:
        return edge
    return edge._replace(middle=(*edge.head, *edge.middle, *edge.tail), head=(), tail=())


class _Arranger:
    """Lays out one scene. Frame -1 is the page."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._page = scene, scene.page
        self._along_x = scene.page.direction in ("LR", "RL")
        self._sizes = [measure.node_size(node, scene.page) for node in scene.nodes]
        self._labels = [measure.frame_label_size(box, scene.page) for box in scene.boxes]
        self._frames: dict[int, _Frame] = {-1: _Frame(0)}
        self._ways: list[list[tuple[int, int]]] = []
        self._first = [len(scene.nodes)] * len(scene.boxes)

    def run(self) -> Placement:
        self._open_frames()
        for edge_number, edge in enumerate(self._scene.edges):
            self._ways.append(self._connect(edge_number, edge))
        inside_out = sorted(self._frames, key=lambda f: (-self._frames[f].depth, f))
        for f in inside_out:
            self._solve(f)
        for f in reversed(inside_out):
            self._settle(f)
        return self._finish()

    # -- the tree of frames
    def _open_frames(self) -> None:
        boxes = self._scene.boxes
        for k in range(len(boxes)):
            chain: list[int] = []
            box: int | None = k
            while box is not None and box not in self._frames:
                chain.append(box)
                box = boxes[box].parent
            for b in reversed(chain):
                self._frames[b] = _Frame(self._frames[self._parent(b)].depth + 1)
        for k, node in enumerate(self._scene.nodes):
            box = node.box
            while box is not None and self._first[box] > k:
                self._first[box] = k
                box = boxes[box].parent
        for k, node in enumerate(self._scene.nodes):
            width, height = self._turned(self._sizes[k])
            item = Item(NODE, width, height, float(k), node.style.shape in (None, "oval"), node.kind in _ANCHORS)
            self._add(-1 if node.box is None else node.box, ("n", k), item)
        for k in sorted(range(len(boxes)), key=lambda k: self._first[k]):
            if self._first[k] < len(self._scene.nodes):
                self._add(self._parent(k), ("f", k), Item(FRAME, 0.0, 0.0, float(self._first[k])))

    def _parent(self, box: int) -> int:
        parent = self._scene.boxes[box].parent
        return -1 if parent is None else parent

    def _turned(self, size: measure.Size) -> measure.Size:
        """Size across and along the flow."""
        return (size[1], size[0]) if self._along_x else size

    def _add(self, frame: int, name: tuple[str, int], item: Item) -> int:
        found = self._frames[frame]
        number = found.numbers.get(name)
        if number is None:
            number = found.numbers[name] = len(found.level.items)
            found.level.items.append(item)
        return number

    # -- links
    def _connect(self, number: int, edge: SceneEdge) -> list[tuple[int, int]]:
        """Links of one arrow, level by level: out of the source's frames, across, and into the target's."""
        out, into = self._chain(edge.source), self._chain(edge.target)
        while len(out) > 1 and len(into) > 1 and out[-2] == into[-2]:
            out.pop()
            into.pop()
        labelled = bool(edge.middle or edge.arms)
        leave: Port = edge.source
        enter: Port = ~number if labelled else edge.source
        way: list[tuple[int, int]] = []
        ref: Ref = ("n", edge.source, 0)
        for frame in out[:-1]:
            way.append((frame, self._link(frame, ref, ("o", leave, 0))))
            ref = ("f", frame, leave)
        inner: Ref = ("n", edge.target, 0)
        entered: list[tuple[int, int]] = []
        for frame in into[:-1]:
            entered.append((frame, self._link(frame, ("i", enter, 0), inner)))
            inner = ("f", frame, enter)
        across = out[-1]
        way.append((across, self._link(across, ref, inner, number if labelled else -1)))
        return way + entered[::-1]

    def _chain(self, node: int) -> list[int]:
        """Frames around a node, from the innermost to the page."""
        chain: list[int] = []
        box = self._scene.nodes[node].box
        while box is not None:
            chain.append(box)
            box = self._scene.boxes[box].parent
        return [*chain, -1]

    def _link(self, frame: int, a: Ref, b: Ref, edge: int = -1) -> int:
        found = self._frames[frame]
        key = (a, b, edge)
        number = found.links.get(key)
        if number is None:
            number = found.links[key] = len(found.ends)
            found.ends.append(key)
            for kind, port, _ in (a, b):
                if kind == "i":
                    self._add(frame, ("i", port), Item(ENTRY, 0.0, 0.0, -1.0, anchored=True))
                elif kind == "o":
                    self._add(frame, ("o", port), Item(EXIT, 0.0, 0.0, float("inf")))
        return number

    # -- one level
    def _solve(self, f: int) -> None:
        """Lay out a frame whose inner frames are laid out; its size and ports go to the item in the outer level."""
        frame = self._frames[f]
        level = frame.level
        margin = self._page.cluster_margin if f >= 0 else 0.0
        label = self._labels[f] if f >= 0 else (0.0, 0.0)
        level.head = margin if self._along_x or f < 0 else label[1] + 2 * LABEL_ROOM
        level.tail = margin
        level.side = 0.5 if self._along_x else -0.5
        for item in level.items:
            if item.kind in (ENTRY, EXIT):
                item.height = level.head if item.kind == ENTRY else level.tail
        for a, b, edge in frame.ends:
            size = self._edge_label(edge) if edge >= 0 else None
            level.links.append(
                Link(self._number(frame, a), self._number(frame, b), self._offset(a, "o"), self._offset(b, "i"), size)
            )
        rank_level.layer(level)
        rank_level.order(level)
        rank_coordinates.place(level)
        self._bound(frame, margin, label, f >= 0)
        if f >= 0 and self._first[f] < len(self._scene.nodes):
            outer = self._frames[self._parent(f)]
            item = outer.level.items[outer.numbers["f", f]]
            item.width, item.height = frame.right - frame.left, level.length

    def _edge_label(self, edge: int) -> measure.Size:
        found = self._scene.edges[edge]
        blank = (" ",) if self._along_x and not found.arms else ()
        aside = found._replace(middle=(*(f"{ASIDE}{line}" for line in found.middle), *blank))
        width, height = measure.edge_label_size(aside, self._page)
        return self._turned((width + (ARM_ASIDE if found.arms else 2), height + 4))

    @staticmethod
    def _number(frame: _Frame, ref: Ref) -> int:
        return frame.numbers[ref[0], ref[1]]

    def _offset(self, ref: Ref, side: str) -> float:
        """Where on an inner frame an arrow passes, from its middle."""
        if ref[0] != "f":
            return 0.0
        inner = self._frames[ref[1]]
        return inner.level.items[inner.numbers[side, ref[2]]].u - (inner.left + inner.right) / 2

    def _bound(self, frame: _Frame, margin: float, label: measure.Size, framed: bool) -> None:
        """The sides of a frame: around its items, with its label where no arrow enters."""
        level = frame.level
        left = min((item.u - item.width / 2 for item in level.items), default=0.0)
        right = max((item.u + item.width / 2 for item in level.items), default=0.0)
        right = max([right, *(lane.u + lane.width for lane in level.lanes)])
        frame.left, frame.right = left - margin, right + margin
        if not framed:
            return
        room = label[0] + 2 * LABEL_ROOM
        if self._along_x:
            frame.left -= label[1]
            level.length = max(level.length, room)
        else:
            ports = [item.u for item in level.items if item.kind == ENTRY]
            frame.left = min([frame.left, *(port - room for port in ports)])
            frame.right = max(frame.right, frame.left + room)

    # -- from levels to the page
    def _settle(self, f: int) -> None:
        """Where a frame's own coordinates begin on the page."""
        if f < 0 or self._first[f] == len(self._scene.nodes):
            return
        frame, outer = self._frames[f], self._frames[self._parent(f)]
        item = outer.level.items[outer.numbers["f", f]]
        frame.u = outer.u + item.u - (frame.left + frame.right) / 2
        frame.v = outer.v + item.v - frame.level.length / 2

    def _finish(self) -> Placement:
        scene, page = self._scene, self._frames[-1]
        gaps = GAP + 2 * PART_GAP
        width, height = measure.root_size(scene.root, scene.page, gaps, CELL_WIDTH, SWATCH_WIDTH)
        across, along = page.right - page.left, page.level.length
        wide, tall = (along, across) if self._along_x else (across, along)
        turn = _Turn(scene.page.direction, page.left, wide, tall)
        sheet = Rect(0.0, 0.0, max(wide, width), tall + height)
        nodes = [self._node_rect(k, turn) for k in range(len(scene.nodes))]
        frames = [self._frame_rect(k, turn) for k in range(len(scene.boxes))]
        labels = [self._frame_label(k, frames[k]) for k in range(len(frames))]
        routes = [self._route(k, turn) for k in range(len(scene.edges))]
        graph = root_attributes(sheet, (width / 2, sheet.top - height / 2))
        borders = [label_size.outer_border(node.style) for node in scene.nodes]
        return Placement(graph, nodes, borders, frames, labels, routes, sheet)

    def _node_rect(self, k: int, turn: _Turn) -> Rect:
        box = self._scene.nodes[k].box
        frame = self._frames[-1 if box is None else box]
        item = frame.level.items[frame.numbers["n", k]]
        x, y = turn.point((frame.u + item.u, frame.v + item.v))
        width, height = self._sizes[k]
        return Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def _frame_rect(self, k: int, turn: _Turn) -> Rect:
        frame = self._frames[k]
        a = turn.point((frame.u + frame.left, frame.v))
        b = turn.point((frame.u + frame.right, frame.v + frame.level.length))
        return Rect(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))

    def _frame_label(self, k: int, rect: Rect) -> Point:
        """Centre of a frame's label: at the left, where the flow begins, or at the top of a flow to the side."""
        width, height = self._labels[k]
        x = rect.left + LABEL_ROOM + width / 2
        if self._page.direction == "BT":
            return x, rect.bottom + LABEL_ROOM + height / 2
        return x, rect.top - LABEL_ROOM - height / 2

    # -- arrows
    def _route(self, k: int, turn: _Turn) -> Route:
        way: list[Run] = []
        label: Point | None = None
        for f, number in self._ways[k]:
            frame = self._frames[f]
            link = frame.level.links[number]
            way += [
                (frame.u + u, frame.v + first, frame.v + last)
                for u, first, last in rank_coordinates.runs(frame.level, link)
            ]
            if link.label:
                u, v = _label_place(frame.level, link)
                label = turn.point((frame.u + u, frame.v + v))
        points, tip = _curve(way)
        return Route(tuple(turn.point(p) for p in points), turn.point(tip), label)


def _label_place(level: Level, link: Link) -> Point:
    for k in link.chain:
        if level.items[k].kind == LABEL:
            return level.items[k].u, level.items[k].v
    lane = level.lanes[link.lane]
    return lane.u + lane.width / 2, (level.tops[lane.first] + level.bottoms[lane.last]) / 2


def _curve(way: Sequence[Run]) -> tuple[list[Point], Point]:
    """Cubic pieces through straight runs, up to the base of the arrow's head, and its tip."""
    u, start, tip = way[-1]
    base = tip - ARROW
    runs = _joined([*way[:-1], (u, min(start, base - STEM), base)])
    u, v, last = runs[0]
    points: list[Point] = [(u, v)]
    _straight(points, u, v, last)
    for before, run in pairwise(runs):
        _bend(points, before, run)
        _straight(points, *run)
    return points, (way[-1][0], tip)


def _joined(way: Sequence[Run]) -> list[Run]:
    """Runs of one line made one."""
    joined = [way[0]]
    for u, first, last in way[1:]:
        before, begin, end = joined[-1]
        onward = _is_onward(begin, end) == _is_onward(first, last) == _is_onward(end, first)
        if abs(u - before) < 0.5 and onward:
            joined[-1] = (before, begin, last)
        else:
            joined.append((u, first, last))
    return joined


def _is_onward(first: float, last: float) -> bool:
    """Whether a way runs along the flow, or stands still as far as sums of floats tell."""
    return last > first - 0.01


def _straight(points: list[Point], u: float, first: float, last: float) -> None:
    if abs(last - first) > 0.5:
        points += [(u, first + (last - first) / 3), (u, last - (last - first) / 3), (u, last)]


def _bend(points: list[Point], before: Run, run: Run) -> None:
    """From the end of one run to the begin of the next, leaving and arriving along the flow."""
    (start, v), (end, w) = points[-1], (run[0], run[1])
    down, onward = _is_onward(before[1], before[2]), _is_onward(run[1], run[2])
    if down and onward and _is_onward(v, w):
        middle = (v + w) / 2
        points += [(start, middle), (end, middle), (end, w)]
    else:
        points += [(start, v + (TURN if down else -TURN)), (end, w - (TURN if onward else -TURN)), (end, w)]


@dataclass(frozen=True, slots=True)
class _Turn:
    """From (across, along) to the page's (x, y)."""

    direction: str
    left: float
    width: float
    height: float

    def point(self, place: Point) -> Point:
        u, v = place[0] - self.left, place[1]
        if self.direction == "TB":
            return u, self.height - v
        if self.direction == "BT":
            return u, v
        return (v if self.direction == "LR" else self.width - v), self.height - u
