"""The pages that are made from tables: complete, and as they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlens.base.codes import CODES
from torchlens.runner import reference
from torchlens.settings import catalog
from torchlens.settings.options import options

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_option_choice_and_code_has_a_row() -> None:
    glossary, codes = reference.glossary(), reference.codes()
    for name, option in options().items():
        (row,) = [
            line for line in glossary.splitlines() if line.startswith(f"| `{name}` |") and option.doc[:20] in line
        ]
        assert row.count(" | ") == 3
    for group in catalog.GROUPS:
        section = glossary.split(f"## `{group}=`")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")] == catalog.names(group)
    for row in CODES.values():
        assert f"| `{row.name}` |" in codes


def test_a_table_stays_a_table() -> None:
    assert reference._row("a|b", "<c>") == "| a\\|b | &lt;c> |"


@pytest.mark.parametrize("name", [reference.GLOSSARY, reference.CODE_LIST])
def test_the_kept_pages_are_what_make_docs_writes(name: str, tmp_path: Path) -> None:
    assert reference.main([str(tmp_path)]) == 0
    assert (DOCS / name).read_text() == (tmp_path / name).read_text(), "run `make docs`"
