"""What users attached to nodes, as rows and pictures: `trace.annotate`, thumbnails. Knows no image library.

A node that stands for several passes shows what they have in common; where they differ it says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from torchlens.base.text import truncate, wrap
from torchlens.base.units import value_text
from torchlens.plan.graph import MODULE, STUBS, PlanNode
from torchlens.records.notes import Note, batch_limit, batch_render, note_of
from torchlens.records.trace_data import TraceData
from torchlens.scene.images import lay_out
from torchlens.scene.layers import Patch, StyleLayer, overlay
from torchlens.scene.model import NodeStyle, SceneNode
from torchlens.scene.row_table import ROWS, WIDTH, RowContext

MOST_ROWS, VALUE_WIDTH = 3, 100
_PICTURED = Patch(StyleLayer.MARK, "carries a picture", NodeStyle(shape="box", rounded=True))


@ROWS.add("annotation")
def annotation_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Attached data as `key: value`, at most three; and how many pictures of a batch are not shown."""
    notes = _notes(context.data, node)
    keys = list(dict.fromkeys(key for note in notes for key in note.data))
    lines: list[str] = []
    for key in keys[:MOST_ROWS]:
        values = [note.data.get(key) for note in notes]
        same = all(type(value) is type(values[0]) and value == values[0] for value in values)
        text = _value_text(values[0]) if same else f"varies across {'calls' if node.kind == MODULE else 'passes'}"
        lines += wrap(f"{key}: {text}" if key else text, WIDTH, (", ", " "))
    if len(keys) > MOST_ROWS:
        lines.append(f"+{len(keys) - MOST_ROWS} more")
    return [*lines, *_about_pictures(context.data, notes)]


def _about_pictures(data: TraceData, notes: Sequence[Note]) -> list[str]:
    if any(note.image is not None for note in notes):
        return ["pictures vary across passes"] if len({note.image for note in notes}) > 1 else []
    limit = batch_limit(batch_render(data))
    hidden = len(notes[0].batch) - limit if notes and limit else 0
    return [f"+{hidden} more picture{'s' if hidden > 1 else ''}"] if hidden > 0 else []


def with_pictures(data: TraceData, node: PlanNode, drawn: SceneNode) -> SceneNode:
    """The node with what it carries: a rounded box in its usual fill, the picture above the text."""
    notes = _notes(data, node)
    shown: list[bytes] = []
    if notes and all(note.image == notes[0].image for note in notes):
        image = notes[0].image
        shown = [image] if image is not None else list(notes[0].batch[: batch_limit(batch_render(data))])
    if not shown:
        return drawn
    return overlay(drawn, _PICTURED)._replace(pictures=lay_out(shown))


def _notes(data: TraceData, node: PlanNode) -> list[Note]:
    """The notes of a node's passes; of a box, those of the ops that it returns. Empty where nothing is attached.

    A stub stands for something outside the figure, whose notes belong there.
    """
    if not data.annotations or node.kind in STUBS:
        return []
    nodes = [leaving[0][0] for leaving in node.outputs if leaving] if node.kind == MODULE else node.members
    notes = [note_of(data, i) for i in nodes]
    return notes if any(note.data or note.image or note.batch for note in notes) else []


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return truncate(value, VALUE_WIDTH)
    if isinstance(value, float):
        return value_text(value)
    return truncate(json.dumps(cast("Any", value), ensure_ascii=False), VALUE_WIDTH)
