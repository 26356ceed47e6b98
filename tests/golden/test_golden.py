"""Finished figures are as they were. A wanted change: `make golden`, then look at the diff and at the pictures."""

from __future__ import annotations

import pytest

from tests.golden.figures import FIGURES, FOLDER, draw


@pytest.mark.parametrize("name", FIGURES)
def test_the_figure_is_as_it_was(name: str) -> None:
    document, facts = draw(name)
    assert facts == (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert document == (FOLDER / f"{name}.dot").read_text(encoding="utf-8")


def test_there_is_no_golden_file_without_a_figure() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(FIGURES)
