"""The text rows of a node: one registered function per row token. No function knows of fonts, escaping or order.

A row function returns the row's lines, none if it has nothing to say. A per-pass value is never shown as if it held
for all passes of a rolled layer: it is shown if they agree, as a marked total, or not at all.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlens.base.registry import Registry
from torchlens.base.text import truncate, wrap
from torchlens.base.units import bytes_text, count_text, seconds_text, shape_text, value_text
from torchlens.ops.arguments import argument_row, redundant
from torchlens.plan.graph import MODULE, Plan, PlanNode, Tally, call_address, tally
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import Row
from torchlens.scene.values import SOURCES, value_of
from torchlens.settings.options import DrawOptions

Shape = tuple[int, ...]

WIDTH = 60
LINE_LIMIT = 160
OUTPUT_LIMIT = 3

DEFAULT_ROWS = ("name", "class", "shape_summary", "shape", "contents", "value", "args", "params", "address")
PROFILING_ROWS = ("time", "bytes", "call", "fn")


@dataclass(frozen=True, slots=True)
class RowContext:
    """What a row may be written from."""

    data: TraceData
    plan: Plan
    options: DrawOptions


RowFunction = Callable[[RowContext, PlanNode], Sequence[str]]
ROWS: Registry[RowFunction] = Registry("label row")


def tokens_of(options: DrawOptions) -> tuple[str, ...]:
    """The rows of a drawing, in order."""
    return DEFAULT_ROWS + PROFILING_ROWS if options.node_style == "profiling" else DEFAULT_ROWS


def write_rows(context: RowContext, node: PlanNode, tokens: Sequence[str]) -> tuple[Row, ...]:
    """The rows of a node that have something to say, the first one bold."""
    rows: list[Row] = []
    for token in tokens:
        lines = ROWS.get(token)(context, node)
        if lines:
            rows.append(Row(token, tuple(_fit(line) for line in lines), not rows))
    return tuple(rows)


def _fit(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else truncate(line, LINE_LIMIT)


# -- identity
@ROWS.add("name")
def name_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """The lookup key, or a box's address; `(xN)` in a rolled drawing says that it ran N times."""
    if node.kind == MODULE:
        return [call_title(context.data, node.calls)]
    if not context.plan.rolled:
        return [context.data.nodes.label[node.first]]
    name = context.data.layers[context.data.nodes.layer[node.first]].label
    return [f"{name} (x{node.passes})" if node.passes > 1 else name]


def call_title(data: TraceData, calls: Sequence[int]) -> str:
    """Title of an open or closed module: `@s`, `@s:2` for one of several calls, `@s (x2)` for several at once."""
    if len(calls) == 1:
        return f"@{call_address(data, calls[0])}"
    return f"@{data.modules[data.calls[calls[0]].module].address or 'self'} (x{len(calls)})"


@ROWS.add("class")
def class_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Class of a module drawn as one node."""
    if node.kind != MODULE:
        return ()
    return [context.data.modules[context.data.calls[node.calls[0]].module].class_name]


@ROWS.add("address")
def address_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Where in the model or its arguments the node belongs."""
    return [f"@{node.address}"] if node.address else ()


# -- tensors
@ROWS.add("shape_summary")
def shape_summary_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """How the output shape changes over the passes of a rolled layer; nothing if it does not."""
    shapes = _pass_shapes(context, node)
    if len(set(shapes)) < 2:
        return ()
    known = [shape for shape in shapes if shape is not None]
    first, last = shapes[0], shapes[-1]
    ends = f"{shape_text(first)}->{shape_text(last)}"
    if len(known) < len(shapes) or len({len(shape) for shape in known}) > 1:
        return [ends]
    axes = [sizes for sizes in zip(*known, strict=True) if len(set(sizes)) > 1]
    if len(axes) > 1:
        return [ends]
    sizes = axes[0]
    rising, falling = sorted(sizes), sorted(sizes, reverse=True)
    if list(sizes) in (rising, falling):
        return [f"{sizes[0]}->{sizes[-1]}"]
    return [f"{rising[0]}-{rising[-1]}"]


def _pass_shapes(context: RowContext, node: PlanNode) -> list[Shape | None]:
    """Shape of the first output in each pass of a rolled layer; empty for anything else."""
    if node.kind != "op" or len(node.members) < 2:
        return []
    return [outs[0].shape if outs else None for outs in (context.data.nodes.outs[i] for i in node.members)]


@ROWS.add("shape")
def shape_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Shape and size of the output; of several outputs, each in a line of its own."""
    data = context.data
    if node.kind == MODULE:
        return _box_shape(data, node)
    outs = data.nodes.outs[node.first]
    if any(data.nodes.outs[i] != outs and _geometry(data.nodes.outs[i]) != _geometry(outs) for i in node.members[1:]):
        sizes = [data.nbytes[i] for i in node.members]
        known = sum(size for size in sizes if size is not None)
        return [] if None in sizes else [f"{bytes_text(known)} {_across(node)}"]
    if len(outs) == 1:
        return [_tensor_text(outs[0])]
    lines = [f"[{k}] {_tensor_text(spec)}" for k, spec in enumerate(outs[:OUTPUT_LIMIT])]
    return [*lines, f"+{len(outs) - OUTPUT_LIMIT} more"] if len(outs) > OUTPUT_LIMIT else lines


def _box_shape(data: TraceData, node: PlanNode) -> Sequence[str]:
    """First tensor that leaves a module, if all its calls agree on the shape."""
    tensors = [data.nodes.outs[leaving[0][0]][leaving[0][1]] for leaving in node.outputs if leaving]
    if not tensors or any(_geometry(tensors[:1]) != _geometry([spec]) for spec in tensors):
        return ()
    more = len(node.outputs[0]) - 1
    extra = f", +{more} output{'s' if more > 1 else ''}" if more > 0 else ""
    return [_tensor_text(tensors[0]) + extra]


def _geometry(outs: Sequence[TensorSpec]) -> list[tuple[Shape | None, int | None]]:
    return [(spec.shape, spec.nbytes) for spec in outs]


def _tensor_text(spec: TensorSpec) -> str:
    text = shape_text(spec.shape)
    return text if spec.nbytes is None else f"{text}, {bytes_text(spec.nbytes)}"


@ROWS.add("value")
def value_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """The value of a scalar output; bools are not shown here."""
    if node.kind != "op":
        return ()
    values = [context.data.nodes.value[i] for i in node.members]
    first = values[0]
    if not isinstance(first, (int, float, complex)) or isinstance(first, bool) or any(v != first for v in values):
        return ()
    return [f"= {value_text(first)}"]


# -- what the op was given
@ROWS.add("args")
def args_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Arguments that change what the op does, without those that the shapes already say."""
    if node.kind != "op":
        return ()
    data, first = context.data, node.first
    config = data.nodes.config[first]
    if not config:
        return ()
    func = data.nodes.func[first]
    if not context.options.show_redundant_args:
        sources = _source_shapes(data, node)
        shapes = {_only_shape(data.nodes.outs[i]) for i in node.members}
        out = shapes.pop() if len(shapes) == 1 else None
        config = tuple((name, value) for name, value in config if not redundant(func, name, value, sources, out))
    for other in (dict(data.nodes.config[i]) for i in node.members[1:]):
        config = tuple((name, value if other.get(name) == value else "varies") for name, value in config)
    text = ", ".join(argument_row(func, name, value) for name, value in config)
    return wrap(text, WIDTH, (", ",)) if text else ()


def _source_shapes(data: TraceData, node: PlanNode) -> list[Shape | None]:
    """Shapes of the tensors that flow in, over all passes; the module's own buffers are none of them."""
    refs = [ref for i in node.members for ref in data.nodes.parents[i] if data.nodes.kind[ref.node] != "buffer"]
    return [data.nodes.outs[ref.node][ref.output].shape for ref in refs if not ref.late]


def _only_shape(outs: Sequence[TensorSpec]) -> Shape | None:
    return outs[0].shape if len(outs) == 1 else None


@ROWS.add("params")
def params_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Parameters of an op by name and shape, frozen ones in square brackets; of a box, how many elements."""
    if node.kind == MODULE:
        return [params_text(tally(context.data, node.members))]
    used = [context.data.params[p] for p in context.data.nodes.params[node.first]]
    if not used:
        return ()
    # An element of a list is called by its number alone; the list's name makes it readable.
    names = [record.name if not record.name.isdigit() else ".".join(record.address.split(".")[-2:]) for record in used]
    parts: list[str] = []
    for record, short in zip(used, names, strict=True):
        name = short if names.count(short) == 1 else record.address
        shape = shape_text(record.shape) if record.shape else "()"
        parts.append(f"{name} {shape if record.trainable else _frozen_shape(record.shape)}")
    return wrap(f"params: {' · '.join(parts)}", WIDTH, (" · ",))


def _frozen_shape(shape: Shape) -> str:
    return f"[{', '.join(str(size) for size in shape)}]"


def params_text(counts: Tally) -> str:
    """`1.61K params (all trainable)`; the same words in header and boxes, apart from the mixed case of a box."""
    if counts.params == 0:
        return "0 params"
    text = f"{count_text(counts.params)} param{'s' if counts.params > 1 else ''}"
    if counts.trainable == counts.params:
        return f"{text} (all trainable)"
    if counts.trainable == 0:
        return f"{text} (all frozen)"
    return f"{text} ({count_text(counts.trainable)} trainable, {count_text(counts.params - counts.trainable)} frozen)"


@ROWS.add("contents")
def contents_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """How many ops and buffer versions a box hides: of one call if all its calls are equal, else in total."""
    if node.kind != MODULE:
        return ()
    counts = [tally(context.data, group)[:2] for group in node.groups]
    equal = all(count == counts[0] for count in counts)
    ops, buffers = counts[0] if equal else tally(context.data, node.members)[:2]
    text = f"{count_text(ops)} op{'' if ops == 1 else 's'}"
    if buffers:
        text += f" + {count_text(buffers)} buffer{'' if buffers == 1 else 's'}"
    return [text if equal else f"{text} total"]


# -- profile
@ROWS.add("time")
def time_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Seconds of the call, summed over what the node stands for."""
    value = value_of(SOURCES.get("time"), node, context.data)
    return [_marked(f"t={seconds_text(value)}", node)] if value is not None else ()


@ROWS.add("bytes")
def bytes_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Size of the output, summed over what the node stands for."""
    value = value_of(SOURCES.get("bytes"), node, context.data)
    return [_marked(f"out={bytes_text(int(value))}", node)] if value is not None else ()


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


def _marked(text: str, node: PlanNode) -> str:
    return f"{text} {_across(node)}" if node.passes > 1 and node.kind in ("op", MODULE) else text


def _across(node: PlanNode) -> str:
    return f"(total across {node.passes} {'calls' if node.kind == MODULE else 'passes'})"
