"""The caption lines for looking for a fault: what is usual, how much was checked for NaN and Inf, where these start."""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.units import count_text
from torchlens.records.nonfinite import PARAMETER, UNKNOWN, Nonfinite, Start
from torchlens.records.payloads import KINDS, NAN, UNCHECKED
from torchlens.records.trace_data import TraceData
from torchlens.scene.caption import CAPTIONS, About
from torchlens.scene.marks import WORDS, kinds_text
from torchlens.scene.row_table import usual_of

# Starts, and parameters, that the caption names.
LISTED = 5


@CAPTIONS.add("usual")
def usual(about: About) -> Sequence[str]:
    """What the rows of exceptions are exceptions from."""
    dtype, device = usual_of(about.data)
    return [f"usual dtype {dtype}, device {device}"] if about.request.options.show_exceptions and dtype else ()


@CAPTIONS.add("nonfinite")
def nonfinite(about: About) -> Sequence[str]:
    """How many ops were checked, and in how many each kind was found; nothing if none was."""
    facts = Nonfinite(about.data)
    if not about.request.options.show_nonfinite or not facts.any_checked():
        return ()
    ops = _ops(about)
    held = [facts.held(i) for i in ops]
    checked = sum(one.state != UNCHECKED for one in held)
    counts = {kind: sum(kind in one.kinds for one in held) for kind in KINDS}
    found = ", ".join(f"{WORDS[kind]} in {count_text(count)}" for kind, count in counts.items() if count)
    return [f"nonfinite: checked {checked:,} of {len(ops):,} ops; found {found or 'none'}"]


@CAPTIONS.add("first")
def first(about: About) -> Sequence[str]:
    """Where NaN and Inf start, in order of execution, and which parameters hold them."""
    data, facts = about.data, Nonfinite(about.data)
    if not about.request.options.show_nonfinite or not facts.any_checked():
        return ()
    starts = [(i, start) for i in range(len(data.nodes)) for start in facts.starts(i)]
    inside, aside = frozenset(about.plan.focus.members) if about.plan.focus else None, ""
    shown = [(i, start) for i, start in starts if inside is None or i in inside]
    if inside is not None and not shown and any(facts.held(i).kinds for i in _ops(about)):
        shown, aside = starts, " outside this module"
    read = data.nodes.params
    looked_at = range(len(data.nodes)) if inside is None else inside
    params = {p for i in looked_at for p in read[i]}
    wrong = [p for p in sorted(params) if facts.parameter(p).kinds]
    names = [f"@{data.params[p].address} ({kinds_text(facts.parameter(p).kinds)})" for p in wrong]
    # Of many, those of NaN are told: a mask of -Inf in every layer is no news.
    few = sorted(sorted(range(len(shown)), key=lambda k: NAN not in shown[k][1].kinds)[:LISTED])
    said = [f"{_start_text(data, *shown[k])}{aside}" for k in few]
    lines = [f"first: {_listed(said, len(shown))}"] if shown else []
    return [*lines, f"parameters: {_listed(names, len(names))}"] if names else lines


def _ops(about: About) -> list[int]:
    """The ops of the trace, or of the module in focus."""
    focus, kinds = about.plan.focus, about.data.nodes.kind
    return [i for i in focus.members if kinds[i] == "op"] if focus else about.data.op_indexes


def _start_text(data: TraceData, node: int, start: Start) -> str:
    what = kinds_text(start.kinds)
    if start.cause == PARAMETER:
        more = len(start.sources) - 1
        given = f"@{start.sources[0]}" + (f" and {more} more" if more else "")
        return f"{given} read by {start.label} ({what})"
    if start.cause == UNKNOWN:
        return f"{start.label} ({what}, start not known)"
    name = f"@{data.nodes.path[node]}" if start.cause == "buffer" else start.label
    return f"{name} ({what})"


def _listed(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names[:LISTED])
    return f"{shown}, +{count - LISTED} more" if count > LISTED else shown
