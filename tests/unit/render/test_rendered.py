"""A finished figure without a trace behind it: laid out on demand, saved in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchlens.base.errors import InvalidArgumentError
from torchlens.render import rendered
from torchlens.render.placement import Rect
from torchlens.render.rendered import Rendered, Source
from torchlens.settings.options import DrawOptions


def _figure(document: str, **given: Any) -> Rendered:
    facts: dict[str, Any] = {
        "title": "t",
        "options": DrawOptions(),
        "pictures": {},
        "sheet": None,
        "smallest_text": 8.0,
    }
    return Rendered(Source(document, **facts | given), file_format="svg", path=None)


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    formats: list[str] = []
    make = rendered.make_artifact

    def counted(document: str, file_format: str, **options: Any) -> Any:
        formats.append(file_format)
        return make(document, file_format, **options)

    monkeypatch.setattr(rendered, "make_artifact", counted)
    return formats


def test_nothing_is_laid_out_before_it_is_needed_and_each_format_once(
    document: str, laid_out: list[str], tmp_path: Path
) -> None:
    figure = _figure(document)
    assert laid_out == []
    assert figure.data.startswith(b"<?xml")
    assert figure.page is not None
    assert figure.page.smallest_text == 8.0
    figure.save(tmp_path / "a.svg")
    assert laid_out == ["svg"]
    for name in ("a.png", "b.png"):
        figure.save(tmp_path / name)
    figure.save(tmp_path / "c.png", dpi=36)
    assert laid_out == ["svg", "png", "png"]


def test_the_source_is_saved_as_it_is(document: str, tmp_path: Path) -> None:
    figure = _figure(document)
    assert figure.save(tmp_path / "a", editable=True).read_text(encoding="utf-8") == document == figure.dot
    with pytest.raises(InvalidArgumentError, match="file_format_conflict"):
        figure.save(tmp_path / "a", editable=True, file_format="svg")


def test_a_page_beyond_all_memory_is_refused_before_it_is_painted(
    document: str, laid_out: list[str], tmp_path: Path
) -> None:
    figure = _figure(document, sheet=Rect(0, 0, 72_000, 72_000))
    with pytest.raises(InvalidArgumentError, match="graph_too_large"):
        figure.save(tmp_path / "a.png")
    assert laid_out == []
