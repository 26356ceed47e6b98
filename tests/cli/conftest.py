"""Runs the command line in this process, from an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from torchlens.runner.main import main


class Result(NamedTuple):
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def call(*argv: str) -> Result:
        capsys.readouterr()
        code = main(argv)
        return Result(code, *capsys.readouterr())

    return call
