"""The rows about what a node was given: arguments and parameters. Knows nothing of outputs beyond their shapes."""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.text import wrap
from torchlens.base.units import count_text, shape_text
from torchlens.ops.arguments import argument_row, redundant
from torchlens.plan.graph import MODULE, PlanNode, Tally, tally
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import TraceData
from torchlens.scene.row_table import ROWS, WIDTH, RowContext, Shape


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
    """Shape of the one tensor that flows in, pass by pass; None where several do. The module's own buffers do not."""
    shapes: list[Shape | None] = []
    for i in node.members:
        refs = [ref for ref in data.nodes.parents[i] if data.nodes.kind[ref.node] != "buffer" and not ref.late]
        shapes.append(data.nodes.outs[refs[0].node][refs[0].output].shape if len(refs) == 1 else None)
    return shapes


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
