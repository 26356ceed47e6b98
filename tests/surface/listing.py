"""The surface as text, one line per name, member, option and code; `python -m tests.surface.listing` rewrites it."""

from __future__ import annotations

from pathlib import Path

import torchlens
from torchlens.base.codes import CODES
from torchlens.settings.options import options

FILE = Path(__file__).with_name("listing.txt")

# Nothing else may change in a release without a word in CHANGELOG.md. What is experimental may.
EXPERIMENTAL_OPTIONS = {"view", "color_by", "color_scale", "caption", "graph_attrs", "pdf_font"}
CLASSES = ("Trace", "Drawing")


def lines() -> list[str]:
    """The whole surface, sorted within each kind."""
    found = [f"name {name}" for name in sorted(torchlens.__all__)]
    for cls in CLASSES:
        found += [f"member {cls}.{name}" for name in sorted(dir(getattr(torchlens, cls))) if not name.startswith("_")]
    for name, option in sorted(options().items()):
        status = "experimental" if name in EXPERIMENTAL_OPTIONS else "stable"
        found.append(f"option {name} = {option.default!r} ({' | '.join(option.allowed)}) {status}")
    found += [f"code {row.name} {row.kind} since {row.since}" for row in sorted(CODES.values(), key=lambda r: r.name)]
    return found


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
