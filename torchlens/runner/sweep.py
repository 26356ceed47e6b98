"""Runs the jobs of a sweep through a launcher, so that one that fails, or whose process dies, never loses the others.

A job is finished when its manifest says so; whatever a launcher returns or raises is no evidence. What a launcher left
unfinished because a neighbour took it down is launched again, alone.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import heard, warn
from torchlens.base.text import truncate
from torchlens.runner import manifest as records
from torchlens.runner.execute import THREADS
from torchlens.runner.figures import MANIFEST
from torchlens.runner.folders import job_names, key_of
from torchlens.runner.job import Job, unwritable

if TYPE_CHECKING:
    from omegaconf import DictConfig

TRACEBACKS = "HYDRA_FULL_ERROR"
BASIC = "basic"
# Launchers that start other processes on this machine.
_LOCAL = ("joblib", "submitit_local")
_FIGURE_GROUPS = ("model", "input", "view", "theme", "collapse", "encoding")


@dataclass(frozen=True)
class Planned:
    """One job of a run, with the words that compose it and the folder it writes to. name: of that folder."""

    job: Job
    overrides: tuple[str, ...]
    folder: Path
    name: str


def plan(
    jobs: Sequence[Job], texts: Sequence[Sequence[str]], keys: Sequence[str], cfg: DictConfig, *, multirun: bool
) -> list[Planned]:
    """The jobs with their folders. keys: what is swept; cfg: the configuration of the whole run.

    Raises: ConfigError[sweep_jobs_equal].
    """
    if not multirun:
        return [Planned(job, tuple(words), Path(job.out), "") for job, words in zip(jobs, texts, strict=True)]
    top, names = Path(cfg.hydra.sweep.dir), job_names(texts, keys)
    return [
        Planned(replace(job, swept=True), tuple(words), top / name, name)
        for job, words, name in zip(jobs, texts, names, strict=True)
    ]


def to_run(planned: Sequence[Planned]) -> list[Planned]:
    """The jobs that an earlier run did not finish; all of them without `resume=true`."""
    return [item for item in planned if not (item.job.resume and records.is_done(item.job, item.folder))]


def forget(launched: Sequence[Planned]) -> None:
    """Remove the manifests of earlier runs of these jobs, so that one that is found later is of this run.

    Raises: InvalidArgumentError[output_path_invalid].
    """
    for item in launched:
        try:
            (item.folder / MANIFEST).unlink(missing_ok=True)
        except OSError as exc:
            raise unwritable(exc) from exc


def launcher_name(hydra: DictConfig) -> str:
    """Which launcher was chosen."""
    return str(hydra.runtime.choices.get("hydra/launcher") or BASIC)


def unused_axes(planned: Sequence[Planned], swept: Sequence[str]) -> list[str]:
    """Warn [sweep_axis_unused], once per axis, where every figure makes its own choice; returns the warnings' texts."""
    with heard() as caught:
        for key in swept:
            group = key.partition(".")[0]
            entries = [entry or {} for item in planned for entry in item.job.config.get("figures", {}).values()]
            if group in _FIGURE_GROUPS and entries and all(group in entry for entry in entries):
                warn("sweep_axis_unused", f"{key} is swept, and every figure of the set names its own {group}")
    return [str(warning) for warning in caught]


# -- launching
def launch(planned: Sequence[Planned], launcher: Any, hydra: DictConfig) -> dict[str, str]:
    """Run jobs. launcher: one of Hydra's, set up; hydra: the node that configures it.

    Returns, by name, what kept a job from writing its manifest.
    Raises: InvalidArgumentError[output_path_invalid] if the sweep's folder cannot be written.
    """
    problems: dict[str, str] = {}
    name = launcher_name(hydra)
    size = _batch_size(name, hydra, len(planned))
    extra = _thread_words(name, hydra, planned, size)
    for start in range(0, len(planned), size):
        batch = list(planned[start : start + size])
        _launch_all(batch, launcher, extra, start, problems)
    return problems


def _launch_all(
    batch: Sequence[Planned], launcher: Any, extra: Sequence[str], start: int, problems: dict[str, str]
) -> None:
    """Launch jobs together, and again those that were left behind when a process was lost.

    Those that had not begun are innocent and go together; those that had begun go alone in the end, so that one that
    dies again takes nobody along.
    """
    begun: list[Planned] = []
    while batch and _launch_batch(batch, launcher, extra, start, problems):
        left = [item for item in batch if item.name not in problems]
        begun += [item for item in left if _status(item) == records.RUNNING]
        waiting = [item for item in left if _status(item) is None]
        if len(waiting) == len(batch):  # no job begins at all
            begun += waiting
            break
        batch = waiting
        if batch:
            print(f"torchlens: launched again, as they had not begun: {len(batch)} of the jobs", file=sys.stderr)
    for item in begun:
        print(f"torchlens: {item.name} did not finish and is run again", file=sys.stderr)
        _launch_batch([item], launcher, extra, start, problems)


def _launch_batch(
    batch: Sequence[Planned], launcher: Any, extra: Sequence[str], start: int, problems: dict[str, str]
) -> bool:
    """Launch jobs together; returns whether a process was lost. problems: is added to, as `launch` returns it."""
    words = [[*item.overrides, f"hydra.sweep.subdir={item.name}", "hydra.mode=MULTIRUN", *extra] for item in batch]
    try:
        with _dead_jobs_tolerated(launcher):
            returned = launcher.launch(words, initial_job_idx=start)
        for item, found in zip(batch, returned, strict=True):
            if found is not None and isinstance(text := found.return_value, str) and text:
                problems[item.name] = text
        return any(found is None for found in returned)
    except OSError as exc:
        if exc.errno is None:
            raise
        raise unwritable(exc) from exc
    except Exception as exc:  # noqa: BLE001 - jobs never raise; this is a launcher whose worker died
        text = " ".join(str(exc).split())
        print(f"torchlens: a worker process was lost: {type(exc).__name__}: {truncate(text, 200)}", file=sys.stderr)
        if os.environ.get(TRACEBACKS) == "1":
            traceback.print_exception(exc)
    return True


def _status(item: Planned) -> str | None:
    found = records.read(item.folder)
    return found["status"] if found else None


def _batch_size(name: str, hydra: DictConfig, jobs: int) -> int:
    """Jobs launched together. submitit_local would start all at once, so it gets as many as there are processors."""
    chosen = hydra.sweeper.get("max_batch_size")
    if chosen is not None:
        return max(1, int(chosen))
    return _processors() if name == "submitit_local" else max(1, jobs)


def _thread_words(name: str, hydra: DictConfig, planned: Sequence[Planned], size: int) -> list[str]:
    """The share of this machine that each of several processes may use, unless threads= says otherwise."""
    if name not in _LOCAL or any(item.job.threads is not None for item in planned):
        return []
    processors = _processors()
    parallel = min(size, len(planned))
    if name == "joblib":
        wanted = int(hydra.launcher.get("n_jobs") or 1)
        parallel = min(parallel, wanted if wanted > 0 else max(1, processors + 1 + wanted))
    return [f"+hydra.job.env_set.{THREADS}='{max(1, processors // parallel)}'"]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _dead_jobs_tolerated(launcher: Any) -> Iterator[None]:
    """The submitit launchers raise for the first dead job while its neighbours still run; wait for them all instead."""
    if "submitit" not in type(launcher).__module__:
        yield
        return
    from submitit.core.core import Job as Submitted
    from submitit.local import local

    real, start = Submitted.results, local.start_controller

    def results(self: Any) -> list[Any]:
        try:
            return real(self)
        except Exception as exc:  # noqa: BLE001 - whatever ended the job; its manifest tells
            lines = [line for line in str(exc).splitlines() if line.strip()] or [""]
            print(f"torchlens: a worker process was lost: {type(exc).__name__}: {lines[-1].strip()}", file=sys.stderr)
            return [None]

    def start_quietly(*words: Any, **settings: Any) -> Any:
        """What watches over a job has nothing to say but where it was interrupted; jobs have log files of their own."""
        before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            return start(*words, **settings)
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(nowhere)

    Submitted.results, local.start_controller = results, start_quietly
    try:
        yield
    finally:
        Submitted.results, local.start_controller = real, start


# -- how it ended
@dataclass(frozen=True)
class Ending:
    """How one figure ended. status: ok, left out as before (`kept`), failed, died, not drawn."""

    folder: str
    figure: str
    status: str
    files: tuple[str, ...] = ()
    text: str = ""

    @property
    def line(self) -> str:
        """The line about it."""
        place = f"{self.folder}/" if self.folder else ""
        what = " ".join(place + file for file in self.files) or place + self.figure
        return f"{self.status:<9} {what}{f': {self.text}' if self.text else ''}"


def endings(
    planned: Sequence[Planned],
    launched: Sequence[Planned],
    problems: Mapping[str, str] | None = None,
    *,
    interrupted: bool = False,
) -> list[Ending]:
    """How every figure of every job ended, in order, as the manifests tell.

    launched: the jobs of this run; problems: by job, why its manifest could not be written; interrupted: by the user,
    so that an unfinished manifest is no sign of a process that died.
    """
    ran = {item.name for item in launched}
    unfinished = {item.name: Ending("", "", "not drawn") for item in planned if interrupted}
    unfinished |= {name: Ending("", "", "failed", (), text) for name, text in (problems or {}).items()}
    died = Ending("", "", "died", (), "its process ended before it was finished")
    return [ending for item in planned for ending in _endings(item, item.name in ran, unfinished.get(item.name, died))]


def _endings(item: Planned, ran: bool, unfinished: Ending) -> list[Ending]:
    """unfinished: how figures ended of which the manifest of a running job knows nothing yet."""
    found = records.read(item.folder)
    if found is None:
        known = unfinished if unfinished.status == "failed" else replace(unfinished, status="not run", text="")
        return [replace(known, folder=item.name, figure=figure.name) for figure in item.job.figures]
    result: list[Ending] = []
    for name, entry in found["figures"].items():
        files = tuple(file["file"] for file in entry["files"])
        if entry["status"] == records.OK:
            result.append(Ending(item.name, name, "ok" if ran else "kept", files))
        elif entry["status"] == records.FAILED:
            result.append(Ending(item.name, name, "failed", (), entry["error"]["text"]))
        elif found["status"] == records.RUNNING:
            result.append(replace(unfinished, folder=item.name, figure=name))
        else:
            result.append(Ending(item.name, name, "not drawn"))
    return result


def report(found: Sequence[Ending]) -> None:
    """One line per figure, and how many there are of each."""
    for ending in found:
        print(ending.line, file=sys.stderr)
    counts = {status: sum(ending.status == status for ending in found) for status in dict.fromkeys(_statuses(found))}
    text = ", ".join(f"{count} {status}" for status, count in counts.items())
    print(f"{len(found)} figure{'' if len(found) == 1 else 's'}: {text}", file=sys.stderr)


def _statuses(found: Sequence[Ending]) -> list[str]:
    return [ending.status for ending in found]


def swept_keys(jobs: Sequence[Sequence[str]]) -> list[str]:
    """The keys that differ between the jobs of a sweep, in the order of the command line."""
    values: dict[str, set[str]] = {}
    for job in jobs:
        for text in job:
            values.setdefault(key_of(text), set()).add(text)
    return [key for key, found in values.items() if len(found) > 1]
