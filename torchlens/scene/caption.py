"""The caption lines of a view: one registered function per name, and nothing where a line does not apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlens.base.registry import Registry
from torchlens.base.text import fill
from torchlens.base.units import counted
from torchlens.plan.collapse.quality import AUTO
from torchlens.plan.collapse.report import CEILING, CollapsePlan
from torchlens.plan.graph import COPY, Plan
from torchlens.records.trace_data import TraceData
from torchlens.scene.channels import Channel
from torchlens.scene.sizes import DIMS, SizeChannel
from torchlens.scene.stack import Stack
from torchlens.settings.channel_checks import shows_times
from torchlens.settings.compose import DrawRequest
from torchlens.settings.options import options as declared
from torchlens.settings.resolvers import block_at
from torchlens.settings.sources import PASSES


@dataclass(frozen=True, slots=True)
class About:
    """What a line may be written from. channel, sizes, columns: None where the figure has none."""

    data: TraceData
    plan: Plan
    request: DrawRequest
    channel: Channel | None = None
    sizes: SizeChannel | None = None
    columns: Stack | None = None


CaptionLine = Callable[[About], Sequence[str]]
PROSE_WIDTH = 100
# Sources that the caption names.
COPIES_LISTED = 5
CAPTIONS: Registry[CaptionLine] = Registry("caption line")
_GREY = "grey boxes: aggregate, not encoded"


def caption_lines(about: About) -> list[str]:
    """The lines of the view, what holds for a folded figure of any view, then the user's own."""
    view, lines = about.request.view, list[str]()
    for name in view.caption if view else ():
        lines += CAPTIONS.get(name)(about)
    if view is not None:
        lines += [line for line in _folded(about) if line not in lines]
    lines += [*_left_out(about.plan), *_copies(about.plan)]
    if about.request.options.caption:
        lines += about.request.options.caption.splitlines()
    return [text for line in lines for text in fill(line, PROSE_WIDTH)]


def _folded(about: About) -> list[str]:
    """How far the figure is folded, and what a box without a colour is."""
    channel, lines = about.channel, list[str]()
    if about.plan.collapse is not None:
        lines += _level(about.plan.collapse)
    return [*lines, *([_GREY] if channel is not None and channel.neutral else [])]


def _level(collapse: CollapsePlan) -> list[str]:
    """`collapse level 0.42: 134 of 515 nodes`; nothing if all of them are drawn."""
    if collapse.nodes >= collapse.total:
        return []
    how = "repeats folded" if collapse.folds else "outputs alike drawn as one"
    if collapse.reason == CEILING:
        how = "outermost modules only"
    elif collapse.depth is not None:
        how = f"depth {collapse.depth}"
    elif collapse.level is not None and collapse.level > 0:
        # What `auto` evens is on no step of the schedule.
        how = "collapse auto" if collapse.mode == AUTO else f"collapse level {collapse.level:g}"
    depth = collapse.context["depth"]  # what lies deeper is in none of the two numbers
    level = "" if depth == declared()["depth"].default else f" at depth {depth}"
    return [f"{how}: {collapse.nodes} of {collapse.total} nodes{level}"]


def _left_out(plan: Plan) -> list[str]:
    """How many ops of the header's count are on no node, since rules took them off the page."""
    return [f"{counted(len(plan.left_out), 'op')} hidden by collapse_rules"] if plan.left_out else []


def _copies(plan: Plan) -> list[str]:
    """That some sources are named again beside their readers, and how often each is."""
    counts = Counter(node.name.removeprefix("stub:from:") for node in plan.nodes if node.kind == COPY)
    if not counts:
        return []
    listed = ", ".join(f"{name} (x{count})" for name, count in list(counts.items())[:COPIES_LISTED])
    more = f", +{len(counts) - COPIES_LISTED} more" if len(counts) > COPIES_LISTED else ""
    return [f"small stubs name what is drawn elsewhere and read far away: {listed}{more}"]


@CAPTIONS.add("coverage")
def coverage(about: About) -> Sequence[str]:
    """How many of the network's ops carry a colour, and what a box without one means."""
    channel = about.channel
    if channel is None:
        return ()
    lines = [f"encoded {channel.encoding.encoded} of {channel.encoding.eligible} ops"]
    lines += [_GREY] if channel.neutral else []
    return [*lines, f"uncoloured nodes: no {channel.source.name}"] if channel.blank else lines


@CAPTIONS.add("quantity")
def quantity(about: About) -> Sequence[str]:
    """What the coloured number is."""
    channel = about.channel
    if channel is None:
        return ()
    return [channel.source.total if about.plan.rolled else channel.source.per_op]


@CAPTIONS.add("rank_order")
def rank_order(about: About) -> Sequence[str]:
    """That equal colour steps are no equal steps of the value."""
    channel = about.channel
    if channel is None or not channel.active or about.request.options.color_scale != "rank":
        return ()
    return ["colour shows rank order, not proportion"]


@CAPTIONS.add("instrumented")
def instrumented(about: About) -> Sequence[str]:
    """What measured times may be compared with."""
    if not shows_times(about.request.options):
        return ()
    return ["times from an instrumented run: compare ops with each other, not with production latency"]


@CAPTIONS.add("area")
def area(about: About) -> Sequence[str]:
    """What a large box means, and what it does not."""
    if about.sizes is None or about.sizes.source.name != DIMS:
        return ()
    same = "512x7x7 and 128x14x14 draw the same size"
    return [f"box area shows element count per batch item, not shape ({same})"]


@CAPTIONS.add("focus")
def focus(about: About) -> Sequence[str]:
    """Which module the figure shows the inside of, and of how many alike."""
    focused = about.plan.focus
    if focused is None:
        return ()
    block, module = block_at(about.data, focused.module, focused.calls), about.data.modules[focused.module]
    if block is None:
        return [f"showing {module.address} ({module.class_name})"]
    what = f"calls of {block.class_name}" if block.calls else block.class_name
    return [f"showing {block.place} ({block.number} of {block.total} {what})"]


@CAPTIONS.add("columns")
def columns(about: About) -> Sequence[str]:
    """What standing side by side means."""
    if about.columns is None:
        return ()
    if about.columns.name != PASSES:
        return [about.columns.caption]
    sideways = about.request.options.direction in ("leftright", "rightleft")
    return [f"{'columns' if sideways else 'rows'}: same pass, not parallel work"]
