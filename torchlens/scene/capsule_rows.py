"""The rows of nodes that stand for several: a row of blocks or ops, the rest of a folded run, outputs alike.

Every number is counted from the members. A segment names no class: it only says what it holds and that it ran in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import wrap
from torchlens.base.units import count_text, counted, shape_text
from torchlens.plan.collapse.nodes import op_ends, span_text
from torchlens.plan.graph import FOLD, OUTPUTS, PlanNode, Tally, tally
from torchlens.records.trace_data import TraceData
from torchlens.scene.marks import TOKEN
from torchlens.scene.model import Row
from torchlens.scene.row_table import ROWS, WIDTH, RowContext

# Modules named by a chain of ops that lies in several.
MOST_NAMES = 3
# Rows with a sum that a segment may show.
SUMS = ("time", "bytes", "flops")


def capsule_rows(context: RowContext, node: PlanNode, tokens: Sequence[str]) -> tuple[Row, ...]:
    """The rows of such a node, the first one bold but for a fold, which is only counted. tokens: of the drawing."""
    found = ROWS.get(TOKEN)(context, node) if TOKEN in tokens else ()
    marked = (Row(TOKEN, tuple(found)),) if found else ()
    if node.kind == FOLD:
        return (Row("name", (fold_text(context.data, node),)), *marked)
    if node.kind == OUTPUTS:
        title = Row("name", (f"OUTPUTS: {node.address}",), True)
        return (title, Row("shape", (_bundle_text(context.data, node),)), *marked)
    title, *rows = _segment_lines(context, node)
    written = [Row("name", tuple(wrap(title, WIDTH, (" ",))), True)]
    written += [Row("contents", tuple(wrap(row, WIDTH, (", ", " ")))) for row in rows]
    for token in tokens:
        lines = ROWS.get(token)(context, node) if token in SUMS else ()
        written += [Row(token, tuple(lines))] if lines else []
    return (*written, *marked)


def fold_text(data: TraceData, node: PlanNode) -> str:
    """`... +7 more Block`, with the calls where the hidden modules ran more than once each."""
    modules = dict.fromkeys(data.calls[c].module for c in node.calls)
    name = data.modules[next(iter(modules))].class_name
    calls = f" ({len(node.calls)} calls)" if len(node.calls) > len(modules) else ""
    return f"... +{len(modules)} more {name}{calls}"


def _bundle_text(data: TraceData, node: PlanNode) -> str:
    shape = data.nodes.outs[node.first][0].shape
    words = shape_text(shape) if not shape else "x".join(map(str, shape))
    return f"{len(node.members)} tensors, {words} each"


def _segment_lines(context: RowContext, node: PlanNode) -> list[str]:
    data = context.data
    counts = [tally(data, group) for group in node.groups]
    equal = all(count[:2] == counts[0][:2] for count in counts)
    held = counts[0] if equal else tally(data, node.members)
    total = "" if equal else " total"
    times = f" (x{node.passes})" if node.passes > 1 else ""
    params = tally(data, node.members).params
    tail = [f"{count_text(params)} params"] if params else []
    if not node.calls:
        first, last = op_ends(data, node.members)
        buffers = [_buffers(held).removeprefix(" ")] if held.buffers else []
        return [f"{first} ... {last} -- {counted(held.ops, 'op')}", *buffers, *tail, *_spans(context, node)]
    blocks, calls = len(dict.fromkeys(data.calls[c].module for c in node.calls)), len(node.calls)
    words = [counted(blocks, "block")] if blocks > 1 or calls == 1 else []
    words += [counted(calls, "call")] if calls > blocks and not context.options.rolled else []
    title = f"{span_text(data, node.calls, context.options.rolled)}{times} -- {', '.join(words)}"
    return [title, f"{counted(held.ops, 'op')}{_buffers(held)}{total}", *tail]


def _buffers(held: Tally) -> str:
    return f" + {counted(held.buffers, 'buffer')}" if held.buffers else ""


def _spans(context: RowContext, node: PlanNode) -> list[str]:
    """`spans @conv_proj, @encoder`: the modules directly below the one around all the ops, where there are any."""
    data = context.data
    chains = [data.call_chain(data.nodes.call[i]) for i in node.members if data.nodes.kind[i] == "op"]
    depth = 0
    while all(len(chain) > depth for chain in chains) and len({chain[depth] for chain in chains}) == 1:
        depth += 1
    inner = dict.fromkeys(data.calls[chain[depth]].module for chain in chains if len(chain) > depth)
    names = [f"@{data.modules[m].address}" for m in inner]
    more = [f"+{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return [f"spans {', '.join([*names[:MOST_NAMES], *more])}"] if names else []
