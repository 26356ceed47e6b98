"""The rows about what a node puts out: shapes, sizes, dtypes, values. Knows nothing of arguments or times."""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import wrap
from torchlens.base.units import bytes_text, counted, shape_text, value_text
from torchlens.plan.graph import MODULE, PlanNode
from torchlens.records.ops import summarize_shapes
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import TraceData
from torchlens.scene.row_table import ROWS, WIDTH, RowContext, Shape, across

OUTPUT_LIMIT = 3
# Shapes of the calls of a box that are written out.
SHAPE_LIMIT = 3


@ROWS.add("shape_summary")
def shape_summary_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """How the output shapes change over the passes of a rolled layer, the calls of a box; nothing if they do not."""
    if node.kind not in ("op", MODULE) or node.passes < 2:
        return ()
    outs = context.data.nodes.outs
    leaving = node.outputs or [[(i, k) for k in range(len(outs[i]))] for i in node.members]
    shapes = [[outs[i][k].shape for i, k in tensors] for tensors in leaving]
    summary = summarize_shapes(shapes)
    if summary and node.kind == MODULE and len({len(call) for call in shapes}) == 1:
        return [_box_summary(shapes)]
    return [summary] if summary else ()


def _box_summary(calls: Sequence[Sequence[Shape | None]]) -> str:
    """`shapes (2, 4)->(3, 4)`: those of the first output that changes, each once, in the order of the calls."""
    changed = next(k for k, shape in enumerate(calls[0]) if any(call[k] != shape for call in calls))
    texts = list(dict.fromkeys(shape_text(call[changed]) for call in calls))
    more = f", +{len(texts) - SHAPE_LIMIT} more" if len(texts) > SHAPE_LIMIT else ""
    place = f" [{changed}]" if len(calls[0]) > 1 else ""
    return f"shapes{place} {'->'.join(texts[:SHAPE_LIMIT])}{more}"


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
        return [] if None in sizes else [f"{bytes_text(known)} {across(node)}"]
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


@ROWS.add("saved")
def saved_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """What the op kept for the backward pass, if it was measured and is anything."""
    data = context.data
    ops = [i for i in node.members if data.nodes.kind[i] == "op" and not data.nodes.synthetic[i]]
    counts = [data.nodes.num_autograd_tensors[i] for i in ops]
    sizes = [data.nodes.autograd_memory[i] for i in ops]
    if None in counts or None in sizes:
        return ()
    tensors, nbytes = (sum(value or 0 for value in column) for column in (counts, sizes))
    if not tensors:
        return ()
    text = f"saved for backward: {counted(tensors, 'tensor')}, {bytes_text(nbytes)}"
    if node.kind == MODULE and len(ops) > 1:
        # Two ops may hold one storage, so that the sum of a box is no size of memory.
        text = f"{text} (sum over {len(ops)} ops)"
    elif node.passes > 1:
        text = f"{text} (total across passes)"
    return wrap(text, WIDTH, (", ",))


# -- what tensors are made of
@ROWS.add("dtype")
def dtype_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Dtype of the output, without `torch.`; of several outputs, each that occurs."""
    return _agreed(context.data, node, "dtype")


@ROWS.add("device")
def device_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Device of the output."""
    return _agreed(context.data, node, "device")


@ROWS.add("exceptions")
def exceptions_row(context: RowContext, node: PlanNode) -> Sequence[str]:
    """Dtype and device where they are not those of most ops, in all passes or in some."""
    lines: list[str] = []
    for name, usual in zip(("dtype", "device"), context.usual, strict=True):
        texts = _texts(context.data, node, name)
        if any(text != usual for text in texts):
            lines.append(f"{name} {' or '.join(texts)}")
    return lines


def _agreed(data: TraceData, node: PlanNode, name: str) -> Sequence[str]:
    """An attribute of what the node puts out, if all its passes agree."""
    texts = _texts(data, node, name)
    return texts if len(texts) == 1 else ()


def _texts(data: TraceData, node: PlanNode, name: str) -> list[str]:
    """The values of an attribute over the passes, each once; those of several outputs together."""
    texts = [", ".join(dict.fromkeys(str(getattr(spec, name)) for spec in specs)) for specs in _outputs(data, node)]
    return list(dict.fromkeys(text for text in texts if text))


def _outputs(data: TraceData, node: PlanNode) -> list[list[TensorSpec]]:
    """What the node puts out, pass by pass or call by call."""
    if node.kind == MODULE:
        return [[data.nodes.outs[i][k] for i, k in leaving] for leaving in node.outputs]
    return [list(data.nodes.outs[i]) for i in node.members]
