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


def test_the_pages_name_no_exit_code_or_key_that_is_not_there() -> None:
    from torchlens.runner import main as runner
    from torchlens.settings import catalog

    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)}
    assert codes == {runner.OK, runner.FAILED, runner.REFUSED, runner.INTERRUPTED}
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)/` \|", text, flags=re.MULTILINE)
    assert dict(rows) == catalog.GROUPS
