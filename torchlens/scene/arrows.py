"""The arrows with their labels: at an end where there is room for them, else in the middle.

An engine keeps room free for a label in the middle, never for one at an end. Knows nothing of fonts or escaping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from torchlens.base.text import listing, truncate
from torchlens.base.units import passes_text
from torchlens.plan.graph import Plan, PlanEdge, Position
from torchlens.scene.branches import arm_lines
from torchlens.scene.model import SceneEdge

# Labels at one end of a node that still have room, and characters of one that always and of one that never has.
CROWD, SHORT, LONG = 2, 4, 9
# Characters of a list of passes that is written out.
PASSES_WIDTH = 24
# Characters of an argument's name.
NAME_LIMIT = 40


def make_arrows(plan: Plan, direction: str) -> list[SceneEdge]:
    """All arrows in the order of the plan. direction: BT, TB, LR or RL."""
    edges = [_edge(edge, direction) for edge in plan.edges]
    heads = Counter(edge.target for edge in edges if edge.head)
    tails = Counter(edge.source for edge in edges if edge.tail)
    # Of the arguments of one node either all stand at its border or none.
    wide = {edge.target for edge in edges if any(len(line) > LONG for line in edge.head)}
    wide |= {
        planned.target for edge, planned in zip(edges, plan.edges, strict=True) if planned.position and not edge.head
    }
    wide |= _uneven(edges)
    ends = {(edge.source, edge.target) for edge in edges}
    for k, edge in enumerate(edges):
        # Of two arrows there and back, each stands in the way of the other's labels.
        central = bool((edge.head and edge.tail) or edge.arms) or (edge.target, edge.source) in ends
        named = any(len(line) > SHORT for line in edge.tail)
        if central or edge.target in wide or heads[edge.target] > CROWD:
            edge = edge._replace(middle=edge.head + edge.middle, head=())
        if central or (named and tails[edge.source] > CROWD):
            edge = edge._replace(middle=edge.middle + edge.tail, tail=())
        edges[k] = edge
    return edges


def _uneven(edges: Iterable[SceneEdge]) -> set[int]:
    """Nodes whose labelled arrows come from different ranks: which of them arrives on the left is not known."""
    forward = sorted((edge for edge in edges if edge.source < edge.target), key=lambda edge: edge.target)
    rank: dict[int, int] = {}
    for edge in forward:
        rank[edge.target] = max(rank.get(edge.target, 0), rank.get(edge.source, 0) + 1)
    # What nothing leads to stands close to its first reader.
    start: dict[int, int] = {}
    for edge in forward:
        if edge.source not in rank:
            start[edge.source] = min(start.get(edge.source, rank[edge.target]), rank[edge.target] - 1)
    rank |= start
    labelled: dict[int, set[int]] = {}
    for edge in forward:
        if edge.head:
            labelled.setdefault(edge.target, set()).add(rank[edge.source])
    return {node for node, ranks in labelled.items() if len(ranks) > 1}


def _edge(edge: PlanEdge, direction: str) -> SceneEdge:
    """An arrow with its labels: the argument at the head, the output at the tail, passes and the rest in the middle.

    Beside a slanting arrow into a wide node, or through a frame, passes at an end would stand on a line.
    """
    argument = [_argument_text(edge.position)] if edge.position is not None else []
    output = [f"[{edge.output}]"] if edge.output is not None else []
    into = [f"In {_passes(edge.in_passes)}"] if edge.in_passes else []
    out = [f"Out {_passes(edge.out_passes)}"] if edge.out_passes else []
    middle = out + into if direction == "TB" else into + out
    if argument and (edge.crowded or middle):
        middle, argument = argument + middle, []
    if edge.tensors > 1:
        middle.append(f"x{edge.fewest}-{edge.tensors}" if edge.fewest else f"x{edge.tensors}")
    return SceneEdge(
        edge.source,
        edge.target,
        tuple(middle),
        tuple(output),
        tuple(argument),
        edge.dashed,
        tuple(arm_lines(edge.arms)),
        edge.back,
    )


def _argument_text(position: Position) -> str:
    """`arg 0`, `arg (0, 1)` for an element of a list, `arg (0, 1-3)` for several, `kwarg weight`, `kwarg out[1]`."""
    first, *rest = position
    if isinstance(first, str):
        return f"kwarg {truncate(first + ''.join(f'[{part}]' for part in rest), NAME_LIMIT)}"
    return f"arg {first}" if not rest else f"arg ({truncate(', '.join(map(str, position)), NAME_LIMIT)})"


def _passes(passes: Iterable[int]) -> str:
    return listing(passes_text(passes).split(","), PASSES_WIDTH)
