"""Evening: what stands open beside boxes of its size becomes a box too, and a row of boxes that are alike one node.

It only ever folds further. Knows nothing of modes and steps.
"""

from __future__ import annotations

from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.runs import Kinship
from torchlens.plan.collapse.segments import like_segments
from torchlens.plan.collapse.units import Candidate


def even(board: Board, kinship: Kinship) -> None:
    """Box stray open modules beside boxes, and join rows of boxes that are alike, until nothing changes."""
    changed = True
    while changed:
        beside = _Neighbours(board)
        strays = [candidate for candidate in _open(board) if candidate.hides <= beside.smallest(candidate.module)]
        boxed = [board.box(candidate.calls) for candidate in strays if board.shrinks(candidate.calls)]
        rows = like_segments(board, kinship)
        for capsule in rows:
            board.join(capsule)
        changed = any(boxed) or bool(rows)


def _open(board: Board) -> list[Candidate]:
    found = [c for c in board.units.candidates.values() if not all(board.covered[call] for call in c.calls)]
    return sorted(found, key=lambda candidate: candidate.calls[0])


class _Neighbours:
    """The boxes beside a module: its siblings in the tree of modules, and what lies one level inside a sibling."""

    def __init__(self, board: Board) -> None:
        self._modules = board.units.data.modules
        sizes: dict[int, int] = {}
        for c in board.visible_boxes():
            module = board.units.data.calls[c].module
            sizes[module] = sizes.get(module, 0) + board.units.hides[c]
        # Per parent the least that a box in it hides.
        self._siblings: dict[int | None, int] = {}
        for module, hides in sizes.items():
            above = self._modules[module].parent
            self._siblings[above] = min(hides, self._siblings.get(above, hides))
        # Per grandparent the two parents with the smallest boxes, so that one may be left out.
        self._inside: dict[int | None, list[tuple[int, int]]] = {}
        for parent, hides in self._siblings.items():
            if parent is not None:
                rows = self._inside.setdefault(self._modules[parent].parent, [])
                rows[:] = sorted([*rows, (hides, parent)])[:2]

    def smallest(self, module: int) -> int:
        """Units that the smallest box beside a module hides, 0 if there is none."""
        above = self._modules[module].parent
        found = [hides for hides, sibling in self._inside.get(above, ()) if sibling != module]
        if above in self._siblings:
            found.append(self._siblings[above])
        return min(found, default=0)
