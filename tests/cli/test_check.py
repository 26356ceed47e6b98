"""Figures that are kept: drawn again without a change, compared, and their times frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DOCS = ("output=docs", "out=d", "figures=tour", "~figures.unrolled", "~figures.rolled", "formats=[svg,png]")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `d` holds the figures of a set."""
    import os

    from torchlens.runner.main import main

    folder = tmp_path_factory.mktemp("kept")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(DOCS) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(kept: Path, run: Any) -> Path:
    """A copy of it in the working directory."""
    import shutil

    shutil.copytree(kept / "d", "d")
    return Path("d")


def test_nothing_drifts_and_nothing_is_touched(folder: Path, run: Any) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    result = run(*DOCS, "check=true")
    assert (result.code, result.out, result.err) == (0, "", "6 figures checked, none drifted\n")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_drawing_again_gives_the_same_folder(folder: Path, run: Any) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {"index.html", "manifest.json", "tour.timings.json", "speed.svg", "speed.png"} <= set(before)
    assert run(*DOCS).code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_every_drifted_file_is_named_with_what_changed(folder: Path, run: Any) -> None:
    svg = folder / "plain.svg"
    svg.write_text(svg.read_text().replace(">relu_1_4<", ">gelu<").replace('id="relu_2_8"', 'id="relu_9_9"'))
    (folder / "dark.svg").unlink()
    (folder / "flops.png").write_bytes(b"another picture")
    result = run(*DOCS, "check=true")
    assert result.code == 1
    lines = {line.split()[1].rstrip(":"): line for line in result.err.splitlines()}
    assert "says otherwise in relu_1_4 ('gelu', now 'relu_1_4')" in lines["plain.svg"]
    assert "gained node relu_2_8; lost node relu_9_9" in lines["plain.svg"]
    assert lines["plain.svg"].endswith("(edited after it was drawn)")
    assert lines["dark.svg"].endswith("is not there")
    assert "its content changed (sha256 " in lines["flops.png"]
    assert result.err.splitlines()[-1].startswith("6 figures checked, 3 drifted")
    assert len(lines) == 4


def test_a_changed_set_is_a_drift(folder: Path, run: Any) -> None:
    words = [word for word in DOCS if "rolled" not in word]
    result = run(*words, "~figures.unrolled", "check=true", "figures.rolled.model=mlp", "~figures.depth")
    assert result.code == 1
    assert "drifted   depth.svg: is no longer in the set" in result.err
    assert "drifted   rolled.svg: is not there" in result.err


def test_times_that_are_not_frozen_are_told(folder: Path, run: Any) -> None:
    (folder / "tour.timings.json").unlink()
    result = run(*DOCS, "check=true")
    assert result.code == 1
    assert "speed: can no longer be drawn: [timings_stale]" in result.err
    assert not (folder / "tour.timings.json").exists()


def test_times_are_frozen_in_the_figure_and_refrozen_on_request(folder: Path, run: Any) -> None:
    assert "times frozen: torch " in (folder / "speed.svg").read_text()
    assert "times frozen" not in (folder / "flops.svg").read_text()
    path = folder / "tour.timings.json"
    before = path.read_bytes()
    words = ("output=docs", "out=d", "figures=tour", "formats=[svg]", "~figures.unrolled", "~figures.rolled")
    assert run(*words).code == 0
    assert path.read_bytes() == before
    assert run(*words, "refreeze=true").code == 0
    assert path.read_bytes() != before
    (entry,) = json.loads(path.read_text())["recordings"].values()
    assert len(entry["seconds"]) == 12


def test_a_sweep_can_be_checked(run: Any) -> None:
    words = ("-m", "theme=paper,dark", "model=mlp", "out=o", "formats=[svg]")
    assert run(*words).code == 0
    assert run(*words, "check=true").code == 0
    svg = Path("o/theme-dark_model-mlp/main.svg")
    svg.write_text(svg.read_text().replace("Mlp", "Perceptron"))
    result = run(*words, "check=true")
    assert result.code == 1
    assert result.err.startswith("drifted   theme-dark_model-mlp/main.svg: says otherwise in caption:header:1")


def test_a_published_manifest_has_no_place_or_person(folder: Path, run: Any) -> None:
    import getpass
    import socket

    text = (folder / "manifest.json").read_text() + (folder / "index.html").read_text()
    for word in (str(Path.cwd()), str(Path.home()), socket.gethostname()):
        assert word not in text
    if getpass.getuser() not in ("root", "torch"):
        assert getpass.getuser() not in text
