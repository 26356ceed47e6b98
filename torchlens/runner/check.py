"""`check=true`: draws the figures again into a temporary folder and tells how the kept ones differ from them.

What changed is read from the ids of nodes, arrows and frames in both SVG files; of other formats only the hash is
compared. Nothing of the kept folder is touched.
"""

from __future__ import annotations

import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlens.base.errors import fail
from torchlens.runner import manifest as records
from torchlens.runner.execute import execute
from torchlens.runner.job import Job
from torchlens.runner.progress import shown, silenced

_LISTED = 4
_SVG = "{http://www.w3.org/2000/svg}"
_KINDS = {"node": "node", "edge": "arrow", "cluster": "frame"}


@dataclass(frozen=True)
class Drift:
    """One kept file that is not what would be drawn now, and how it differs."""

    file: str
    what: str


def check_job(job: Job, folder: Path) -> list[Drift]:
    """Draw a job again and compare. folder: where its figures are kept, with their manifest and frozen times.

    Raises: ConfigError[manifest_missing] if the folder has no manifest, or none of a finished job.
    """
    kept = require_manifest(folder)
    with tempfile.TemporaryDirectory(prefix="torchlens-check-") as temporary:
        fresh = Path(temporary)
        with silenced():
            execute(job, fresh, frozen=folder)
        drawn = records.read(fresh)
        assert drawn is not None
        return list(_compare(kept, folder, drawn, fresh))


def require_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of kept figures. Raises ConfigError[manifest_missing]."""
    kept = records.read(folder)
    if kept is None:
        fail("manifest_missing", f"{shown(folder)} holds no manifest of figures to compare with", folder=str(folder))
    return kept


def report(drifts: Sequence[Drift], figures: int) -> None:
    """One line per drifted file, or that there is none."""
    for drift in drifts:
        print(f"drifted   {drift.file}: {drift.what}", file=sys.stderr)
    word = "figure" if figures == 1 else "figures"
    if drifts:
        print(f"{figures} {word} checked, {len(drifts)} drifted; draw without check=true to renew", file=sys.stderr)
    else:
        print(f"{figures} {word} checked, none drifted", file=sys.stderr)


# -- files
def _compare(kept: Mapping[str, Any], folder: Path, drawn: Mapping[str, Any], fresh: Path) -> Iterator[Drift]:
    for name, entry in kept["figures"].items():
        if name not in drawn["figures"]:
            yield from (Drift(file["file"], "is no longer in the set") for file in entry["files"])
    for name, entry in drawn["figures"].items():
        old = {file["file"]: file["sha256"] for file in kept["figures"].get(name, {}).get("files", ())}
        if entry["status"] != records.OK:
            yield Drift(name, f"can no longer be drawn: {entry.get('error', {}).get('text', entry['status'])}")
            continue
        new = [file["file"] for file in entry["files"]]
        yield from (Drift(file, "is no longer drawn") for file in old if file not in new)
        for file in new:
            if what := _difference(folder / file, fresh / file, old.get(file)):
                yield Drift(file, what)


def _difference(kept: Path, fresh: Path, noted: str | None) -> str:
    """How a kept file differs from the fresh one, in words, empty if it does not. noted: its hash in the manifest."""
    if not kept.is_file():
        return "is not there"
    before, after = kept.read_bytes(), fresh.read_bytes()
    if before == after:
        return ""
    edited = " (edited after it was drawn)" if noted not in (None, records.digest(kept)) else ""
    if fresh.suffix == ".svg":
        return describe_change(before, after) + edited
    return f"its content changed (sha256 {records.digest(kept)[:12]}, now {records.digest(fresh)[:12]}){edited}"


# -- pictures
@dataclass(frozen=True)
class _Part:
    """One element with an id. kind: node, arrow, frame or text."""

    kind: str
    texts: tuple[str, ...]
    source: str


def describe_change(before: bytes, after: bytes) -> str:
    """What differs between two SVG figures: parts that came and went, changed texts, and how many merely moved."""
    try:
        old, new = _parts(before), _parts(after)
    except ET.ParseError:
        return "is no SVG that can be read"
    said = [
        *_names("gained", [f"{part.kind} {name}" for name, part in new.items() if name not in old]),
        *_names("lost", [f"{part.kind} {name}" for name, part in old.items() if name not in new]),
    ]
    both = [(name, old[name], new[name]) for name in new if name in old]
    said += _names("says otherwise in", [_said(name, a, b) for name, a, b in both if a.texts != b.texts])
    moved = sum(a.texts == b.texts and a.source != b.source for _, a, b in both)
    if moved:
        said.append(f"{moved} of {len(both)} parts moved or look different")
    return "; ".join(said) or "only its page, title or style changed"


def _names(verb: str, names: Sequence[str]) -> list[str]:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return [f"{verb} {', '.join(names[:_LISTED])}{more}"] if names else []


def _said(name: str, before: _Part, after: _Part) -> str:
    """One changed text of a part, the first of them."""
    old = next((text for text in before.texts if text not in after.texts), None)
    new = next((text for text in after.texts if text not in before.texts), None)
    if old is None or new is None:
        return name
    return f"{name} ({old.strip()!r}, now {new.strip()!r})"


def _parts(data: bytes) -> dict[str, _Part]:
    found: dict[str, _Part] = {}
    for element in ET.fromstring(data).iter(f"{_SVG}g"):
        name, kind = element.get("id"), (element.get("class") or "").partition(" ")[0]
        if name is None or kind == "graph":
            continue
        texts = tuple("".join(text.itertext()) for text in element.iter(f"{_SVG}text"))
        found[name] = _Part(_KINDS.get(kind, "text"), texts, ET.tostring(element, encoding="unicode"))
    return found
