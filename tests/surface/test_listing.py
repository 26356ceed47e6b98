"""The public surface is what `listing.txt` says, so that a change of it is seen in a diff."""

from __future__ import annotations

import difflib

from tests.surface.listing import EXPERIMENTAL_OPTIONS, FILE, lines
from torchlens.base.codes import CODES
from torchlens.settings.options import options


def test_the_surface_is_the_listed_one():
    listed = FILE.read_text(encoding="utf-8").splitlines()
    diff = list(difflib.unified_diff(listed, lines(), "listing.txt", "now", lineterm="", n=0))
    assert not diff, "\n".join([*diff, "If this is meant: python -m tests.surface.listing, and a line in CHANGELOG.md"])


def test_every_name_resolves():
    import torchlens

    assert dir(torchlens) == sorted(torchlens.__all__)
    for name in torchlens.__all__:
        assert getattr(torchlens, name) is not None


def test_experimental_options_exist():
    assert EXPERIMENTAL_OPTIONS - {"view", "theme"} <= set(options())


def test_codes_read_subject_problem():
    for code in CODES:
        assert all(part.isalnum() for part in code.split("_")), code
