"""Contexts from sites alone: what varies in a loop, what goes in step, and which loops are maps."""

from __future__ import annotations

import types

from torchlens.analysis.loops import LoopTable, Row
from torchlens.analysis.sites import SiteTable


def code(name):
    return compile("\n" * 5 + "a = 1; b = 2; c = 3; d = 4; e = 5", name, "exec")


BODY, OTHER = code("body"), code("other")


class Rows:
    """Builds rows of events: `(instruction, ident)`, 0 for nothing used; a negative ident is a module's."""

    def __init__(self):
        self.table = SiteTable()
        self.loops = LoopTable(self.table)
        self.kept = []

    def contexts(self, *events, carried=False, free_modules=()):
        sites = [self.number(BODY, at) for at, _ in events]
        idents = [ident for _, ident in events]
        full = [ident > 0 or (ident < 0 and ident not in free_modules) for ident in idents]
        places, contexts = self.loops.analyse(Row(sites, idents, full), lambda *_: carried)
        assert places == sites
        return contexts

    def number(self, body: types.CodeType, at: int, *outer):
        self.kept.append((body, at, *outer))
        return self.table.number(self.kept[-1])


def same(contexts):
    """Which events share a context, as the index of the first one that has it."""
    return [contexts.index(context) for context in contexts]


def test_events_that_do_not_repeat_have_no_context():
    assert Rows().contexts((0, 1), (2, 0), (4, 0)) == [0, 0, 0]


def test_a_loop_over_one_thing_has_one_context():
    turn = [(0, 1), (2, 0), (4, 0)]
    assert Rows().contexts(*turn * 3) == [0] * 9


def test_what_stands_before_and_after_the_varying_site_belongs_to_its_turn():
    turns = [(0, 0), (2, 7), (4, 0), (0, 0), (2, 8), (4, 0), (0, 0), (2, 7), (4, 0)]
    found = Rows().contexts(*turns)
    assert found[0] == found[6] != found[3]
    assert found[2] == found[8] != found[5]


def test_sites_that_vary_in_step_count_once_and_others_each():
    in_step = [(0, 1), (2, 11), (4, 0), (0, 2), (2, 12), (4, 0), (0, 1), (2, 11), (4, 0)]
    found = Rows().contexts(*in_step)
    assert found[2] == found[8] != found[5]
    apart = [(0, 1), (2, 11), (4, 0), (0, 2), (2, 12), (4, 0), (0, 1), (2, 12), (4, 0)]
    found = Rows().contexts(*apart)
    assert len({found[2], found[5], found[8]}) == 3


def test_the_last_turn_may_end_before_the_varying_site():
    turns = [(0, 0), (2, 7), (0, 0), (2, 8), (0, 0)]
    found = Rows().contexts(*turns)
    assert len({found[0], found[2], found[4]}) == 3


def test_an_event_without_parameters_goes_with_the_last_that_had_some_at_its_site():
    found = Rows().contexts((0, -2), (0, -9), (0, -3), (0, -9), (0, -2), (0, -9), free_modules=(-9,))
    assert found[1] == found[5] != found[3]


def test_a_loop_without_parameters_needs_a_turn_that_feeds_a_later_one():
    turn = [(0, 0), (2, 0)]
    assert Rows().contexts(*turn * 3, carried=True) == [0] * 6
    found = Rows().contexts(*turn * 3, carried=False)
    assert same(found) == [0, 0, 2, 2, 4, 4]


def test_loops_apart_from_each_other_are_judged_apart():
    rows, asked = Rows(), []
    sites = [rows.number(BODY, at) for at in (0, 2, 0, 2, 4, 6, 4, 6)]
    rows.loops.analyse(
        Row(sites, [0] * 8, [False] * 8), lambda group, first, last: not asked.append((group, first, last))
    )
    assert asked == [({sites[0], sites[1]}, 0, 3), ({sites[4], sites[5]}, 4, 7)]


def test_contexts_of_two_calls_of_one_module_can_be_compared():
    rows = Rows()
    turns = [(0, 7), (2, 0), (0, 8), (2, 0)]
    assert rows.contexts(*turns) == rows.contexts(*turns)
    assert rows.contexts(*turns)[1] != rows.contexts(*[(0, 9), (2, 0), (0, 8), (2, 0)])[1]


def test_a_function_called_from_two_places_with_the_same_parameters_is_one_place():
    rows = Rows()
    first, second = (rows.number(OTHER, 0, BODY, at) for at in (0, 4))
    after = (rows.number(OTHER, 2, BODY, 0), rows.number(OTHER, 2, BODY, 4))
    row = Row([first, after[0], second, after[1]], [5, 0, 5, 0], [True, False, True, False])
    places, contexts = rows.loops.analyse(row, lambda *_: False)
    assert places == [first, after[0], first, after[0]]
    assert contexts == [0] * 4
    other = Row(row.sites, [5, 0, 6, 0], row.full)
    assert rows.loops.analyse(other, lambda *_: False)[0] == row.sites
    bare = Row(row.sites, [0] * 4, [False] * 4)
    assert rows.loops.analyse(bare, lambda *_: False)[0] == row.sites


def test_data_that_flows_against_the_source_takes_a_loop():
    rows = Rows()
    a, b, apart = rows.number(BODY, 0), rows.number(BODY, 4), rows.number(OTHER, 0)
    where = {a: 0, b: 1, apart: 2}
    assert rows.loops.feeds_back(b, a, where)
    assert rows.loops.feeds_back(a, a, where)
    assert not rows.loops.feeds_back(a, b, where)
    assert rows.loops.feeds_back(apart, a, where)
    assert not rows.loops.feeds_back(a, apart, where)
