"""Sweeps as values: which axes matter, how jobs ended, and what a launcher that fails leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from torchlens.base.errors import InvalidArgumentError, TorchLensWarning
from torchlens.runner import sweep
from torchlens.runner.job import Job
from torchlens.runner.manifest import SCHEMA
from torchlens.runner.sweep import Ending, Planned

HYDRA = OmegaConf.create(
    {
        "runtime": {"choices": {"hydra/launcher": "joblib"}},
        "launcher": {"n_jobs": 2},
        "sweeper": {"max_batch_size": None},
    }
)


def _planned(folder: Path, *names: str, **entries: Any) -> list[Planned]:
    job = Job((), "o", (), (), 1, False, config={"figures": entries})
    return [Planned(job, (f"x={name}",), folder / name, name) for name in names]


def _manifest(folder: Path, status: str, figure: str, text: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entry: dict[str, Any] = {"status": figure, "files": [{"file": "a.svg"}] if figure == "ok" else []}
    entry |= {"error": {"text": text}} if text else {}
    (folder / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "status": status, "figures": {"a": entry}}))


class _Launcher:
    """Runs what each job is to do; a job that is None takes the whole batch down."""

    def __init__(self, folder: Path, deeds: dict[str, Callable[[Path], None]]) -> None:
        self.folder, self.deeds, self.batches = folder, deeds, list[list[str]]()

    def launch(self, words: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
        names = [job[0].partition("=")[2] for job in words]
        self.batches.append(names)
        for name in names:
            self.deeds[name](self.folder / name)
        return [SimpleNamespace(return_value="")] * len(names)


def _fine(folder: Path) -> None:
    _manifest(folder, "ok", "ok")


def _deadly(folder: Path) -> None:
    _manifest(folder, "running", "not drawn")
    raise RuntimeError("the pool is broken")


def test_an_axis_that_no_figure_takes_is_told(tmp_path: Path) -> None:
    planned = _planned(tmp_path, "p", a={"theme": "dark", "model": "mlp"}, b={"theme": "paper"})
    with pytest.warns(TorchLensWarning, match=r"\[sweep_axis_unused\] theme.page.background is swept"):
        assert len(sweep.unused_axes(planned, ["theme.page.background", "model", "draw.depth"])) == 1
    assert sweep.unused_axes(_planned(tmp_path, "p", main=None), ["theme"]) == []


def test_what_a_dying_neighbour_left_unfinished_is_run_again_alone(tmp_path: Path) -> None:
    planned = _planned(tmp_path, "a", "b", "c")
    launcher = _Launcher(tmp_path, {"a": _fine, "b": _deadly, "c": _fine})
    sweep.launch(planned, launcher, HYDRA)
    assert launcher.batches == [["a", "b", "c"], ["c"], ["b"]]
    ends = sweep.endings(planned, planned)
    assert [(end.folder, end.status) for end in ends] == [("a", "ok"), ("b", "died"), ("c", "ok")]


def test_those_that_had_not_begun_are_launched_together(tmp_path: Path) -> None:
    names = "abcdef"
    planned = _planned(tmp_path, *names)
    launcher = _Launcher(tmp_path, dict.fromkeys(names, _fine) | {"b": _deadly, "d": _deadly})
    sweep.launch(planned, launcher, HYDRA)
    assert launcher.batches == [list("abcdef"), list("cdef"), list("ef"), ["b"], ["d"]]
    assert [end.status for end in sweep.endings(planned, planned)] == ["ok", "died", "ok", "died", "ok", "ok"]


def test_a_launcher_that_begins_no_job_is_asked_once_more_for_each(tmp_path: Path) -> None:
    def gone(folder: Path) -> None:
        raise RuntimeError("no pool at all")

    planned = _planned(tmp_path, "a", "b")
    launcher = _Launcher(tmp_path, {"a": gone, "b": gone})
    sweep.launch(planned, launcher, HYDRA)
    assert launcher.batches == [["a", "b"], ["a"], ["b"]]


def test_what_a_job_could_not_write_is_told_of_it(tmp_path: Path) -> None:
    class Full(_Launcher):
        def launch(self, words: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
            super().launch(words, initial_job_idx)
            return [SimpleNamespace(return_value="no room" if "b" in job[0] else "") for job in words]

    planned = _planned(tmp_path, "a", "b")
    launcher = Full(tmp_path, {"a": _fine, "b": lambda folder: _manifest(folder, "running", "not drawn")})
    problems = sweep.launch(planned, launcher, HYDRA)
    assert problems == {"b": "no room"}
    assert [end.line for end in sweep.endings(planned, planned, problems)] == [
        "ok        a/a.svg",
        "failed    b/a: no room",
    ]


def test_a_launcher_that_says_nothing_was_lost_is_not_asked_again(tmp_path: Path) -> None:
    planned = _planned(tmp_path, "a", "b")
    launcher = _Launcher(tmp_path, {"a": _fine, "b": lambda folder: _manifest(folder, "failed", "failed", "no")})
    sweep.launch(planned, launcher, HYDRA)
    assert launcher.batches == [["a", "b"]]
    assert [end.line for end in sweep.endings(planned, planned[:1])] == ["ok        a/a.svg", "failed    b/a: no"]
    assert sweep.endings(planned, [])[0].status == "kept"


def test_a_folder_that_cannot_be_written_ends_the_sweep(tmp_path: Path) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    with pytest.raises(InvalidArgumentError, match=r"\[output_path_invalid\] cannot write to .*: Permission denied"):
        sweep.launch(_planned(tmp_path, "a"), _Launcher(tmp_path, {"a": refuse}), HYDRA)


def test_old_manifests_are_no_evidence(tmp_path: Path) -> None:
    planned = _planned(tmp_path, "a")
    _manifest(tmp_path / "a", "ok", "ok")
    sweep.forget(planned)
    assert not (tmp_path / "a" / "manifest.json").exists()
    for text in ("{", "[]", '{"schema": "other"}'):
        (tmp_path / "a" / "manifest.json").write_text(text)
        assert sweep.endings(planned, planned) == []


def test_the_last_line_counts(capsys: pytest.CaptureFixture[str]) -> None:
    sweep.report(
        [Ending("a", "m", "ok", ("m.svg", "m.png")), Ending("b", "m", "died"), Ending("", "x", "ok", ("x.svg",))]
    )
    assert capsys.readouterr().err.splitlines() == [
        "ok        a/m.svg a/m.png",
        "died      b/m",
        "ok        x.svg",
        "3 figures: 2 ok, 1 died",
    ]


def test_what_is_swept() -> None:
    jobs = [["a=1", "+b=2", "c=3"], ["a=1", "+b=4", "c=3"]]
    assert sweep.swept_keys(jobs) == ["b"]
    assert sweep.swept_keys(jobs[:1]) == []
