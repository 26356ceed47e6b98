"""Where each line goes, and how paths are shown."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from torchlens.runner.progress import Reporter, shown


def test_paths_go_to_stdout_and_the_rest_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Reporter(2) as reporter:
        reporter.step("recording demo")
        reporter.wrote(tmp_path / "a" / "b.svg")
        reporter.note("two\nlines")
        reporter.step("drawing")
    out, err = capsys.readouterr()
    assert out == "a/b.svg\n"
    assert err == "[1/2] recording demo\ntwo lines\n[2/2] drawing\n"


def test_paths_elsewhere_are_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown(tmp_path / "b.svg") == str((tmp_path / "b.svg").resolve())


def _threads_become(count: int) -> bool:
    """Whether so many threads are left once those that were told to stop have done so."""
    for _ in range(500):
        if threading.active_count() == count:
            return True
        time.sleep(0.01)
    return False


def test_a_terminal_gets_a_live_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    before = threading.active_count()
    with Reporter(2) as reporter:
        reporter.step("recording [demo]", timed=True)
        # No thread may take turns with what is being timed.
        assert _threads_become(before)
        reporter.step("drawing")
        assert _threads_become(before + 1)
        reporter.wrote(tmp_path / "b.svg")
    out, err = capsys.readouterr()
    assert out == f"{shown(tmp_path / 'b.svg')}\n"
    assert "[1/2] recording [demo]" in err
