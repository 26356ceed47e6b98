"""Runs that end early: Ctrl-C under every launcher, a disk that is full, a reader that goes away."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import torchlens
from torchlens.base import files

ROOT = Path(torchlens.__file__).parents[1]
# Tells that it has begun, and then takes longer than anybody waits.
NET = """
import time
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.fc = nn.Linear(8, width)

    def forward(self, x):
        if self.fc.out_features > 2:
            Path("begun").touch()
            time.sleep(600)
        return self.fc(x).relu()
"""
JOB = ("model.factory._target_=slow.Net", "input.shape=[2,8]", "trust=[slow.*]", "out=o", "formats=[svg]")
SWEEP = ("-m", "+model.factory.width=2,3,4")


def _started(cwd: Path, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(cwd)])}
    argv = [sys.executable, "-m", "torchlens.run", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("+model.factory.width=3",), ["not drawn main", "1 figure: 1 not drawn"]),
        (SWEEP, None),
        ((*SWEEP, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), None),
        ((*SWEEP, "hydra/launcher=submitit_local", "hydra.sweeper.max_batch_size=2"), None),
    ],
    ids=["single", "basic", "joblib", "submitit"],
)
def test_ctrl_c_ends_with_130_and_what_is_done(words: tuple[str, ...], lines: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(NET)
    process = _started(tmp_path, *words, *JOB)
    first = tmp_path / "o" / "model.factory.width-2" / "manifest.json"
    try:
        for _ in range(1200):
            done = lines is not None or (first.exists() and '"status": "ok"' in first.read_text())
            if done and (tmp_path / "begun").exists():
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        # As a terminal does: to all processes of the group.
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Traceback" not in err
    *told, last = err.splitlines()
    assert last == "interrupted"
    place = "model.factory.width-{}/main"
    ended = ["ok        " + place.format(2) + ".svg", "not drawn " + place.format(3)]
    never = [*ended, "not run   " + place.format(4), "3 figures: 1 ok, 1 not drawn, 1 not run"]
    # The worker of a pool that is through with the first job may have taken up the last one.
    begun = [*ended, "not drawn " + place.format(4), "3 figures: 1 ok, 2 not drawn"]
    allowed = [lines] if lines else [never, begun] if "hydra/launcher=joblib" in words else [never]
    assert any(told[-len(expected) :] == expected for expected in allowed), told


# -- a full disk
@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files the disk still takes; it is full afterwards."""
    left = [1000]
    real = os.fsync

    def fsync(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(files.os, "fsync", fsync)
    return left


FULL = "cannot be written: No space left on device. Fix: write elsewhere."


def test_a_disk_that_is_full_at_the_start(room: list[int], run: Any) -> None:
    room[0] = 0
    result = run("model=mlp", "out=o", "formats=[svg]")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"torchlens: [output_path_invalid] 'o/manifest.json' {FULL}\n"
    assert list(Path("o").iterdir()) == []


def test_a_disk_that_gets_full_fails_what_is_not_on_it(room: list[int], run: Any) -> None:
    room[0] = 5  # the manifest, two figures, and the manifest after each of them
    result = run("figures=tour", "out=o", "formats=[dot]")
    assert result.code == 1
    assert "Traceback" not in result.err
    assert f"figure 'flops' failed: [output_path_invalid] 'o/flops.dot' {FULL}" in result.err
    ends = [line.split()[:2] for line in result.err.splitlines()[-10:-2]]
    assert ends[:4] == [["ok", "plain.dot"], ["ok", "speed.dot"], ["failed", "flops:"], ["failed", "depth:"]]
    assert "8 figures: 2 ok, 6 failed" in result.err
    assert result.err.splitlines()[-1] == f"torchlens: [output_path_invalid] 'o/index.html' {FULL}"
    assert {path.name for path in Path("o").iterdir()} == {"manifest.json", "plain.dot", "speed.dot"}


def test_a_full_disk_in_a_sweep_says_which_jobs_are_missing(room: list[int], run: Any) -> None:
    room[0] = 4  # all of the first job
    result = run("-m", "model=mlp", "theme=paper,dark,colorblind", "out=o", "formats=[dot]")
    assert result.code == 1
    ends = [line.split()[0] for line in result.err.splitlines() if "/main" in line and not line.startswith("torchlens")]
    assert ends == ["ok", "failed", "failed"]
    assert "3 figures: 1 ok, 2 failed" in result.err
    room[0] = 1000
    result = run("-m", "model=mlp", "theme=paper,dark,colorblind", "out=o", "formats=[dot]", "resume=true")
    assert result.code == 0
    assert result.err.splitlines()[-1] == "3 figures: 1 kept, 2 ok"


def test_a_page_that_cannot_be_written_fails_the_run(room: list[int], run: Any) -> None:
    room[0] = 8
    result = run("-m", "model=mlp", "theme=paper,dark", "out=o", "formats=[dot]")
    assert result.code == 1
    assert result.err.splitlines()[-2:] == [
        "2 figures: 2 ok",
        f"torchlens: [output_path_invalid] 'o/index.html' {FULL}",
    ]


def test_standard_output_on_a_full_disk_is_one_line(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-m", "torchlens.run", "--help"]
        done = subprocess.run(argv, cwd=tmp_path, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("torchlens: [output_path_invalid] cannot write: No space left on device.")
    assert len(done.stderr.splitlines()) == 1


def test_a_manifest_that_cannot_be_renewed_is_refused(run: Any) -> None:
    Path("o/model-mlp_theme-paper/manifest.json/x").mkdir(parents=True)
    result = run("-m", "model=mlp", "theme=paper,dark", "out=o", "formats=[dot]")
    assert result.code == 2
    assert result.err.startswith("torchlens: [output_path_invalid] cannot write to 'o/model-mlp_theme-paper/manifest")
    assert len(result.err.splitlines()) == 1


# -- a reader that goes away
def test_figures_are_drawn_although_nobody_reads_their_paths(tmp_path: Path) -> None:
    process = _started(tmp_path, "figures=tour", "out=o", "formats=[dot]")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert err.splitlines()[-1] == "8 figures: 8 ok"
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert len(list((tmp_path / "o").glob("*.dot"))) == 8
