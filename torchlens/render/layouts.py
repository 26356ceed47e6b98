"""Which layout a figure gets, by counts alone: the engine's own, the same with bounds on its effort, or ranks.

A figure that no layout can make readable is refused here. Nothing reads the clock: the same figure always gets the
same layout, on any machine.
"""

from __future__ import annotations

from enum import Enum

from torchlens.base.digraph import ranks
from torchlens.base.errors import fail
from torchlens.render.layout_rank import arrange
from torchlens.render.placement import FREE, Placement
from torchlens.scene.model import Scene

# Drawn nodes that the engine places, and that anything places.
DOT_NODES, NODE_LIMIT = 6_000, 50_000
# Nodes plus the ranks that arrows pass, from which on the engine needs bounds, and from which on it takes too long.
BOUNDED_SIZE, DOT_SIZE = 3_000, 20_000
BOUNDS = Placement("nslimit=1 mclimit=0.5")


class Layout(Enum):
    """How a figure is placed."""

    DOT = "dot"
    BOUNDED = "dot with bounds"
    RANK = "rank"


def check_size(nodes: int, file_format: str = "svg", *, layout: str = "auto", channel: bool = False) -> None:
    """Refuse more drawn nodes than a layout can place; `dot` files need no layout.

    layout: as asked for; channel: whether a value sets looks or places of nodes, which needs the engine's layout.
    Raises: InvalidArgumentError[graph_too_large].
    """
    if file_format == "dot":
        return
    bound, what = NODE_LIMIT, "no layout places"
    fix = 'draw fewer nodes with collapse="auto" or depth='
    if channel or layout == "dot":
        bound, what = (
            DOT_NODES,
            "a channel needs the dot layout, which places" if channel else "layout='dot' places",
        )
        fix += ", or draw without the channel" if channel else ', or pass layout="rank"'
    if nodes > bound:
        what = f"the figure has {nodes} nodes; {what} {'more than' if bound == NODE_LIMIT else 'at most'} {bound}"
        fail("graph_too_large", what, fix=fix, nodes=nodes, limit=bound)


def choose(scene: Scene, layout: str = "auto", *, channel: bool = False) -> Layout:
    """The layout of a figure. layout: as asked for; channel: whether a value sets looks or places."""
    if layout == "rank":
        return Layout.RANK
    count = len(scene.nodes)
    size = count + crossed_ranks(scene)
    # A channel was asked for by name, so its figure keeps the layout that shows it.
    free = layout == "auto" and not channel
    if free and (count > DOT_NODES or size >= DOT_SIZE):
        return Layout.RANK
    return Layout.BOUNDED if size >= BOUNDED_SIZE else Layout.DOT


def crossed_ranks(scene: Scene) -> int:
    """How many ranks the arrows of a figure pass altogether: what the engine's effort grows with."""
    rank = ranks(len(scene.nodes), ((edge.source, edge.target) for edge in scene.edges), late=True)
    return sum(max(abs(rank[edge.target] - rank[edge.source]) - 1, 0) for edge in scene.edges)


def lay_out(scene: Scene, layout: str = "auto", *, channel: bool = False) -> tuple[Scene, Placement]:
    """The scene as its layout draws it, and where everything stands, as far as the engine does not decide."""
    chosen = choose(scene, layout, channel=channel)
    if chosen is Layout.RANK and len(scene.nodes) <= NODE_LIMIT:
        return arrange(scene)
    return scene, BOUNDS if chosen is Layout.BOUNDED else FREE
