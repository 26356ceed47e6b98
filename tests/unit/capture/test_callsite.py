"""Call sites: equal ones are one object, and a long recursion is cut."""

from __future__ import annotations

import sys

from torchlens.capture import callsite
from torchlens.capture.callsite import Sites


def test_equal_sites_are_one_object() -> None:
    sites = Sites()
    found = [sites.walk(sys._getframe(0)) for _ in range(2)]
    assert found[0] is found[1]
    assert sites.walk(sys._getframe(0)) is not found[0]


def test_a_site_starts_at_the_innermost_frame() -> None:
    site = Sites().walk(sys._getframe(0))
    assert site[0] is sys._getframe(0).f_code
    assert len(site) % 2 == 0


def test_a_long_recursion_is_cut() -> None:
    sites = Sites()

    def down(depth: int) -> tuple[object, ...]:
        return down(depth - 1) if depth else sites.walk(sys._getframe(0))

    assert len(down(500)) == callsite.LONGEST
