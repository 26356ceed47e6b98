"""Segments of blocks and of ops, and outputs that are drawn as one."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.runs import Kinship
from torchlens.plan.collapse.segments import block_segments, bundles, like_segments, op_rows, op_segments
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData


def _boxed(units: Units) -> Board:
    board = Board(units)
    for candidate in units.outermost():
        board.box(candidate.calls)
    return board


def _names(units: Units, calls: tuple[int, ...]) -> list[str]:
    return [units.data.modules[units.data.calls[c].module].address for c in calls]


def test_the_longest_row_within_three_quarters_becomes_a_segment(units: Callable[..., Units]) -> None:
    found = units(builders.residual(8))
    (segment,) = block_segments(_boxed(found), Kinship(found))
    assert _names(found, segment.calls) == [f"blocks.{k}" for k in range(6)]
    assert segment.kind == "segment"


def test_a_further_row_of_one_parent_needs_three_members(units: Callable[..., Units]) -> None:
    found = units(builders.residual(16))
    first, second = block_segments(_boxed(found), Kinship(found))
    assert _names(found, first.calls) == [f"blocks.{k}" for k in range(12)]
    assert _names(found, second.calls) == [f"blocks.{k}" for k in range(12, 16)]


def test_evening_joins_three_alike_and_not_two(units: Callable[..., Units]) -> None:
    for count, expected in ((2, 0), (3, 1)):
        found = units(builders.residual(count))
        board = Board(found)
        for k in range(count):
            board.box(found.data.modules[found.data.module_of[f"blocks.{k}"]].calls)
        assert len(like_segments(board, Kinship(found))) == expected


def _labels(units: Units) -> list[list[str]]:
    return [[units.data.nodes.label[i] for i in segment.nodes] for segment in op_segments(Board(units))]


def test_a_chain_takes_what_feeds_it_alone_and_ends_at_a_fork(units: Callable[..., Units]) -> None:
    b = Builder()
    h = b.op("relu", [b.input()])
    h = b.op("cat", {(0, 0): b.op("zeros", []), (0, 1): h})
    fork = b.op("tanh", [h])
    left = b.op("neg", [fork])
    join = b.op("add", [left, fork])
    b.output(b.op("sin", [b.op("exp", [join])]))
    assert _labels(units(b.build())) == [["relu_1_1", "zeros_1_2", "cat_1_3", "tanh_1_4"]]


def test_a_chain_is_broken_by_a_branch_test_and_by_a_visible_buffer(units: Callable[..., Units]) -> None:
    b = Builder()
    h = b.op("neg", [b.op("relu", [b.input()])])
    total = b.op("sum", [h], ())
    b.test(b.op("gt", [total], (), dtype="bool"))
    h = b.op("mul", [b.op("relu", [h]), b.read("gain")])
    b.output(b.op("neg", [h]))
    assert _labels(units(b.build())) == []


def test_a_chain_counts_the_unseen_buffers_of_its_modules(units: Callable[..., Units]) -> None:
    b = Builder()
    h = b.batch_norm("norm", b.op("relu", [b.input()]), 8)
    b.output(b.op("neg", [h]))
    data = b.build()
    (segment,) = op_segments(Board(units(data)))
    kinds = [data.nodes.kind[i] for i in segment.nodes]
    assert (kinds.count("op"), kinds.count("buffer")) == (3, 2)


def _rows(units: Units) -> list[list[str]]:
    return [[units.data.nodes.label[i] for i in segment.nodes] for segment in op_rows(Board(units))]


def test_a_row_may_be_fed_and_read_from_outside(units: Callable[..., Units]) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    fork = b.op("tanh", [b.op("add", [x, y])])
    h = b.op("mul", [fork, y])
    b.output(h)
    b.output(b.op("sin", [b.op("add", [fork, x])]), "1")
    found = units(b.build())
    assert _rows(found) == [["add_1_1", "tanh_1_2", "mul_1_3"]]
    assert _labels(found) == []


def test_a_row_ends_where_a_constant_or_something_else_comes_between(units: Callable[..., Units]) -> None:
    b = Builder()
    x, y = b.input("x"), b.input("y")
    h = b.op("add", [b.op("mul", [b.op("add", [x, y]), y]), y])
    h = b.op("mul", [h, b.constant()])
    h = b.op("add", [b.op("sub", [b.op("mul", [h, y]), y]), x])
    with b.module("m") as opened:
        opened.returns = [b.op("exp", [b.op("relu", [h])])]
    b.output(b.op("mul", [opened.returns[0], y]))
    found = units(b.build())
    board = Board(found)
    board.box(found.data.modules[found.data.module_of["m"]].calls)
    rows = [[found.data.nodes.label[i] for i in segment.nodes] for segment in op_rows(board)]
    assert rows == [["add_1_1", "mul_1_2", "add_2_3"], ["mul_2_4", "mul_3_5", "sub_1_6", "add_3_7"]]


def test_a_chain_begins_with_what_was_made_for_it_alone(units: Callable[..., Units]) -> None:
    b = Builder()
    x, other, own = b.input(), b.op("zeros", []), b.op("ones", [])
    h = b.op("exp", [b.op("add", [own, x])])
    b.output(b.op("mul", [h, other]))
    assert _labels(units(b.build())) == [["ones_1_2", "add_1_3", "exp_1_4"]]


# -- outputs
def _cache(
    count: int = 3, *, key: str = "cache.keys", named: bool = True, shape: tuple[int, ...] = (2, 8)
) -> TraceData:
    b = Builder()
    with b.module("decoder") as decoder:
        h = b.input()
        made: list[Ref] = []
        for k in range(count):
            h = b.linear(f"decoder.fc{k}", h, 8)
            made.append(b.op("neg", [h], shape if k else (2, 8)))
        decoder.returns = [h, *made]
    b.output(b.linear("head", h, 8), "logits")
    for k, ref in enumerate(made):
        b.output(ref, f"{key}.{k}" if named else str(k))
    return b.build()


def test_three_outputs_alike_of_one_box_are_one_node(units: Callable[..., Units]) -> None:
    found = units(_cache())
    ((capsule, (call,)),) = bundles(found)
    assert (capsule.kind, capsule.name, len(capsule.nodes)) == ("outputs", "cache.keys", 3)
    board = Board(found, bundles(found))
    assert board.count == found.total
    board.box([call])
    assert board.count == found.total - 6 + 1 - 2


def test_two_outputs_unnamed_ones_and_other_shapes_stay_apart(units: Callable[..., Units]) -> None:
    for data in (_cache(2), _cache(named=False), _cache(shape=(2, 9))):
        assert bundles(units(data)) == []
    assert bundles(units(_cache(), rolled=True)) == []


def test_outputs_of_several_modules_stay_apart(units: Callable[..., Units]) -> None:
    b = Builder()
    h, made = b.input(), []
    for k in range(3):
        h = b.linear(f"fc{k}", h, 8)
        made.append(h)
    for k, ref in enumerate(made):
        b.output(ref, f"hidden.{k}")
    assert bundles(units(b.build())) == []
