"""The commands of the pages run as they are written, in order, in a folder with the files that the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from torchlens.runner.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("configuration", "sweeps", "figures-in-ci")
# Not run here but settled: every name, key and value is checked. tests/cli runs the launchers.
SETTLED = ("hydra/launcher=", "--config-name")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for block in _blocks(text, "yaml"):
        path = Path(re.match(r"# (\S+)\n", block)[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, encoding="utf-8")
    lines = [line for block in _blocks(text, "console") for line in block.splitlines()]
    assert len(lines) >= 3
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "torchlens"
        settled = any(word.startswith(SETTLED) for word in words)
        code = main([*words, *(["explain=true"] if settled else [])])
        printed = capsys.readouterr()
        assert code == 0, f"{line}\n{printed.err}"
        assert printed.out or "none drifted" in printed.err
        assert (
            settled
            or "check=true" in words
            or all(Path(path).is_file() for path in printed.out.splitlines())
            or "explain=true" in words
        )


@pytest.mark.models
def test_the_commands_of_the_readme_run(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines = [line for block in _blocks(text, "console") for line in block.splitlines() if line.startswith("torchlens")]
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line)[1:]
        # One folder each: the default is named after the second it starts in.
        folder = [] if "--help" in words or any(word.startswith("out=") for word in words) else [f"out=o{len(line)}"]
        assert main([*words, *folder]) == 0, f"{line}\n{capsys.readouterr().err}"
        printed = capsys.readouterr().out
        settled = {"--help", "explain=true"} & set(words)
        assert printed
        assert settled or all(Path(path).stat().st_size > 500 for path in printed.splitlines())


def test_the_pages_name_no_exit_code_or_key_that_is_not_there() -> None:
    from torchlens.runner import main as runner
    from torchlens.settings import catalog

    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)}
    assert codes == {runner.OK, runner.FAILED, runner.REFUSED, runner.INTERRUPTED}
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)/` \|", text, flags=re.MULTILINE)
    assert dict(rows) == catalog.GROUPS


def test_no_page_has_commands_that_no_test_runs() -> None:
    from torchlens.runner.pages import figure_set

    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if _blocks(text, "console"):
            # Commands of a page of figures: test_pages.py.
            assert path.stem in PAGES or figure_set(text), f"add {path.stem!r} to PAGES"
