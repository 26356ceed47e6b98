"""The typed keywords, the option table and the documentation name the same options."""

from __future__ import annotations

from typing import get_type_hints

from torchlens.settings.deferred import Band
from torchlens.settings.keywords import Addressed, DrawKeywords
from torchlens.settings.options import DrawOptions, options
from torchlens.trace_view import Trace


def test_keywords_are_the_options_with_view_and_theme():
    keywords, declared = get_type_hints(DrawKeywords), get_type_hints(DrawOptions)
    assert list(keywords) == ["view", "theme", *declared]
    assert keywords.pop("module") == str | Addressed | None
    # Only a view may ask for a number of nodes.
    assert keywords.pop("collapse") | Band == declared["collapse"]
    assert {name: keywords[name] for name in declared if name in keywords} == {
        name: hint for name, hint in declared.items() if name in keywords
    }


def test_the_documentation_of_draw_names_every_option():
    text = Trace.draw.__doc__ or ""
    for name in ("view", "theme", *options()):
        assert f"{name}: " in text
    lines = [line.strip().partition(": ")[0] for line in text.splitlines() if ": " in line]
    assert set(lines) >= {"view", "theme", *options()}
