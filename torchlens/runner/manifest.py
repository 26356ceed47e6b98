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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torchlens import __version__
from torchlens.base.errors import TorchLensError, TorchLensWarning
from torchlens.drawings import write_atomically
from torchlens.runner.figures import MANIFEST, Figure
from torchlens.runner.job import Job
from torchlens.runner.progress import shown
from torchlens.settings.plain import is_list, is_mapping

SCHEMA = "torchlens_manifest_v1"
# An absolute path inside a text: up to the closing quote if it is quoted, else up to a blank or punctuation.
_PATH = re.compile(r"""(?<=')/[^'\n]+(?=')|(?<=")/[^"\n]+(?=")|(?<![\w.:/~-])/[^\s'",;:=()\[\]{}<>]+""")
_PACKAGES = ("torch", "graphviz-pure", "torchvision", "timm", "transformers")


def describe(job: Job) -> dict[str, Any]:
    """The manifest of a job before anything ran; its figures are filled in as they finish."""
    return {
        "schema": SCHEMA,
        "status": "running",
        "command": _command(job),
        "versions": {"torchlens": __version__, "python": platform.python_version(), **_versions()},
        "figures": {figure.name: _planned(figure) for figure in job.figures},
    }


def _command(job: Job) -> str:
    """The command that repeats the job, from the same folder."""
    folders = [word for folder in job.folders for word in ("--config-dir", shown(Path(folder)))]
    words = [*folders, *job.overrides]
    if job.published:
        words = [_without_folders(word) for word in words]
    return shlex.join(["python", "-m", "torchlens.run", *words])


def _planned(figure: Figure) -> dict[str, Any]:
    options, origin = figure.request.options, figure.request.origin
    resolved = {name: {"value": getattr(options, name), "set_by": origin[name]} for name in origin}
    return {
        "status": "not drawn",
        "chosen": dict(figure.chosen),
        "model": {
            "factory": figure.model.factory,
            "mode": figure.model.mode,
            "seed": figure.model.seed,
            "input": _input(figure),
        },
        "options": resolved,
        "files": [],
        "warnings": [],
    }


def _input(figure: Figure) -> dict[str, Any]:
    spec = figure.model.input
    return {"path": spec.path} if spec.path is not None else {"shape": spec.shape, **spec.values}


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
