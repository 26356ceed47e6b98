"""Rows of siblings: what links neighbours, which calls are alike, and what breaks a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.builders import Builder, Ref
from torchlens.plan.collapse.runs import CHAIN, FAN, Kinship
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData


def _block(b: Builder, place: str, x: Ref, **facts: object) -> Ref:
    with b.module(place, str(facts.pop("kind", "Block"))) as block:
        h = b.linear(f"{place}.fc", x, int(facts.pop("size", 8)), trainable=facts.pop("trainable", True))  # type: ignore[call-overload]
        block.returns = [b.op("softmax", [h], config=(("dim", facts.pop("dim", 1)),))]
    return block.returns[0]


def _row(*, between: bool = False, skip: bool = False, count: int = 4, **odd: object) -> TraceData:
    """Blocks in a row; between: an op of the parent before the third; odd: what is different in the third."""
    b = Builder()
    x = h = b.input()
    for k in range(count):
        if k == 2 and between:
            h = b.op("neg", [h])
        h = _block(b, f"blocks.{k}", x if skip and k == 2 else h, **(odd if k == 2 else {}))
    b.output(h)
    return b.build()


def _named(units: Units, *, alike: bool = True, links: Sequence[str] = (CHAIN,), **more: bool) -> list[list[str]]:
    data = units.data
    legal = {c for c, call in enumerate(data.calls) if data.modules[call.module].class_name != "Linear" and c}
    runs = Kinship(units).runs(legal.__contains__, alike=alike, links=links, **more)
    return [[data.modules[m].address for m in run.modules] for run in runs]


def test_blocks_that_feed_each_other_are_a_row(units: Callable[..., Units]) -> None:
    assert _named(units(_row())) == [["blocks.0", "blocks.1", "blocks.2", "blocks.3"]]


@pytest.mark.parametrize(
    "odd", [{"kind": "Other"}, {"dim": 0}, {"trainable": False}], ids=["class", "argument", "frozen"]
)
def test_what_differs_is_not_alike(units: Callable[..., Units], odd: dict[str, Any]) -> None:
    data = _row(**odd)
    assert _named(units(data)) == [["blocks.0", "blocks.1"]]
    assert _named(units(data), alike=False) == [["blocks.0", "blocks.1", "blocks.2", "blocks.3"]]


def test_work_of_the_parent_in_between_breaks_a_row(units: Callable[..., Units]) -> None:
    assert _named(units(_row(between=True))) == [["blocks.0", "blocks.1"], ["blocks.2", "blocks.3"]]


def test_a_neighbour_that_reads_elsewhere_breaks_a_row(units: Callable[..., Units]) -> None:
    assert _named(units(_row(skip=True))) == [["blocks.0", "blocks.1"], ["blocks.2", "blocks.3"]]


def test_kinds_that_alternate_are_no_row_of_one_kind(units: Callable[..., Units]) -> None:
    b = Builder()
    h = b.input()
    for k in range(3):
        h = _block(b, f"blocks.{k}", h)
        h = _block(b, f"norms.{k}", h, kind="Norm")
    b.output(h)
    assert _named(units(b.build())) == []


def test_blocks_side_by_side_are_a_fan(units: Callable[..., Units]) -> None:
    b = Builder()
    x = b.input()
    arms = [_block(b, f"experts.{k}", x) for k in range(3)]
    b.output(b.op("stack", {(0, k): arm for k, arm in enumerate(arms)}))
    found = units(b.build())
    assert _named(found) == []
    assert _named(found, links=(CHAIN, FAN)) == [["experts.0", "experts.1", "experts.2"]]


def _loop(rounds: int = 3) -> TraceData:
    b = Builder()
    h = b.input()
    for _ in range(rounds):
        for k in range(3):
            with b.module(f"blocks.{k}") as block:
                relu = b.op("relu", [b.linear(f"blocks.{k}.fc", h, 8, layer=f"fc{k}")], layer=f"relu{k}")
                block.returns = [relu]
            h = block.returns[0]
    b.output(h)
    return b.build()


def test_a_row_ends_where_a_module_comes_again(units: Callable[..., Units]) -> None:
    found = units(_loop())
    (run,) = Kinship(found).runs(lambda c: found.inside[c] == 2, alike=True)
    assert [len(row) for row in run.rows] == [3, 3, 3]
    (whole,) = Kinship(found).runs(lambda c: found.inside[c] == 2, alike=True, repeats=True)
    assert [len(row) for row in whole.rows] == [9]


def test_rolled_a_row_is_one_for_all_rounds(units: Callable[..., Units]) -> None:
    found = units(_loop(), rolled=True)
    (run,) = Kinship(found).runs(lambda c: c > 0 and len(found.below[c]) == 1, alike=True, repeats=True)
    assert [found.data.modules[m].address for m in run.modules] == ["blocks.0", "blocks.1", "blocks.2"]
    assert len(run.rows) == 3


def test_rolled_a_row_that_is_not_everywhere_is_none(units: Callable[..., Units]) -> None:
    b = Builder()
    h = b.input()
    for k in (0, 1, 2, 1):
        h = _block(b, f"blocks.{k}", h)
    b.output(h)
    found = units(b.build(), rolled=True)
    assert Kinship(found).runs(lambda c: c > 0 and len(found.below[c]) == 1, alike=True) == []
