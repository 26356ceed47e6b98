"""The `manifest.json` of a job folder: what was drawn, from which settings, with which versions, and what failed.

Holds no date, host, user or absolute path of ours, so that equal jobs leave equal manifests. A job for the
documentation leaves out the user's absolute paths too; any other keeps them, so that its command can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens import __version__
from torchlens.base.errors import TorchLensError, TorchLensWarning
from torchlens.base.files import write_atomically
from torchlens.records.provenance import InputProvenance
from torchlens.runner.figures import GRAPH, MANIFEST, Figure
from torchlens.runner.job import Job
from torchlens.runner.progress import shown
from torchlens.runner.spec import ModelSpec
from torchlens.settings.deferred import Band, FromTrace
from torchlens.settings.plain import is_list, is_mapping

if TYPE_CHECKING:
    from torchlens.drawings import Drawing
    from torchlens.settings.compose import DrawRequest

SCHEMA = "torchlens_manifest_v1"
# An absolute path inside a text: up to the closing quote if it is quoted, else up to a blank or punctuation.
_PATH = re.compile(r"""(?<=')/[^'\n]+(?=')|(?<=")/[^"\n]+(?=")|(?<![\w.:/~-])/[^\s'",;:=()\[\]{}<>]+""")
RUNNING, OK, FAILED, INTERRUPTED, LEFT = "running", "ok", "failed", "interrupted", "not drawn"
_PACKAGES = ("torch", "graphviz-pure", "torchvision", "timm", "transformers")


def describe(job: Job, folder: Path) -> dict[str, Any]:
    """The manifest of a job before anything ran; its figures are filled in as they finish. folder: the job's own."""
    return {
        "schema": SCHEMA,
        "status": RUNNING,
        "command": _command(job, folder),
        "overrides": list(job.overrides),
        "config": job.config,
        "config_hash": config_hash(job),
        "timings": "frozen" if job.frozen else "measured",
        "versions": {"torchlens": __version__, "python": platform.python_version(), **_versions()},
        "figures": {figure.name: _planned(figure) for figure in job.figures},
    }


def _command(job: Job, folder: Path) -> str:
    """The command that repeats the job, from the same folder; of a job of a sweep, that job alone."""
    folders = [word for folder in job.folders for word in ("--config-dir", shown(Path(folder)))]
    words = [*folders, *job.overrides]
    if job.swept:
        words = [word for word in words if not word.startswith(("out=", "resume="))]
        words.append(f"out='{shown(folder)}'")
    if job.published:
        words = [_without_folders(word) for word in words]
    return shlex.join(["python", "-m", "torchlens.run", *words])


def _planned(figure: Figure) -> dict[str, Any]:
    return {
        "status": LEFT,
        "chosen": dict(figure.chosen),
        **({"kind": figure.kind} if figure.kind != GRAPH else {}),
        **({"model": _model(figure.model)} if figure.model else {}),
        "options": _resolved(figure.request),
        "files": [],
        "warnings": [],
    }


def _model(model: ModelSpec) -> dict[str, Any]:
    facts = {"mode": model.mode, "seed": model.seed, "input": model.input.facts}
    return {"factory": model.factory, **_further(model), **facts}


def _resolved(request: DrawRequest) -> dict[str, Any]:
    """Each option and who set it; of what a trace has to answer, what is asked."""
    asked = {name: steps[-1][1] for name, steps in request.trail.items() if isinstance(steps[-1][1], (FromTrace, Band))}
    found: dict[str, Any] = {}
    for name, label in request.origin.items():
        value = str(asked[name]) if name in asked else getattr(request.options, name)
        found[name] = {"value": value, "set_by": label}
    return found


def answers(figure: Figure, drawing: Drawing) -> dict[str, Any]:
    """What the trace answered to a view, as in `options` of the entry."""
    asked = [name for name, steps in figure.request.trail.items() if isinstance(steps[-1][1], FromTrace)]
    return {name: {"value": drawing.settings[name][0], "set_by": drawing.settings[name][1]} for name in asked}


def _further(model: ModelSpec) -> dict[str, Any]:
    return {key: value for key, value in (("checkpoint", model.checkpoint), ("tokenizer", model.tokenizer)) if value}


# -- telling jobs apart
def config_hash(job: Job) -> str:
    """A hash of everything that decides what a job draws: its configuration, the files of the groups its figures name,
    and the contents of inputs and weights. Where it is written, and how the run is done, are no part of it.
    """
    figures = [
        {
            "name": figure.name,
            "files": figure.files,
            "settings": repr(figure.request),
            "kind": figure.kind,
            "model": figure.recording,
            "contents": [_digest(path) for path in _files(figure.model)],
        }
        for figure in job.figures
    ]
    text = json.dumps([job.config, figures, job.frozen], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _files(model: ModelSpec | None) -> list[str]:
    return [path for path in (*model.input.files, model.checkpoint) if path] if model else []


def _digest(path: str) -> str:
    try:
        facts = Path(path).stat()
        return _digest_of(path, facts.st_mtime_ns, facts.st_size)
    except OSError:
        return "unreadable"


@lru_cache(maxsize=64)
def _digest_of(path: str, stamp: int, size: int) -> str:
    """Read once for the many jobs of a sweep. stamp, size: of the file, so that another content is another key."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder; None if there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return dict(found) if is_mapping(found) and found.get("schema") == SCHEMA else None


def is_done(job: Job, folder: Path) -> bool:
    """Whether an earlier run drew this very job: its manifest is ok, of an equal configuration, its files are there."""
    found = read(folder)
    if found is None or found["status"] != OK or found.get("config_hash") != config_hash(job):
        return False
    files = [file for entry in found["figures"].values() for file in entry["files"]]
    return all(digest(folder / file["file"]) == file["sha256"] for file in files)


def digest(path: Path) -> str:
    """The hash of a file, empty if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def provenance_entry(provenance: InputProvenance) -> dict[str, Any]:
    """What is noted of where the input came from."""
    return {key: value for key, value in asdict(provenance).items() if value not in ("", None, ())}


def file_entry(path: Path, folder: Path, file_format: str) -> dict[str, Any]:
    """What is noted of a written file. bytes: its size."""
    content = path.read_bytes()
    name = path.relative_to(folder).as_posix()
    return {"file": name, "format": file_format, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def problem(exc: BaseException) -> dict[str, str]:
    """What is noted of a failure: its code, if it has one, and its text."""
    code = exc.code if isinstance(exc, TorchLensError) else type(exc).__name__
    return {"code": code, "text": " ".join(str(exc).split())}


def warning_entry(warning: TorchLensWarning) -> dict[str, str]:
    """What is noted of a warning."""
    return {"code": warning.code, "text": " ".join(str(warning).split())}


# -- what strangers read
def published(value: Any) -> Any:
    """A manifest, or a part of one, without an absolute path in any of its texts, errors and warnings among them."""
    if is_mapping(value):
        return {key: published(item) for key, item in value.items()}
    if is_list(value):
        return [published(item) for item in value]
    return _without_folders(str(value)) if isinstance(value, (str, Path)) else value


def _without_folders(text: str) -> str:
    """The text with each absolute path made relative to the working directory, or its name alone if outside it."""
    key, equals, value = text.partition("=")
    if Path(text).is_absolute():
        return _relative(text)
    if equals and Path(value).is_absolute():
        return f"{key}={_relative(value)}"
    return _PATH.sub(lambda found: _relative(found[0]), text)


def _relative(path: str) -> str:
    short = shown(Path(path))
    return Path(path).name if Path(short).is_absolute() else short


def write(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest into the job's folder; it appears whole or not at all."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False, default=str)
    write_atomically(folder / MANIFEST, f"{text}\n".encode())


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
