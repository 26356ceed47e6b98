"""Kept figures are the same bytes wherever, whenever and by whomever they are drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torchlens

ROOT = Path(torchlens.__file__).parents[1]
WORDS = ("output=docs", "figures=tour", "formats=[svg,png]", "~figures.speed", "~figures.dark")


def _drawn(cwd: Path, **environment: str) -> dict[str, bytes]:
    cwd.mkdir(parents=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    argv = [sys.executable, "-m", "torchlens.run", *WORDS]
    subprocess.run(argv, cwd=cwd, env=env, capture_output=True, check=True, timeout=300)
    return {path.name: path.read_bytes() for path in (cwd / "docs" / "images" / "tour").iterdir()}


def test_the_bytes_do_not_depend_on_the_place_the_clock_the_language_or_the_user(tmp_path: Path) -> None:
    here = _drawn(tmp_path / "here", TZ="UTC", LC_ALL="C", USER="ann", PYTHONHASHSEED="1")
    elsewhere = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "40"}
    there = _drawn(
        tmp_path / "elsewhere" / "längs", TZ="Asia/Kolkata", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8",
        USER="bob", LOGNAME="bob", PYTHONHASHSEED="2", SOURCE_DATE_EPOCH="1", **elsewhere,
    )  # fmt: skip
    assert {"plain.svg", "plain.png", "rolled.svg", "index.html", "manifest.json"} <= set(here)
    assert here.keys() == there.keys()
    for name, data in here.items():
        assert data == there[name], name
