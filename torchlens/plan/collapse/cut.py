"""A folded drawing, as the rest of planning is told it: which calls are boxes, and what is drawn as one in a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from torchlens.plan.rectangles import Works


class Capsule(NamedTuple):
    """Several nodes drawn as one.

    calls: boxes, by their calls, in order of execution; nodes: trace nodes beside them; head: of a fold, the calls of
    the member that stays; name: of outputs, what they have in common.
    """

    kind: str
    calls: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    head: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """A folded drawing, as the pipeline is told it.

    boxed: per call, the call drawn as one node that it lies in, else None; whole: calls whose box holds also the op
    of their own that else stays beside it; capsules; in_capsule: trace nodes and, by their call, boxes of a capsule.
    """

    boxed: list[int | None]
    whole: frozenset[int]
    capsules: tuple[Capsule, ...]
    nodes_in: Mapping[int, int]
    calls_in: Mapping[int, int]

    def fold_works(self, works: Works) -> Works:
        """The rectangles that are left: an op within a box is none."""
        gone = self.whole | self.calls_in.keys()
        return replace(works, op=[None if c in gone else op for c, op in enumerate(works.op)])

    def capsule_of(self, node: int, call: int) -> int | None:
        """The capsule that a trace node of a call is drawn in, None for none."""
        found = self.nodes_in.get(node)
        box = self.boxed[call]
        return found if found is not None or box is None else self.calls_in.get(box)
