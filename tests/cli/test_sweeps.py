"""Sweeps: one job that fails or is killed loses no other, and the rest is completed later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchlens

ROOT = Path(torchlens.__file__).parents[1]
# Kills its own process, once or every time, if the file of that name is there.
NET = """
import os, signal
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.fc = nn.Linear(8, width)

    def forward(self, x):
        if self.fc.out_features == 3:
            if Path("once").exists():
                Path("once").unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            if Path("always").exists():
                os.kill(os.getpid(), signal.SIGKILL)
        return self.fc(x).relu()
"""
JOB = (
    "model.factory._target_=deadly.Net", "input.shape=[2,8]", "trust=[deadly.*]", "out=o", "formats=[svg]",
)  # fmt: skip
FIGURES = "model.factory.width-{}/main.svg"


def _python(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(cwd)])}
    argv = [sys.executable, "-m", "torchlens.run", *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


def _ends(err: str) -> dict[str, str]:
    """Figure -> how it ended, of the lines at the end."""
    rows = [line.split() for line in err.splitlines() if "/main" in line and line.split()[0] in _WORDS]
    return {row[1].rstrip(":"): row[0] for row in rows}


_WORDS = ("ok", "kept", "failed", "died", "not")


def test_a_killed_process_is_taken_up_again(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(NET)
    (tmp_path / "once").touch()
    words = ("-m", "+model.factory.width=2,3,4", *JOB)
    done = _python(tmp_path, *words)
    assert done.returncode == -9
    first = tmp_path / "o" / FIGURES.format(2)
    written = first.stat().st_mtime_ns
    done = _python(tmp_path, *words, "resume=true")
    assert done.returncode == 0, done.stderr
    assert _ends(done.stderr) == {FIGURES.format(2): "kept", FIGURES.format(3): "ok", FIGURES.format(4): "ok"}
    assert first.stat().st_mtime_ns == written


def test_a_killed_worker_of_joblib_takes_no_job_along(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(NET)
    (tmp_path / "always").touch()
    words = ("-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "+model.factory.width=2,3,4", *JOB)
    done = _python(tmp_path, *words)
    assert done.returncode == 1
    assert _ends(done.stderr) == {
        FIGURES.format(2): "ok",
        FIGURES.format(3).removesuffix(".svg"): "died",
        FIGURES.format(4): "ok",
    }
    assert done.stderr.splitlines()[-1] == "3 figures: 2 ok, 1 died"
    (tmp_path / "always").unlink()
    done = _python(tmp_path, *words, "resume=true")
    assert done.returncode == 0, done.stderr
    assert _ends(done.stderr) == {FIGURES.format(2): "kept", FIGURES.format(3): "ok", FIGURES.format(4): "kept"}
    assert "o/index.html" in done.stdout


def test_a_killed_worker_of_submitit_is_run_again_alone(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(NET)
    (tmp_path / "once").touch()
    done = _python(tmp_path, "-m", "hydra/launcher=submitit_local", "+model.factory.width=2,3", *JOB)
    assert done.returncode == 0, done.stderr
    assert "model.factory.width-3 did not finish and is run again" in done.stderr
    assert _ends(done.stderr) == {FIGURES.format(2): "ok", FIGURES.format(3): "ok"}
    # Jobs print into log files; what they wrote is told all the same.
    assert done.stdout.split() == [f"o/{FIGURES.format(2)}", f"o/{FIGURES.format(3)}", "o/index.html"]


# -- in this process
def test_resuming_draws_only_what_is_missing_or_was_changed(run: Any) -> None:
    words = ["-m", "theme=paper,dark", "model=mlp", "out=o", "formats=[svg]"]
    assert run(*words).code == 0
    result = run(*words, "resume=true")
    assert (result.code, result.out) == (0, "o/index.html\n")
    assert [line.split()[0] for line in result.err.splitlines()] == ["kept", "kept", "2"]
    Path("o/theme-dark_model-mlp/main.svg").write_text("changed")
    assert run(*words, "resume=true", "threads=1").out.splitlines() == [
        "o/theme-dark_model-mlp/main.svg",
        "o/index.html",
    ]
    longer = [*words, "resume=true"]
    longer[1] = "theme=paper,dark,colorblind"
    assert len(run(*longer).out.splitlines()) == 2
    assert len(run(*words, "resume=true", "draw.depth=1").out.splitlines()) == 3
    assert run(*words, "resume=true", "draw.depth=1", "draw.caption=other").code == 0


def test_a_changed_file_of_a_group_or_of_an_input_is_drawn_again(run: Any, tmp_path: Path) -> None:
    import torch

    conf = tmp_path / "conf" / "views"
    conf.mkdir(parents=True)
    (conf / "mine.yaml").write_text("question: q\ndraw: {depth: 1}\n")
    (conf.parent / "figures").mkdir()
    (conf.parent / "figures" / "two.yaml").write_text("a: {view: mine}\n")
    torch.save(torch.zeros(2, 8), "x.pt")
    words = ("--config-dir", str(conf.parent), "figures=two", "model=mlp", "input.path=x.pt", "out=o", "formats=[dot]")
    assert run(*words).out == "o/a.dot\n"
    assert run(*words, "resume=true").out == ""
    (conf / "mine.yaml").write_text("question: q\ndraw: {depth: 2}\n")
    os.utime(conf / "mine.yaml", ns=(1, 1))
    assert run(*words, "resume=true").out == "o/a.dot\n"
    torch.save(torch.zeros(3, 8), "x.pt")
    assert run(*words, "resume=true").out == "o/a.dot\n"
    assert run(*words, "resume=true").out == ""


def test_one_line_per_figure_at_the_end(run: Any) -> None:
    result = run("-m", "model=mlp", "input.shape=[2,8],[2,5]", "out=o", "formats=[dot]")
    assert result.code == 1
    *_, first, second, total = result.err.splitlines()
    assert first.split()[0] == "ok"
    assert second.split()[0] == "failed"
    assert "[model_run_failed]" in second
    assert total == "2 figures: 1 ok, 1 failed"


def test_levels_of_collapse_can_be_swept(run: Any) -> None:
    result = run("-m", "collapse=range(0,1.1,0.5),none", "explain=true")
    assert result.code != 0 or "job:" in result.out  # a range and a name cannot be mixed
    result = run("-m", "collapse=none,0.5,max", "model=mlp", "out=o", "formats=[dot]")
    assert result.code == 0
    names = sorted(path.name for path in Path("o").iterdir() if path.is_dir())
    assert names == ["collapse-0.5_model-mlp", "collapse-max_model-mlp", "collapse-none_model-mlp"]
    assert json.loads(Path(f"o/{names[0]}/manifest.json").read_text())["figures"]["main"]["options"]["collapse"] == {
        "value": 0.5,
        "set_by": "collapse:0.5",
    }


def test_what_is_swept_and_used_by_no_figure_is_told_once(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "figures"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text("a: {theme: dark, model: mlp}\nb: {theme: paper, model: mlp}\n")
    (folder / "mixed.yaml").write_text("a: {theme: dark, model: mlp}\nb: {model: mlp}\n")
    words = ("-m", "--config-dir", str(folder.parent), "theme=paper,dark", "out=o", "formats=[dot]")
    result = run(*words, "figures=own")
    assert result.code == 0
    told = [line for line in result.err.splitlines() if "sweep_axis_unused" in line]
    assert len(told) == 1
    assert "theme is swept, and every figure of the set names its own theme" in told[0]
    assert "sweep_axis_unused" not in run(*words, "figures=mixed").err


def test_the_command_of_a_job_repeats_that_job(run: Any) -> None:
    import shlex

    assert run("-m", "theme=paper,dark", "model=mlp", "out=o p", "formats=[svg]").code == 0
    folder = Path("o p/theme-dark_model-mlp")
    first = (folder / "main.svg").read_bytes()
    command = json.loads((folder / "manifest.json").read_text())["command"]
    (folder / "main.svg").unlink()
    assert run(*shlex.split(command)[3:]).code == 0
    assert (folder / "main.svg").read_bytes() == first


def test_the_processes_of_a_machine_share_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from omegaconf import OmegaConf

    from torchlens.runner import sweep
    from torchlens.runner.job import Job

    monkeypatch.setattr(sweep, "_processors", lambda: 8)
    job = Job((), "o", (), (), None, False)
    planned = [sweep.Planned(job, (), Path(str(k)), str(k)) for k in range(20)]

    def words(name: str, jobs: list[sweep.Planned], **launcher: Any) -> list[str]:
        hydra = OmegaConf.create({"launcher": launcher, "sweeper": {"max_batch_size": None}})
        return sweep._thread_words(name, hydra, jobs, sweep._batch_size(name, hydra, len(jobs)))

    def share(count: int) -> list[str]:
        return [f"+hydra.job.env_set.TORCHLENS_THREADS='{count}'"]

    assert words("basic", planned) == []
    assert words("submitit_slurm", planned) == []
    assert words("joblib", planned, n_jobs=4) == share(2)
    assert words("joblib", planned, n_jobs=-1) == share(1)
    assert words("joblib", planned[:2], n_jobs=-1) == share(4)
    assert words("submitit_local", planned) == share(1)
    assert words("submitit_local", planned[:4]) == share(2)
    own = [replace(item, job=replace(job, threads=3)) for item in planned]
    assert words("joblib", own, n_jobs=4) == []


def test_the_ready_configuration_of_a_cluster_composes(run: Any) -> None:
    import re

    from omegaconf import OmegaConf

    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(# mine/slurm.yaml\n.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    Path("mine").mkdir()
    Path("mine/slurm.yaml").write_text(block)
    result = run("--config-dir", "mine", "--config-name", "slurm", "--cfg", "hydra", "model=mlp", "out=figures/cluster")
    assert result.code == 0, result.err
    launcher = OmegaConf.create(result.out).hydra.launcher
    assert launcher._target_.endswith(".SlurmLauncher")
    wanted = {"partition": "cpu", "cpus_per_task": 4, "mem_gb": 8, "timeout_min": 30, "array_parallelism": 20}
    assert {key: launcher[key] for key in wanted} == wanted
    job = run("--config-dir", "mine", "--config-name", "slurm", "--cfg", "job", "model=mlp", "out=figures/cluster")
    assert "threads: 4" in job.out
    explained = run("-m", "--config-dir", "mine", "--config-name", "slurm", "model=mlp,rnn", "explain=true", "out=o")
    assert explained.code == 0
    assert explained.out.count("job: ") == 2
