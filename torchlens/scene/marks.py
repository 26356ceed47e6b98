"""Marks of what was found in the values: which nodes put out NaN or Inf, where that starts, and which nobody looked at.

A mark is words in a row and a patch of the style, the same in every theme: the colours of its motif side by side where
a shape can be split, and a border everywhere. What was not checked never looks as if it were finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from torchlens.base.text import wrap
from torchlens.base.units import count_text, counted, passes_text
from torchlens.plan.graph import CLOSED, OUTPUTS, TO, Plan, PlanNode
from torchlens.records.nonfinite import PARAMETER, UNKNOWN, Nonfinite, joined
from torchlens.records.payloads import MIXED, NAN, NEGINF, POSINF, UNCHECKED, Held
from torchlens.records.trace_data import TraceData
from torchlens.scene.layers import Patch, StyleLayer
from torchlens.scene.model import NodeStyle, SceneNode
from torchlens.scene.row_table import ROWS, WIDTH, RowContext

TOKEN = "nonfinite"
# Characters after which the row of an op is broken: a wide ellipse would lie under the labels of its arrows.
ROW_WIDTH = 32
# Part of the source of what a mark sets.
SOURCE = "nonfinite status"
# Okabe-Ito colours, told apart with every kind of colour vision; `a:b` are two halves.
MOTIFS = {
    NAN: "#d55e00:#ffffff",
    POSINF: "#e69f00:#ffffff",
    NEGINF: "#cc79a7:#ffffff",
    MIXED: "#d55e00:#e69f00",
}
NOT_CHECKED = "#7f7f7f"
# Points: the border of a node that passes something on, of one where it starts, of one that nobody looked at.
PASSED_WIDTH, START_WIDTH, UNCHECKED_WIDTH = 3.0, 6.0, 2.0
# Of the sample of a start in the key.
SAMPLE_WIDTH = 4.0
WORDS = {NAN: "NaN", POSINF: "+Inf", NEGINF: "-Inf", MIXED: "several of NaN, +Inf, -Inf"}
# What a key says.
KEY_WORDS = {**WORDS, UNCHECKED: "not checked for NaN and Inf"}
# Shapes that can be filled with colours side by side.
_SPLIT = ("oval", "box")


class Reading(NamedTuple):
    """What a drawn node shows. state: as of `Held`, "" if there is nothing to show; starts: whether it starts there;
    text: the row without its title.
    """

    state: str = ""
    starts: bool = False
    text: str = ""


@ROWS.add(TOKEN)
def nonfinite_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """`nonfinite: NaN, starts here`; nothing for finite numbers."""
    text = Readings.of(context).read(node).text
    return wrap(f"nonfinite: {text}", WIDTH if node.kind in CLOSED else ROW_WIDTH, (", ",)) if text else ()


class Readings:
    """The readings of the nodes of one figure."""

    def __init__(self, data: TraceData, plan: Plan) -> None:
        self.facts = Nonfinite(data)
        self._data, self._plan = data, plan
        # Where no value was looked at, there is nothing to show and much to say: the caption says it once.
        self._blind = not self.facts.any_checked()
        self._known: dict[str, Reading] = {}

    @classmethod
    def of(cls, context: RowContext) -> Readings:
        """Those of a figure, made once."""
        found = context.shared.get(TOKEN)
        if not isinstance(found, cls):
            found = context.shared[TOKEN] = cls(context.data, context.plan)
        return found

    def read(self, node: PlanNode) -> Reading:
        """What a node shows. A stub shows what comes in from outside, and nothing of what leaves."""
        found = self._known.get(node.name)
        if found is None:
            found = self._known[node.name] = self._read(node)
        return found

    def _read(self, node: PlanNode) -> Reading:
        members = node.members or node.outside
        if self._blind or node.kind == TO or not members:
            return Reading()
        kinds = self._data.nodes.kind
        if node.kind == OUTPUTS or node.kind not in CLOSED:
            counted = members
        else:
            counted = tuple(i for i in members if kinds[i] == "op")
        held = joined(self.facts.held(i) for i in counted)
        if not held.kinds:
            return Reading() if held.known else Reading(UNCHECKED, False, self._unchecked(node, counted))
        tails = self._tails(node, members)
        starts = any(not tail.endswith(_NOT_KNOWN) for tail in tails)
        return Reading(held.state, starts, ", ".join([self._found(node, counted, held), *tails]))

    # -- words
    def _found(self, node: PlanNode, members: Sequence[int], held: Held) -> str:
        """`NaN`, `NaN in passes 2-3`, `NaN in 2, +Inf in 1 of 14 ops`."""
        if len(members) == 1 and node.kind not in CLOSED:
            return kinds_text(held.kinds)
        having = {kind: [i for i in members if kind in self.facts.held(i).kinds] for kind in held.kinds}
        if node.kind in CLOSED:
            noun = "tensor" if node.kind == OUTPUTS else "op"
            counts = ", ".join(f"{WORDS[kind]} in {count_text(len(found))}" for kind, found in having.items())
            return f"{counts} of {counted(len(members), noun)}"
        return ", ".join(
            WORDS[kind] + (f" in {self._passes(found)}" if len(found) < len(members) else "")
            for kind, found in having.items()
        )

    def _unchecked(self, node: PlanNode, members: Sequence[int]) -> str:
        missing = [i for i in members if not self.facts.held(i).known]
        if node.kind in CLOSED:
            return f"{count_text(len(missing))} of {count_text(len(members))} not checked"
        return "not checked" if len(missing) == len(members) else f"{self._passes(missing)} not checked"

    def _passes(self, nodes: Iterable[int]) -> str:
        numbers = [self._data.nodes.pass_number[i] for i in nodes]
        return f"pass{'es' if len(numbers) > 1 else ''} {passes_text(numbers)}"

    def _tails(self, node: PlanNode, members: Sequence[int]) -> list[str]:
        """Where what a node holds came from, if not from what leads to it on the page."""
        starts = [(i, start) for i in members for start in self.facts.starts(i)]
        own = [(i, start.kinds) for i, start in starts if start.cause not in (PARAMETER, UNKNOWN)]
        tails: list[str] = []
        if own and node.kind in CLOSED:
            more = len(dict.fromkeys(i for i, _ in own)) - 1
            tails.append(f"starts at {self._data.nodes.label[own[0][0]]}" + (f" and {more} more" if more else ""))
        elif own:
            kinds = joined(Held(kinds) for _, kinds in own).kinds
            held = joined(map(self.facts.held, members)).kinds
            what = "" if kinds == held else f"{kinds_text(kinds)} "
            first = own[0][0]
            tails.append(f"{what}starts " + ("here" if first == members[0] else f"in {self._passes([first])}"))
        given = dict.fromkeys(source for _, start in starts for source in start.sources)
        given |= dict.fromkeys(giver for i in members for giver in self._unseen_givers(i))
        if given:
            more = len(given) - 1
            tails.append(f"comes from @{next(iter(given))}" + (f" and {more} more" if more else ""))
        if any(start.cause == UNKNOWN for _, start in starts):
            tails.append(_NOT_KNOWN)
        return tails

    def _unseen_givers(self, node: int) -> list[str]:
        """Addresses of the buffers from which something nonfinite starts and which are not on the page."""
        t = self._data.nodes
        return [
            t.path[ref.node]
            for ref in t.parents[node]
            if t.kind[ref.node] == "buffer" and ref.node not in self._drawn and self.facts.starts(ref.node)
        ]

    @cached_property
    def _drawn(self) -> frozenset[int]:
        return frozenset(i for node in self._plan.nodes for i in node.members)


_NOT_KNOWN = "start not known"


def mark_of(reading: Reading, shape: str, start_color: str | None, *, whole: bool) -> Patch | None:
    """The patch that marks a node.

    start_color: of the border where something starts, which stands out from the motif; None: that of the motif, for a
    node whose fill is somebody else's; whole: whether the node stands for one record or layer, since of anything else
    only the border is marked.
    """
    source = f"{SOURCE}: {reading.state}"
    if not reading.state:
        return None
    if reading.state == UNCHECKED:
        style = NodeStyle(stroke=NOT_CHECKED, stroke_width=UNCHECKED_WIDTH, dash="dashed")
        return Patch(StyleLayer.MARK, source, style)
    motif = MOTIFS[reading.state]
    split = whole and shape in _SPLIT
    style = NodeStyle(
        fill=motif if split else None,
        split=True if split else None,
        stroke=start_color if start_color and reading.starts and split else motif.partition(":")[0],
        stroke_width=START_WIDTH if reading.starts else PASSED_WIDTH,
    )
    return Patch(StyleLayer.MARK, source, style)


def kinds_text(kinds: Iterable[str]) -> str:
    """`NaN and +Inf`."""
    return " and ".join(WORDS[kind] for kind in kinds)


# -- key
def samples(nodes: Iterable[SceneNode]) -> list[tuple[str, NodeStyle]]:
    """What the marks on the page mean, beside a sample of each: its own part of a finished style, and nothing else."""
    found: dict[str, NodeStyle] = {}
    start: NodeStyle | None = None
    for node in nodes:
        sources = [step.source for step in node.trail.get("stroke", ()) if step.source.startswith(f"{SOURCE}: ")]
        style = _own_part(node, sources[-1]) if sources else NodeStyle()
        if style == NodeStyle():
            continue
        state = sources[-1].removeprefix(f"{SOURCE}: ")
        if state not in found or _clearness(style) > _clearness(found[state]):
            found[state] = style
        if style.stroke_width == START_WIDTH and start is None:
            start = NodeStyle(stroke=style.stroke, stroke_width=SAMPLE_WIDTH)
    made = [(words, _thin(found[state])) for state, words in KEY_WORDS.items() if state in found]
    return [*made, ("thick border: starts here", start)] if start else made


def _own_part(node: SceneNode, source: str) -> NodeStyle:
    """The attributes that a mark set and nobody overruled."""
    return NodeStyle(**{name: getattr(node.style, name) for name, who in node.origin.items() if who == source})


def unmarked(node: SceneNode) -> NodeStyle:
    """The style of a node as it would be without a mark."""
    marked = [name for name, source in node.origin.items() if source.startswith(f"{SOURCE}: ")]
    before = {name: [step.value for step in node.trail[name] if step.layer < StyleLayer.MARK] for name in marked}
    values: dict[str, Any] = {name: steps[-1] if steps else None for name, steps in before.items()}
    return replace(node.style, **values)


def _clearness(style: NodeStyle) -> tuple[bool, bool]:
    """A sample shows the colours of the motif if it can, and its own border."""
    return bool(style.split), style.stroke_width != START_WIDTH


def _thin(style: NodeStyle) -> NodeStyle:
    """A border that fits a sample."""
    return replace(style, stroke_width=min(style.stroke_width or 0.0, UNCHECKED_WIDTH))
