"""The rows about what a node cost and where it was called: time, size, FLOPs, line and function."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from torchlens.base.units import bytes_text, flops_text, seconds_text
from torchlens.plan.graph import MODULE, PlanNode
from torchlens.scene.row_table import ROWS, RowContext, marked_in
from torchlens.scene.values import SOURCES, Readings, value_of


@ROWS.add("time")
def time_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Seconds of the call, summed over what the node stands for."""
    value = value_of(SOURCES.get("time"), node, context.data)
    return [marked_in(context, f"t={seconds_text(value)}", node)] if value is not None else ()


@ROWS.add("device_time")
def device_time_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Time of the kernels that were launched, `n/a` where there was none; nothing without a joined profiler session."""
    readings = Readings(SOURCES.get("device_time"), context.data)
    value = readings.value(node)
    if value is not None:
        return [marked_in(context, f"device={seconds_text(value * 1e-9)}", node)]
    return ["device=n/a"] if node.kind in ("op", MODULE) and readings.is_idle(node) else ()


@ROWS.add("bytes")
def bytes_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Size of the output, summed over what the node stands for."""
    value = value_of(SOURCES.get("bytes"), node, context.data)
    return [marked_in(context, f"out={bytes_text(int(value))}", node)] if value is not None else ()


@ROWS.add("flops")
def flops_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Forward FLOPs, summed over what the node stands for."""
    value = value_of(SOURCES.get("flops"), node, context.data)
    return [marked_in(context, flops_text(int(value)), node)] if value is not None else ()


@ROWS.add("call")
def call_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """File and line of the user's code that made the call."""
    return _site(
        context, node, "call", lambda file, line, _: f"{posixpath.basename(file.replace(chr(92), '/'))}:{line}"
    )


@ROWS.add("fn")
def fn_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Function that this line is in."""
    return _site(context, node, "fn", lambda _file, _line, function: function)


def _site(context: RowContext, node: PlanNode, name: str, text: Callable[[str, int, str], str]) -> Sequence[str]:
    if node.kind != "op":
        return ()
    sites = [context.data.nodes.site[i] for i in node.members]
    texts = {text(site.file, site.line, site.function) for site in sites if site is not None}
    if not texts:
        return ()
    return [f"{name}={texts.pop()}" if len(texts) == 1 else f"{name}=varies across passes"]
