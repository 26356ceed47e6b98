"""Pages of the documentation kept in step with a set of figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlens.runner.main import main as run
from torchlens.runner.pages import main, read_set, undrawn
from torchlens.settings.options import options

PAGE = """# Title

<!-- setup: one -->
<!-- end -->

Words of mine.

<!-- figure: main -->
old
<!-- end -->

<!-- source: torchlens.examples.mlp.Mlp.forward -->
<!-- end -->

<!-- options: one -->
<!-- end -->
"""


def test_blocks_are_made_anew_and_words_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figures=one", "output=docs"]) == 0
    page = Path("docs/page.md")
    page.write_text(PAGE, encoding="utf-8")
    assert main([str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n<!-- setup: one -->\n```python\n")
    assert "<!-- end -->\n\nWords of mine.\n\n<!-- figure: main -->\n<a" in text
    assert "\nold\n" not in text
    assert '<a href="images/one/main.svg"><img src="images/one/main.svg" alt="demo: main" width="' in text
    assert 'trace.draw("main.svg")' in text
    assert "torchlens\n```" in text
    assert "def forward(self, x: Tensor) -> Tensor:\n    return" in text
    assert "| `rolled` |" in text
    again = text
    assert main([str(page)]) == 0
    assert page.read_text(encoding="utf-8") == again


def test_a_page_that_names_no_set_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n", encoding="utf-8")
    assert main([str(page)]) == 2
    assert "setup: NAME" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "nothing\n"


def test_options_of_a_view_count_as_drawn() -> None:
    figures = read_set("one", ["view=speed", "draw.depth=1"]).figures
    assert set(options()) - set(undrawn(figures)) >= {"depth", "color_by", "node_style", "show_legend"}
    assert "rolled" in undrawn(figures)
