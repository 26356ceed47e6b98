"""The header: whose inside the figure shows, what that holds whatever is drawn, and notes about the recording."""

from __future__ import annotations

from torchlens.base.text import fill, truncate
from torchlens.base.units import bytes_text, count_text, counted
from torchlens.plan.collapse.guard import FALLBACK
from torchlens.plan.collapse.quality import AUTO
from torchlens.plan.collapse.report import CEILING, CollapsePlan
from torchlens.plan.graph import Plan, Tally, tally_module, tally_network
from torchlens.records.trace_data import TraceData
from torchlens.scene.caption import PROSE_WIDTH
from torchlens.scene.model import TextLine
from torchlens.scene.rows import call_title, params_text
from torchlens.settings.compose import DrawRequest

# A note may hold the text of any exception, and the page is as wide as its widest line.
NOTE_LIMIT = 300
# Characters of a line in the size of node text.
TITLE_WIDTH = 60


def header_lines(data: TraceData, request: DrawRequest, plan: Plan | None = None) -> list[TextLine]:
    """The lines of the header, from the top: of the whole network, or of the module in focus."""
    focus, collapse = (plan.focus, plan.collapse) if plan else (None, None)
    theme = request.theme
    base, small = theme.fonts.base, theme.fonts.secondary
    counts = tally_module(data, focus) if focus else tally_network(data)
    title, facts = data.model_class, [_ops_text(counts), _network_params(counts)]
    if focus:
        title = f"{title} > {call_title(data, focus.calls).removeprefix('@')}"
        facts[0] += f" across {len(focus.calls)} calls" if len(focus.calls) > 1 else ""
        facts.insert(0, f"class {data.modules[focus.module].class_name}")
    titles = fill(truncate(title, NOTE_LIMIT), TITLE_WIDTH)
    lines = [TextLine("header", text, base, theme.page.text, bold=True) for text in titles]
    facts = [line for fact in facts for line in fill(truncate(fact, NOTE_LIMIT), TITLE_WIDTH)]
    lines += [TextLine("header", text, base, theme.page.secondary) for text in facts]
    notes = [truncate(note, NOTE_LIMIT) for note in (*_provenance(data), *_outcome(data), *_folding(collapse))]
    texts = [text for note in notes for line in note.splitlines() for text in fill(line, PROSE_WIDTH)]
    return lines + [TextLine("header", text, small, theme.page.secondary) for text in texts]


def _ops_text(counts: Tally) -> str:
    return f"{counted(counts.ops, 'op')} ({bytes_text(counts.output_bytes)})"


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
    return [f"input: shape {origin}{where}, {data.provenance.recipe or 'random values'}"]


def _folding(collapse: CollapsePlan | None) -> list[str]:
    """That a page meant to be readable could not be made so, and who folded it where that was not the usual planner."""
    if collapse is None:
        return []
    simple = ["collapse: folded by the simple planner"] if collapse.planner == FALLBACK else []
    simple += ["collapse: too large to plan, outermost modules only"] if collapse.reason == CEILING else []
    above = collapse.mode == AUTO and collapse.nodes > collapse.band
    return [*simple, *([f"collapse: {collapse.nodes} nodes, above the readable band"] if above else [])]


def _outcome(data: TraceData) -> list[str]:
    outcome = data.outcome
    stopped = [] if outcome.completed else [f"the forward stopped early{': ' + outcome.error if outcome.error else ''}"]
    return [*stopped, *outcome.advisories]
