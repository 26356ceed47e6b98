"""Pages of the documentation kept in step with a set of figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchlens.base.errors import ConfigError
from torchlens.runner.main import main as run
from torchlens.runner.pages import main, read_set, renewed, shown, undrawn
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


def test_a_page_without_a_set_is_left_alone_and_the_sets_of_others_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, page = tmp_path / "plain.md", tmp_path / "page.md"
    plain.write_text("<!-- figure: main -->\nnothing\n<!-- end -->\n", encoding="utf-8")
    page.write_text(PAGE, encoding="utf-8")
    assert main([str(plain)]) == 0
    assert plain.read_text(encoding="utf-8") == "<!-- figure: main -->\nnothing\n<!-- end -->\n"
    assert main(["--sets", str(plain), str(page)]) == 0
    assert capsys.readouterr().out == "one\n"
    assert page.read_text(encoding="utf-8") == PAGE


def test_figures_side_by_side_say_what_tells_them_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figures=tour", "output=docs"]) == 0
    page = Path("docs/page.md")
    text = "<!-- setup: tour -->\n<!-- end -->\n<!-- figures: unrolled rolled plain depth -->\n<!-- end -->\n"
    found = renewed(text, read_set("tour"), page)
    table = found[found.index("<table>") : found.index("</table>")]
    assert [row.count("<td") for row in table.split("<tr>")[1:]] == [2, 2]
    assert re.findall(r"<code>(.*?)</code>", table) == ["rnn", "rnn: rolled=True", "demo", "demo: depth=1"]
    assert found.count("trace.draw(") == found.count("\ntorchlens") == 4
    assert found.count("tl.trace(") == 2
    (same,) = re.findall(r"<code>(.*?)</code>", renewed(text.replace("unrolled rolled", ""), read_set("tour"), page))[
        :1
    ]
    assert same == "no options"
    assert shown(text) == [("unrolled", "rolled", "plain", "depth")]


def test_a_figure_that_the_set_has_not_is_refused(tmp_path: Path) -> None:
    text = "<!-- setup: one -->\n<!-- end -->\n<!-- figure: other -->\n<!-- end -->\n"
    with pytest.raises(ConfigError, match="'other', which is no figure of the set 'one'"):
        renewed(text, read_set("one"), tmp_path / "page.md")


def test_options_of_a_view_count_as_drawn() -> None:
    figures = read_set("one", ["view=speed", "draw.depth=1"]).figures
    assert set(options()) - set(undrawn(figures)) >= {"depth", "color_by", "node_style", "show_legend"}
    assert "rolled" in undrawn(figures)
