"""The board: how many nodes are drawn while boxes and capsules are made, against the plan that comes of it."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.cut import Capsule
from torchlens.plan.collapse.units import Units
from torchlens.plan.graph import FOLD, SEGMENT
from torchlens.records.trace_data import TraceData


def _calls(units: Units, name: str) -> tuple[int, ...]:
    return units.data.modules[units.data.module_of[name]].calls


def test_a_box_takes_the_place_of_what_it_hides(units: Callable[..., Units]) -> None:
    found = units(builders.residual(4))
    board = Board(found)
    assert board.count == found.total == 24
    assert board.box(_calls(found, "blocks.0"))
    assert board.count == 21
    assert not board.box(_calls(found, "blocks.0"))
    assert not board.box(_calls(found, "blocks.0.mlp")), "it lies in a box"
    assert board.box(_calls(found, "blocks.1.mlp"))
    assert board.count == 19
    assert board.box(_calls(found, "blocks.1"))
    assert board.count == 18, "an inner box goes away"
    assert [found.data.modules[m].address for m in board.modules] == ["blocks.0", "blocks.1.mlp", "blocks.1"]


def test_a_whole_box_holds_its_own_op_too(units: Callable[..., Units]) -> None:
    found = units(builders.residual(2))
    board = Board(found)
    board.box(_calls(found, "blocks.0"), whole=True)
    assert board.count == found.total - 4
    assert board.cut().whole == {_calls(found, "blocks.0")[0]}
    board.box(_calls(found, "blocks.1"))
    assert board.cut().whole == {_calls(found, "blocks.0")[0]}


def test_a_capsule_takes_boxes_with_the_ops_beside_them(units: Callable[..., Units]) -> None:
    found = units(builders.residual(4))
    board = Board(found)
    calls = tuple(c for k in range(4) for c in _calls(found, f"blocks.{k}"))
    board.box(calls)
    assert board.count == 12
    number = board.join(Capsule(SEGMENT, calls[:3]))
    assert board.count == 7
    cut = board.cut()
    inside = {i for i in found.data.op_indexes if cut.capsule_of(i, found.data.nodes.call[i]) == number}
    assert len(inside) == 15
    assert [board.is_box(c) for c in calls] == [False, False, False, True]
    assert board.visible_boxes() == list(calls)


def test_a_box_around_a_capsule_makes_it_go_away(units: Callable[..., Units]) -> None:
    found = units(builders.demo())
    board = Board(found)
    blocks = tuple(c for k in range(2) for c in _calls(found, f"features.{k}"))
    board.box(blocks)
    board.join(Capsule(FOLD, blocks[1:], (), blocks[:1]))
    assert not board.is_free(blocks[0])
    assert board.is_box(blocks[0])
    before = board.count
    board.box(_calls(found, "features"))
    assert board.count == before - 2, "the first block, its op and the fold are one box now"
    assert board.cut().capsules == ()


def test_the_cut_of_an_open_drawing_is_empty(units: Callable[..., Units]) -> None:
    cut = Board(units(builders.residual(2))).cut()
    assert set(cut.boxed) == {None}
    assert (cut.whole, cut.capsules, cut.nodes_in, cut.calls_in) == (frozenset(), (), {}, {})


def _shared() -> TraceData:
    """A module in a part of the model and once more after it."""
    b = Builder()

    def cell(h: Ref) -> Ref:
        with b.module("part.cell") as opened:
            h = b.op("relu", [b.linear("part.cell.fc", h, 8, layer="fc")], layer="relu")
            opened.returns = [b.op("neg", [h], layer="neg")]
        return opened.returns[0]

    with b.module("part") as part:
        part.returns = [cell(b.input())]
    b.output(cell(part.returns[0]))
    return b.build()


def test_rolled_a_box_of_what_runs_elsewhere_too_makes_no_drawing_smaller(units: Callable[..., Units]) -> None:
    found = units(_shared(), rolled=True)
    board = Board(found)
    part, cell = (_calls(found, name) for name in ("part", "part.cell"))
    assert not board.shrinks(part)
    assert board.shrinks(cell)
    before = board.count
    board.box(part)
    assert board.count == before + 1
    assert Board(units(_shared())).shrinks(part)


def test_rolled_a_box_of_depth_and_one_of_a_step_are_one_node(units: Callable[..., Units]) -> None:
    found = units(_shared(), rolled=True, depth=2)
    board = Board(found)
    assert board.count == found.total == 6, "the inner call is a box, the three ops of the other one are open"
    assert board.box(_calls(found, "part.cell"))
    assert board.count == 3
