"""Frozen times: measured once, kept in a file beside the figures, and put in place of the measured ones ever after.

A figure of times that is drawn again then has the same bytes. What is frozen are the times of ops by label, rounded
to three digits, per model and input; the file says on what they were measured.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import fail
from torchlens.base.files import write_atomically
from torchlens.runner.spec import ModelSpec
from torchlens.settings.plain import is_mapping

if TYPE_CHECKING:
    from torchlens.records.provenance import Environment
    from torchlens.records.trace_data import TraceData

SCHEMA = "torchlens_timings_v1"
_DIGITS, _LISTED = 3, 3


class FrozenTimings:
    """The frozen times of one set of figures.

    refreeze: measure all anew; closed: measure nothing, so that what is missing is an error.
    """

    def __init__(self, folder: Path, figure_set: str, *, refreeze: bool = False, closed: bool = False) -> None:
        self._path, self._closed, self._changed = folder / f"{figure_set}.timings.json", closed, False
        self._recordings: dict[str, Any] = {} if refreeze else _read(self._path)

    def has(self, spec: ModelSpec) -> bool:
        """Whether the times of this model and input are there."""
        return _key(spec) in self._recordings

    def apply(self, data: TraceData, spec: ModelSpec) -> str:
        """Put the frozen times into a recording, or freeze its own, and return the line that a figure says of them.

        Raises: EvidenceError[timings_stale] if an op of the recording is not among them.
        """
        labels, times = data.nodes.label, list(data.nodes.time_s)
        timed = [i for i in data.op_indexes if times[i] is not None]
        if not self.has(spec):
            if self._closed:
                fail("timings_stale", f"{self._path.name} holds no times of model {spec.name!r}", model=spec.name)
            found = {labels[i]: float(f"{times[i]:.{_DIGITS}g}") for i in timed}
            self._recordings[_key(spec)] = {"environment": _environment(data.environment), "seconds": found}
            self._changed = True
        entry = self._recordings[_key(spec)]
        seconds: dict[str, float] = entry["seconds"]
        missing = [labels[i] for i in timed if labels[i] not in seconds]
        if missing:
            more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
            what = f"{self._path.name} holds no time of {', '.join(missing[:_LISTED])}{more} of model {spec.name!r}"
            fail("timings_stale", what, model=spec.name, labels=missing)
        for i in timed:
            times[i] = seconds[labels[i]]
        data.nodes.time_s = times
        return f"times frozen: {entry['environment']}"

    def save(self) -> None:
        """Write the file, if something was frozen."""
        if self._changed:
            content = {"schema": SCHEMA, "recordings": dict(sorted(self._recordings.items()))}
            write_atomically(self._path, f"{json.dumps(content, indent=1)}\n".encode())
            self._changed = False


def _key(spec: ModelSpec) -> str:
    """Readable, and different for every model with its input, mode and seed."""
    return f"{spec.name} {hashlib.sha256(spec.key.encode()).hexdigest()[:12]}"


def _environment(environment: Environment) -> str:
    threads = f"{environment.threads} thread{'' if environment.threads == 1 else 's'}"
    where = f"{platform.system()} {platform.machine()}"
    return f"torch {environment.torch}, Python {environment.python}, {where}, {threads}"


def _read(path: Path) -> dict[str, Any]:
    """The recordings of a file; none if it does not exist. Raises EvidenceError[timings_stale] if it is another's."""
    if not path.exists():
        return {}
    found: Any = None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        good = found["schema"] == SCHEMA and all(is_mapping(entry["seconds"]) for entry in found["recordings"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        good = False
    if not good:
        fail("timings_stale", f"{path} cannot be read as a file of frozen times", path=str(path))
    return dict(found["recordings"])
