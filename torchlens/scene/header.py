"""The header: the model's class, what the whole network holds whatever is drawn, and notes about the recording."""

from __future__ import annotations

from torchlens.base.text import fill, truncate
from torchlens.base.units import bytes_text, count_text
from torchlens.plan.graph import Tally, tally_network
from torchlens.records.trace_data import TraceData
from torchlens.scene.caption import PROSE_WIDTH
from torchlens.scene.model import TextLine
from torchlens.scene.rows import params_text
from torchlens.settings.compose import DrawRequest

# A note may hold the text of any exception, and the page is as wide as its widest line.
NOTE_LIMIT = 300


def header_lines(data: TraceData, request: DrawRequest) -> list[TextLine]:
    """The lines of the header, from the top."""
    theme, counts = request.theme, tally_network(data)
    base, small = theme.fonts.base, theme.fonts.secondary
    lines = [
        TextLine("header", data.model_class, base, theme.page.text, bold=True),
        TextLine("header", _ops_text(counts), base, theme.page.secondary),
        TextLine("header", _network_params(counts), base, theme.page.secondary),
    ]
    notes = [truncate(note, NOTE_LIMIT) for note in (*_provenance(data), *_outcome(data))]
    texts = [text for note in notes for line in note.splitlines() for text in fill(line, PROSE_WIDTH)]
    return lines + [TextLine("header", text, small, theme.page.secondary) for text in texts]


def _ops_text(counts: Tally) -> str:
    return f"{count_text(counts.ops)} op{'' if counts.ops == 1 else 's'} ({bytes_text(counts.output_bytes)})"


def _network_params(counts: Tally) -> str:
    if 0 < counts.trainable < counts.params:
        total, trainable = count_text(counts.params), count_text(counts.trainable)
        if trainable == total:  # so few are frozen that the rounded numbers would say that none is
            return f"{total} params ({count_text(counts.params - counts.trainable)} frozen)"
        return f"{total} params ({trainable} of {total} trainable)"
    return params_text(counts)


def _provenance(data: TraceData) -> list[str]:
    """Whose shapes and values went in, where they were not the user's."""
    origin = data.provenance.origin
    if origin == "user":
        return []
    shapes = [
        "x".join(map(str, shape)) if shape else "scalar" for shape, _, _ in data.provenance.tensors if shape is not None
    ]
    where = f" ({', '.join(shapes)})" if shapes else ""
    return [f"input: shape {origin}{where}, random values"]


def _outcome(data: TraceData) -> list[str]:
    outcome = data.outcome
    stopped = [] if outcome.completed else [f"the forward stopped early{': ' + outcome.error if outcome.error else ''}"]
    return [*stopped, *outcome.advisories]
