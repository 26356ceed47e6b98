"""Units: what each module would hide, and which modules may be boxes."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder, Ref
from torchlens.plan.collapse.units import Units
from torchlens.records.trace_data import TraceData


def _named(units: Units) -> dict[str, int]:
    return {units.data.modules[m].address: c.hides for m, c in units.candidates.items()}


def test_a_block_hides_all_but_its_own_op(units: Callable[..., Units]) -> None:
    found = units(builders.residual(3))
    assert found.total == 3 * 5 + 4
    assert _named(found) == {f"blocks.{k}{tail}": n for k in range(3) for tail, n in (("", 4), (".mlp", 3))}
    assert [found.data.modules[c.module].address for c in found.outermost()] == ["blocks.0", "blocks.1", "blocks.2"]


def _wrapped(*, own: bool = False) -> TraceData:
    b = Builder()
    with b.module("outer") as outer:
        with b.module("outer.inner") as inner:
            inner.returns = [b.op("exp", [b.op("relu", [b.linear("outer.inner.fc", b.input(), 8)])])]
        outer.returns = [b.op("neg", inner.returns)] if own else inner.returns
    b.output(outer.returns[0])
    return b.build()


def test_a_pure_wrapper_is_no_candidate_and_one_with_an_op_is(units: Callable[..., Units]) -> None:
    assert _named(units(_wrapped())) == {"outer.inner": 3}
    assert _named(units(_wrapped(own=True))) == {"outer.inner": 3, "outer": 3}


def test_a_module_of_most_of_the_drawing_is_dominant(units: Callable[..., Units]) -> None:
    found = units(_wrapped())
    (candidate,) = found.candidates
    assert found.total == 5
    assert found.is_dominant(candidate)
    assert found.outermost() == []


def test_an_op_that_its_module_goes_on_with_is_not_kept_beside_the_box(units: Callable[..., Units]) -> None:
    b = Builder()
    x = b.input()
    with b.module("tap") as tap:
        tap.returns = [b.op("add", [b.linear("tap.fc", x, 8), x])]
        probe = b.linear("tap.probe", tap.returns[0], 8)
    b.output(tap.returns[0])
    b.output(probe, "probe")
    found = units(b.build())
    assert found.base.works.op[1] == tap.returns[0].node
    assert found.kept[1] is None
    assert _named(found) == {"tap": 3}


def _shared(calls: int = 3) -> TraceData:
    b = Builder()
    h = b.input()
    for _ in range(calls):
        with b.module("cell") as cell:
            h = b.op("neg", [b.op("relu", [b.linear("cell.fc", h, 8, layer="fc")], layer="relu")], layer="neg")
            cell.returns = [h]
    b.output(h)
    return b.build()


def test_one_address_decides_for_all_calls_and_hides_their_sum(units: Callable[..., Units]) -> None:
    assert _named(units(_shared())) == {"cell": 9}
    rolled = units(_shared(), rolled=True)
    assert rolled.total == 5
    assert _named(rolled) == {"cell": 3}


def test_recursion_counts_the_outermost_call_only(units: Callable[..., Units]) -> None:
    b = Builder()

    def call(x: Ref, left: int) -> Ref:
        with b.module("f") as f:
            h = b.op("relu", [x])
            f.returns = [call(h, left - 1) if left else b.op("neg", [h])]
        return f.returns[0]

    b.output(call(b.input(), 3))
    found = units(b.build())
    assert found.total == 7
    assert found.candidates[1].hides == 5
    assert len(found.candidates[1].calls) == 4


def test_a_module_that_depth_has_boxed_is_one_unit_and_no_candidate(units: Callable[..., Units]) -> None:
    found = units(builders.residual(3), depth=2)
    assert found.total == 4 + 3 * 3
    assert _named(found) == {f"blocks.{k}": 2 for k in range(3)}


def test_work_between_two_calls_is_noticed_and_sources_are_none(
    units: Callable[..., Units], address: Callable[[TraceData, str], int]
) -> None:
    b = Builder()
    h = b.linear("a", b.input(), 8)
    c = b.constant()
    h = b.linear("b", h, 8)
    h = b.op("mul", [h, c])
    b.output(b.linear("c", h, 8))
    data = b.build()
    found = units(data)
    assert found.nothing_between(address(data, "a"), address(data, "b"))
    assert not found.nothing_between(address(data, "b"), address(data, "c"))
