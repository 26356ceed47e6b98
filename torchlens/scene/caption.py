"""The caption lines of a view: one registered function per name, and nothing where a line does not apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from torchlens.base.registry import Registry
from torchlens.base.text import fill
from torchlens.plan.graph import COPY, Plan
from torchlens.scene.channels import Channel
from torchlens.settings.compose import DrawRequest

CaptionLine = Callable[[Plan, Channel | None, DrawRequest], Sequence[str]]
PROSE_WIDTH = 100
# Sources that the caption names.
COPIES_LISTED = 5
CAPTIONS: Registry[CaptionLine] = Registry("caption line")


def caption_lines(plan: Plan, channel: Channel | None, request: DrawRequest) -> list[str]:
    """The lines of the view, then the user's own."""
    lines: list[str] = []
    for name in request.view.caption if request.view else ():
        lines += CAPTIONS.get(name)(plan, channel, request)
    lines += _copies(plan)
    if request.options.caption:
        lines += request.options.caption.splitlines()
    return [text for line in lines for text in fill(line, PROSE_WIDTH)]


def _copies(plan: Plan) -> list[str]:
    """That some sources are named again beside their readers, and how often each is."""
    counts = Counter(node.name.removeprefix("stub:from:") for node in plan.nodes if node.kind == COPY)
    if not counts:
        return []
    listed = ", ".join(f"{name} (x{count})" for name, count in list(counts.items())[:COPIES_LISTED])
    more = f", +{len(counts) - COPIES_LISTED} more" if len(counts) > COPIES_LISTED else ""
    return [f"small stubs name what is drawn elsewhere and read far away: {listed}{more}"]


@CAPTIONS.add("coverage")
def coverage(plan: Plan, channel: Channel | None, request: DrawRequest) -> Sequence[str]:
    """How many of the network's ops carry a colour, and what a box without one means."""
    if channel is None:
        return ()
    lines = [f"encoded {channel.encoding.encoded} of {channel.encoding.eligible} ops"]
    lines += ["grey boxes: aggregate, not encoded"] if channel.neutral else []
    return [*lines, f"uncoloured nodes: no {channel.source.name}"] if channel.blank else lines


@CAPTIONS.add("quantity")
def quantity(plan: Plan, channel: Channel | None, request: DrawRequest) -> Sequence[str]:
    """What the coloured number is."""
    if channel is None:
        return ()
    return [channel.source.total if plan.rolled else channel.source.per_op]


@CAPTIONS.add("rank_order")
def rank_order(plan: Plan, channel: Channel | None, request: DrawRequest) -> Sequence[str]:
    """That equal colour steps are no equal steps of the value."""
    if channel is None or not channel.active or request.options.color_scale != "rank":
        return ()
    return ["colour shows rank order, not proportion"]


@CAPTIONS.add("instrumented")
def instrumented(plan: Plan, channel: Channel | None, request: DrawRequest) -> Sequence[str]:
    """What measured times may be compared with."""
    times = (channel is not None and channel.source.name == "time") or request.options.node_style == "profiling"
    return ["times from an instrumented run: compare ops with each other, not with production latency"] if times else ()
