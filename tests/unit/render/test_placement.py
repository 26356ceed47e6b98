"""Positions as DOT attributes."""

from __future__ import annotations

import pytest

from torchlens.render.placement import FREE, Placement, Rect, Route, root_attributes


@pytest.fixture
def placed() -> Placement:
    return Placement(
        root_attributes(Rect(0, 0, 200, 100), (50, 90)),
        nodes=(Rect(10, 20, 82, 56),),
        borders=(8.0,),
        frames=(Rect(0, 0, 100, 60.25),),
        frame_labels=((20, 10),),
        routes=(Route(((1, 2), (1, 3), (1, 4), (1, 5)), (1, 12), (7, 8)), Route(((1, 2),), (3, 4))),
    )


def test_what_is_written(placed: Placement) -> None:
    assert placed.graph == 'layout=nop2 bb="0,0,200,100" lp="50,90"'
    assert placed.node(0) == ' pos="46,38" width=0.889 height=0.389'
    assert placed.frame(0) == 'bb="0,0,100,60.2" lp="20,10"'
    assert placed.edge(0) == ' pos="e,1,12 1,2 1,3 1,4 1,5" lp="7,8"'
    assert placed.edge(1) == ' pos="e,3,4 1,2"'


def test_without_positions_nothing_is_written() -> None:
    assert (FREE.graph, FREE.node(0), FREE.frame(0), FREE.edge(0)) == ("", "", "", "")


def test_rectangles() -> None:
    outer, inner, beside = Rect(0, 0, 10, 10), Rect(1, 1, 9, 9), Rect(10, 0, 20, 10)
    assert outer.holds(inner)
    assert not inner.holds(outer)
    assert inner.holds(outer, slack=1)
    assert outer.meets(inner)
    assert not outer.meets(beside)
