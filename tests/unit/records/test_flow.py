"""Branches: known nodes at once, everything else when asked, once."""

from __future__ import annotations

import pytest

from tests import builders
from torchlens.records.flow import ArmEdge, Branches, BranchTest


def rows():
    return [BranchTest(2, "if", True, "net.py", 3), BranchTest(4, "bool", False, "", 0)]


def test_the_rows_given_are_the_rows_read():
    branches = Branches(rows(), [ArmEdge(0, 3, "THEN", 0, 0, 3)], reads=[5, 5, 1])
    assert list(branches) == rows()
    assert branches[-1].node == 4
    assert branches[:1] == rows()[:1]
    assert (len(branches), branches.nodes, branches.reads) == (2, (2, 4), (5, 1))
    assert [edge.arm for edge in branches.arms] == ["THEN"]


def test_nodes_are_known_without_reading_a_source():
    asked = []

    def work_out():
        asked.append(True)
        return rows(), []

    branches = Branches.deferred([2, 4], [7], work_out)
    assert (len(branches), branches.nodes, branches.steering, repr(branches)) == (
        2,
        (2, 4),
        {2, 4, 7},
        "Branches(2 tests)",
    )
    assert asked == []
    assert branches[0].construct == "if"
    assert branches.arms == []
    assert list(branches) == rows()
    assert asked == [True]


def test_without_tests_there_is_nothing():
    branches = Branches()
    assert (list(branches), branches.arms, branches.steering) == ([], [], set())
    with pytest.raises(IndexError):
        branches[0]


@pytest.mark.parametrize("how", ["nothing", "test", "read"])
def test_what_left_for_python_is_no_orphan(how):
    b = builders.Builder()
    x = b.input()
    coin = b.op("rand", [], ())
    b.output(b.op("relu", [x]))
    data = b.build()
    tests = [BranchTest(coin.node, "if", True, "net.py", 3)] if how == "test" else []
    data.branches = Branches(tests, reads=[coin.node] if how == "read" else [])
    assert data.orphan[coin.node] is (how == "nothing")
