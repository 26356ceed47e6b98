"""Numbers of call sites: what is one place of the source, and which place stands before which."""

from __future__ import annotations

import sys

from torchlens.analysis.sites import SiteTable, canonical_instructions

seen: list[tuple[object, ...]] = []


def note(value=True):
    """Keep the call site of the caller, up to the test itself, innermost frame first."""
    site, frame = [], sys._getframe(1)
    while frame.f_code.co_name.startswith("body"):
        site += (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    seen.append(tuple(site))
    return value


def numbers(body, *args, longest=0):
    seen.clear()
    body(*args)
    table = SiteTable()
    return table, [table.number(site, longest) for site in seen]


def body_loop():
    for _ in range(3):
        note()
        note()


def test_a_place_has_one_number_however_often_it_runs():
    table, found = numbers(body_loop)
    assert found == [found[0], found[1]] * 3
    assert found[0] != found[1]
    assert table.order(found[0], found[1]) == -1
    assert table.order(found[1], found[0]) == 1
    assert table.order(found[0], found[0]) == 0


def test_sites_that_are_equal_but_not_one_object_have_one_number():
    numbers(body_loop)
    table = SiteTable()
    copies = [(*site[:2], *site[2:]) for site in seen]
    assert [table.number(site) for site in copies] == [table.number(site) for site in seen]


def body_while(state):
    while note() and state["left"] > 0:
        state["left"] -= 1


def test_the_test_of_a_while_is_one_place():
    _, found = numbers(body_while, {"left": 3})
    assert len(found) == 4
    assert len(set(found)) == 1


def body_finally():
    for fail in (False, True):
        try:
            try:
                if fail:
                    raise ValueError
            finally:
                note()
        except ValueError:
            pass


def test_what_stands_in_a_finally_is_one_place():
    _, found = numbers(body_finally)
    assert found[0] == found[1]


class Compared:
    """Notes where it is compared."""

    def __lt__(self, other):
        return note()

    __lt__.__code__ = __lt__.__code__.replace(co_name="body_lt")


def body_chain(a, b, c, d):
    turns = 0
    while a < b < c < d and turns < 2:
        turns += 1


def test_the_parts_of_a_chained_comparison_are_places_of_their_own():
    _, found = numbers(body_chain, *(Compared() for _ in range(4)))
    assert len(found) == 9
    assert found == found[:3] * 3
    assert len(set(found)) == 3


def body_same_line():
    return note(note(note()))


def test_calls_of_one_line_are_places_of_their_own():
    _, found = numbers(body_same_line)
    assert len(set(found)) == 3


def body_recursive(depth):
    if depth:
        note()
        body_recursive(depth - 1)


def body_around(depth):
    body_recursive(depth)


def test_a_recursion_is_one_place_also_where_the_recorder_cut_it():
    _, found = numbers(body_around, 6)
    assert len(set(found)) == 1
    cut = [site[:8] for site in seen]
    for order in (cut, cut[::-1]):
        table = SiteTable()
        assert len({table.number(site, 8) for site in order}) == 1


def body_helper():
    note()


def body_two_lines():
    body_helper()
    body_helper()


def test_a_helper_has_a_place_and_a_scope_per_line_that_calls_it():
    table, (first, second) = numbers(body_two_lines)
    assert first != second
    assert table.deep == {first, second}
    assert table.order(first, second) == -1
    (home,), (other,) = table.scopes[first], table.scopes[second]
    assert home != other
    assert table.scope_of[home][1] == table.scope_of[other][1]
    assert table.moved(second, other, home) == first


def test_places_of_different_functions_have_no_order():
    numbers(body_loop)
    loop = seen[0]
    numbers(body_same_line)
    table = SiteTable()
    assert table.order(table.number(loop), table.number(seen[0])) == 0


def test_without_columns_every_instruction_stands_for_itself():
    bare = body_while.__code__.replace(co_linetable=b"")
    table = canonical_instructions(bare)
    firsts = [2 * unit for unit, offset in enumerate(table) if offset == 2 * unit]
    assert set(table) == set(firsts)
    assert len(set(table)) > len(set(canonical_instructions(body_while.__code__)))
