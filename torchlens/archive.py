"""Saved traces: one file that holds all records and values of a trace, written whole or not at all.

The file is in the safetensors format. Its first tensor is the records, as the bytes of a JSON document (`codec`);
the others are the kept values, under the labels of their ops. The format needs no code to be run for reading (no
pickle), lets values be read one by one on demand, and is written from front to back, one value in memory at a time.
The header alone would not do for the records: it is bounded, and it has to be parsed for every single value.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from torchlens.base.errors import TorchLensError, UnavailableError, error, fail, first_line, warn
from torchlens.base.files import replacing
from torchlens.records.codec import Json, decode, encode
from torchlens.trace_view import Trace

if TYPE_CHECKING:
    from torchlens.analysis.recording import Recording
    from torchlens.records.trace_data import TraceData
    from torchlens.stored_values import Range, Shelf

# Raise it when a file means something else than before; a column or field more needs no new number.
SCHEMA = 1
FORMAT = "torchlens_trace"
RECORDS = "records"
# Source: MAX_HEADER_SIZE of the safetensors format; a longer header is refused by every reader.
MAX_HEADER = 100_000_000
_ALIGNMENT = 64
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)


class _Loaded(NamedTuple):
    """What a trace is made of, as `analysis.recording.Recording` has it."""

    data: TraceData
    payloads: Any
    result: object


# -- saving


def save_trace(trace: Trace, path: str | os.PathLike[str]) -> Path:
    """Write a trace; see `Trace.save`."""
    document, left_out = encode(trace.data)
    ranges: list[Range] = []
    if trace.data.outcome.values_kept:
        from torchlens.stored_values import Shelf

        shelf = Shelf()
        document["values"] = _values(trace, shelf)
        ranges, document["views"] = shelf.ranges()
        document["keys"] = [item.key for item in ranges]
        left_out += [f"the values of {_few(keys)}: {why}" for why, keys in shelf.left_out.items()]
    text = json.dumps({"schema": SCHEMA, **document}, separators=(",", ":"), allow_nan=False).encode("ascii")
    text = text.ljust(len(text) + -len(text) % _ALIGNMENT)
    header = _header(text, ranges)
    with replacing(path) as file:
        file.write(header)
        file.write(text)
        for item in ranges:
            file.write(item.read())
    if left_out:
        warn("save_incomplete", f"{os.fspath(path)!r} lacks {'; '.join(left_out)}", left_out=tuple(left_out))
    return Path(path)


def _values(trace: Trace, shelf: Shelf) -> Json:
    """Kept values per node, and why the others have none."""
    from torchlens.stored_values import is_plain

    kept: list[tuple[int, Json]] = []
    lost: list[tuple[int, str, str]] = []
    for node, label in enumerate(trace.data.nodes.label):
        try:
            value = trace.value(node)
        except UnavailableError as refusal:
            if refusal.code != "payload_unavailable":
                lost.append((node, refusal.code, "was overwritten after its call"))
            continue
        cell = shelf.value(label, value)
        if cell is None:
            lost.append((node, "payload_unavailable", "has no place in a file and was not saved"))
        else:
            kept.append((node, cell))
    result = shelf.value("result", trace.result) if is_plain(trace.result) else None
    return {"nodes": [node for node, _ in kept], "cells": [cell for _, cell in kept], "lost": lost, "result": result}


def _few(labels: list[str]) -> str:
    more = len(labels) - 3
    return ", ".join(labels[:3]) + (f" and {more} more" if more > 0 else "")


def _header(records: bytes, ranges: list[Range]) -> bytes:
    """Length and JSON of the header, padded so that what follows is aligned."""
    digest = hashlib.blake2b(records, digest_size=16).hexdigest()
    meta = {"format": FORMAT, "schema": str(SCHEMA), "records": digest}
    header: dict[str, Json] = {"__metadata__": meta}
    header[RECORDS] = {"dtype": "U8", "shape": [len(records)], "data_offsets": [0, len(records)]}
    end = len(records)
    for item in ranges:
        first, end = end, end + item.last - item.first
        header[item.key] = {"dtype": item.code, "shape": item.shape, "data_offsets": [first, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text = text.ljust(len(text) + -(8 + len(text)) % _ALIGNMENT)
    if len(text) > MAX_HEADER:
        fail("save_too_large", f"{len(ranges)} separate values are more than one file can list", ranges=len(ranges))
    return len(text).to_bytes(8, "little") + text


# -- loading


def load(path: str | os.PathLike[str]) -> Trace:
    """The trace that `Trace.save` wrote. It draws the same figures, byte by byte, and refuses the same values.

    Values are read when they are first asked for, as tensors on the CPU without gradients; the file is open for that,
    so it may be replaced or removed, but not written into. `result` is what the forward returned if that was tensors
    and numbers in plain containers, else None; a named tuple of the model's own is replaced by one of the same name
    and fields. Nothing in a file is run.

    Raises: LoadError[load_file_missing] if there is no such file or it cannot be read; [load_file_invalid] if it is
    damaged, cut off or something else; [load_schema_unknown] if a newer torchlens wrote it.
    """
    name = os.fspath(path)
    document, digest = _read_records(name)
    try:
        data = decode(document)
        payloads, result = None, None
        if "values" in document:
            payloads = _open_values(name, document, digest)
            result = payloads.build(document["values"]["result"])
    except _BROKEN as cause:
        if isinstance(cause, TorchLensError):
            raise
        raise _invalid(name, f"its records cannot be read: {first_line(cause)}") from cause
    return Trace(cast("Recording", _Loaded(data, payloads, result)))


def _read_records(name: str) -> tuple[dict[str, Json], str]:
    """The document of a file and the digest of its bytes."""
    with _opened(name, "numpy") as file:
        meta = file.metadata() or {}
        if meta.get("format") != FORMAT or RECORDS not in file.keys():  # noqa: SIM118 - it is no mapping
            raise _invalid(name, "it is a safetensors file of something else than a trace")
        _check_schema(name, meta.get("schema", ""))
        text = file.get_tensor(RECORDS).tobytes()
    digest = hashlib.blake2b(text, digest_size=16).hexdigest()
    if digest != meta.get("records"):
        raise _invalid(name, "its records were changed after saving")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise _invalid(name, f"its records are no JSON: {first_line(cause)}") from cause
    return document, digest


def _check_schema(name: str, text: str) -> None:
    if not text.isdecimal():
        raise _invalid(name, f"its schema is {text!r}")
    if int(text) != SCHEMA:
        what = f"{name!r} is of schema {text}; this version reads {SCHEMA}"
        fail("load_schema_unknown", what, path=name, schema=int(text))


def _open_values(name: str, document: dict[str, Json], digest: str) -> Any:
    from torchlens.stored_values import StoredValues

    file = _opened(name, "pt")
    if (file.metadata() or {}).get("records") != digest:
        raise _invalid(name, "another file took its place while it was read")
    values = document["values"]
    kept = dict(zip(values["nodes"], values["cells"], strict=True))
    lost = {node: (code, why) for node, code, why in values["lost"]}
    return StoredValues(file, document["keys"], document["views"], kept, lost)


def _opened(name: str, framework: str) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        with Path(name).open("rb"):
            # Gives the error of a folder, or of a file that may not be read, its usual class.
            pass
        return safe_open(name, framework=framework)
    except SafetensorError as cause:
        raise _invalid(name, f"it is no safetensors file, or a part of one: {first_line(cause)}") from cause
    except (OSError, ValueError) as cause:
        what = f"{name!r} cannot be read: {getattr(cause, 'strerror', None) or cause}"
        raise error("load_file_missing", what, path=name) from cause


def _invalid(name: str, why: str) -> TorchLensError:
    return error("load_file_invalid", f"{name!r} holds no trace: {why}", path=name)
