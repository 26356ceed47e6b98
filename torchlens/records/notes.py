"""What a user attaches to the nodes of a trace: rows of plain data, and pictures as the bytes of a PNG.

They live among the annotations of the trace, by label, as plain values that any file format can hold. What a picture
shows is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from torchlens.base.errors import error
from torchlens.records.trace_data import TraceData

NOTES, BATCH_RENDER = "nodes", "batch_render"
# How many pictures of a batch a node shows at most.
BATCH_LIMITS: Mapping[str, int] = {"auto": 4, "all": 16, "first": 1, "shape_only": 0}
MOST_PICTURES = 16
DEFAULT_BATCH = "auto"
_FIRST_N = re.compile(r"first_n:([1-9][0-9]*)")


class Note(NamedTuple):
    """What is attached to one node. data: rows by name, the name "" for a lone value; pictures: of one tensor each."""

    data: Mapping[str, object]
    image: bytes | None
    batch: tuple[bytes, ...]


EMPTY = Note({}, None, ())


def attach(
    data: TraceData,
    nodes: Iterable[int],
    *,
    rows: Mapping[str, object] | None = None,
    image: bytes | None = None,
    batch: tuple[bytes, ...] = (),
) -> tuple[str, ...]:
    """Attach to nodes and return their labels. Rows are added to those there, a picture takes the place of the old one.

    batch: pictures of the items that an input holds.
    """
    table = cast("dict[str, dict[str, Any]]", data.annotations.setdefault(NOTES, {}))
    labels = tuple(data.nodes.label[i] for i in nodes)
    for label in labels:
        entry = table.setdefault(label, {})
        if rows:
            entry["data"] = {**entry.get("data", {}), **rows}
        if image is not None:
            entry["image"] = image
        if batch:
            entry["batch"] = batch
    return labels


def note_of(data: TraceData, node: int) -> Note:
    """What is attached to a node; what is no such entry, in a file that another program wrote, is not there."""
    table = data.annotations.get(NOTES)
    entry = cast("dict[str, Any]", table).get(data.nodes.label[node]) if isinstance(table, dict) else None
    if not isinstance(entry, dict):
        return EMPTY
    found = cast("dict[str, Any]", entry)
    rows, image, batch = found.get("data"), found.get("image"), found.get("batch", ())
    return Note(
        cast("dict[str, object]", rows) if isinstance(rows, dict) else {},
        image if isinstance(image, bytes) else None,
        tuple(item for item in cast("Iterable[object]", batch) if isinstance(item, bytes)),
    )


def plain_rows(value: object) -> dict[str, object]:
    """Data as rows: a mapping's own names, anything else as one row without a name.

    Raises: InvalidArgumentError[annotation_invalid] for what JSON cannot hold.
    """
    named = dict(cast("Mapping[object, object]", value)) if isinstance(value, Mapping) else {"": value}
    try:
        plain = json.loads(json.dumps(named, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as cause:
        raise error("annotation_invalid", f"data={value!r:.80} is no plain data: {cause}") from cause
    return cast("dict[str, object]", plain)


# -- batches
def check_batch_render(value: object) -> str:
    """The value as it is stored. Raises InvalidArgumentError[batch_render_invalid]."""
    if isinstance(value, str) and (value in BATCH_LIMITS or _FIRST_N.fullmatch(value)):
        return value
    allowed = [*BATCH_LIMITS, "first_n:3"]
    raise error(
        "batch_render_invalid", f"batch_render={value!r} is not a way to show a batch", allowed=allowed, got=value
    )


def batch_render(data: TraceData) -> str:
    """How the pictures of an input are shown."""
    return str(data.annotations.get(BATCH_RENDER, DEFAULT_BATCH))


def batch_limit(value: str) -> int:
    """How many pictures of a batch are shown, 16 at most."""
    counted = _FIRST_N.fullmatch(value)
    return min(int(counted[1]), MOST_PICTURES) if counted else BATCH_LIMITS.get(value, BATCH_LIMITS[DEFAULT_BATCH])
