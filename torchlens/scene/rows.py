"""The text rows of a node: which ones a drawing shows, and those that say what the node is. Tensors, arguments and
costs have files of their own. No function knows of fonts, escaping or order.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import truncate, wrap
from torchlens.base.units import ELLIPSIS, counted
from torchlens.plan.graph import CAPSULES, COPY, FROM, MODULE, STUBS, PlanNode, call_address, tally
from torchlens.records.trace_data import TraceData
from torchlens.scene import argument_rows, attention_rows, cost_rows, marks, notes, tensor_rows
from torchlens.scene.argument_rows import params_text
from torchlens.scene.branches import question_lines
from torchlens.scene.capsule_rows import capsule_rows
from torchlens.scene.model import Row
from torchlens.scene.row_table import ROWS, WIDTH, RowContext, RowFunction
from torchlens.settings.options import DrawOptions

__all__ = ["ROWS", "RowContext", "RowFunction", "call_title", "params_text", "tokens_of", "write_rows"]

# The files whose rows are registered by being imported.
_FAMILIES = (argument_rows, attention_rows, cost_rows, marks, notes, tensor_rows)
LINE_LIMIT = 160
BRANCH = "branch"

# All that a stub says: which op it is, and where.
STUB_ROWS = ("name", "address")

ROW_LIMIT, ROW_LINES = 12, 8

DEFAULT_ROWS = (
    BRANCH, "name", "class", "shape_summary", "shape", "contents", "value", "saved", "args", "params", "address",
)  # fmt: skip
PROFILING_ROWS = ("time", "device_time", "bytes", "call", "fn")
# Rows that a `node_style=` adds.
_STYLE_ROWS = {"profiling": PROFILING_ROWS, attention_rows.ATTENTION: (attention_rows.ATTENTION,)}


def tokens_of(options: DrawOptions) -> tuple[str, ...]:
    """The rows of a drawing, in order: those asked for by name, else the usual ones."""
    return tuple(options.node_label_fields or ()) or usual_tokens(options)


def usual_tokens(options: DrawOptions) -> tuple[str, ...]:
    """The rows of a drawing that names none."""
    rows = list(DEFAULT_ROWS)
    rows += ["exceptions"] * options.show_exceptions + [marks.TOKEN] * options.show_nonfinite
    rows += _STYLE_ROWS.get(options.node_style, ())
    rows.append("annotation")
    return tuple(token for token in rows if token != "saved" or options.show_saved_for_backward)


def write_rows(context: RowContext, node: PlanNode, tokens: Sequence[str]) -> tuple[Row, ...]:
    """The rows of a node that have something to say, the first one bold; the usual ones if none of these has.

    What is left out for want of room is counted: rows beyond the twelfth, and lines of one very long row.
    """
    if node.kind in STUBS:
        return tuple(_written(context, node, STUB_ROWS))
    if node.kind in CAPSULES:
        return capsule_rows(context, node, tokens)
    asked_for = context.options.node_label_fields
    rows = _written(context, node, tokens) or (
        _written(context, node, usual_tokens(context.options)) if asked_for else []
    )
    if len(rows) > ROW_LIMIT and not asked_for:
        rest = len(rows) - ROW_LIMIT + 1
        rows[-rest:] = [Row("more", (f"{ELLIPSIS} +{rest} rows",))]
    return tuple(rows)


def _written(context: RowContext, node: PlanNode, tokens: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for token in tokens:
        lines = ROWS.get(token)(context, node)
        if lines:
            bold = token == BRANCH or all(row.token == BRANCH for row in rows)
            rows.append(Row(token, _fit(lines), bold))
    return rows


def _fit(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines that fit a node: not too long, and not too many of them, breaks inside a value counted as such."""
    lines = [part for line in lines for part in line.split("\n")]
    if len(lines) > ROW_LINES:
        lines = [*lines[: ROW_LINES - 1], f"{ELLIPSIS} +{len(lines) - ROW_LINES + 1} lines"]
    return tuple(truncate(line, LINE_LIMIT) for line in lines)


# -- identity
@ROWS.add(BRANCH)
def branch_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """What a branch asked of the tensor, and its truth; bold beside the name."""
    return [] if node.kind == MODULE else question_lines(context.tests, node, context.data)


@ROWS.add("name")
def name_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """The lookup key, or a box's address; `(xN)` in a rolled drawing says that it ran N times."""
    if node.kind == MODULE:
        return [call_title(context.data, node.calls)]
    if node.kind == COPY and node.calls:
        return [f"{FROM} {call_title(context.data, node.calls)}"]
    name = context.data.nodes.label[node.first]
    if node.passes > 1:
        name = f"{context.data.layers[context.data.nodes.layer[node.first]].label} (x{node.passes})"
    return [f"{FROM if node.kind == COPY else node.kind} {name}" if node.kind in STUBS else name]


def call_title(data: TraceData, calls: Sequence[int]) -> str:
    """Title of an open or closed module: `@s`, `@s:2` for one of several calls, `@s (x2)` for several at once."""
    if len(calls) == 1:
        return f"@{call_address(data, calls[0])}"
    return f"@{data.modules[data.calls[calls[0]].module].address or 'self'} (x{len(calls)})"


@ROWS.add("type")
def type_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """The op part of the label, `conv2d`; of a box its class."""
    return class_row(context, node) or [context.data.layers[context.data.nodes.layer[node.first]].type]


@ROWS.add("class")
def class_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Class of a module drawn as one node."""
    if node.kind != MODULE:
        return ()
    return [context.data.modules[context.data.calls[node.calls[0]].module].class_name]


@ROWS.add("address")
def address_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Where in the model or its arguments the node belongs."""
    return wrap(f"@{node.address}", WIDTH, (".",)) if node.address else ()


@ROWS.add("module")
def module_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """The innermost module around an op or a box; `@self` is the model. Nothing if its passes differ in that."""
    data = context.data
    if node.kind == MODULE:
        parents = [data.calls[call].parent for call in node.calls]
        calls = [parent for parent in parents if parent is not None]
    else:
        calls = [data.nodes.call[i] for i in node.members] if node.kind == "op" else []
    if len({data.calls[call].module for call in calls}) != 1:
        return ()
    address = data.modules[data.calls[calls[0]].module].address or "self"
    return [f"@{call_address(data, calls[0]) if len(set(calls)) == 1 else address}"]


@ROWS.add("pass")
def pass_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Which pass of its layer, or call of its module, a node is; how many of them, if it stands for several."""
    data = context.data
    if node.kind not in ("op", MODULE):
        return ()
    noun = "call" if node.kind == MODULE else "pass"
    if node.passes > 1:
        return [f"{node.passes} {noun}{'s' if node.kind == MODULE else 'es'}"]
    if node.kind == MODULE:
        record = data.calls[node.calls[0]]
        return [f"{noun} {record.number} of {len(data.modules[record.module].calls)}"]
    layer = data.layers[data.nodes.layer[node.first]]
    return [f"{noun} {data.nodes.pass_number[node.first]} of {layer.num_passes}"]


@ROWS.add("contents")
def contents_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """How many ops and buffer versions a box hides: of one call if all its calls are equal, else in total."""
    if node.kind != MODULE:
        return ()
    counts = [tally(context.data, group)[:2] for group in node.groups]
    equal = all(count == counts[0] for count in counts)
    ops, buffers = counts[0] if equal else tally(context.data, node.members)[:2]
    text = counted(ops, "op")
    if buffers:
        text += f" + {counted(buffers, 'buffer')}"
    return [text if equal else f"{text} total"]


for _other, _name in (("label", "name"), ("memory", "bytes")):
    ROWS.put(_other, ROWS.get(_name))
