"""What a hook is told about a node, and what users attach to nodes: where drawing meets the views of a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from torchlens.base.errors import fail
from torchlens.plan.graph import MODULE, PlanNode
from torchlens.record_views import Layer, Module, Op
from torchlens.records.notes import attach, plain_rows
from torchlens.records.selectors import Selector, select
from torchlens.records.trace_data import TraceData
from torchlens.viz.pictures import png_of

if TYPE_CHECKING:
    from torchlens.trace_view import Trace
    from torchlens.viz.annotating import Annotated

Target = Selector | str | Callable[[Op], object]
Record = Op | Layer | Module


def record_of(trace: Trace) -> Callable[[PlanNode, bool], Record]:
    """The view of a plan node: a `Module` for a box, a `Layer` for an op of a rolled drawing, else an `Op`."""

    def view(node: PlanNode, rolled: bool) -> Record:
        data = trace.data
        if node.kind == MODULE:
            return Module(trace, data.calls[node.calls[0]].module)
        if rolled and node.kind == "op":
            return Layer(trace, data.nodes.layer[node.first])
        return Op(trace, node.first)

    return view


def nodes_behind(record: Record) -> tuple[TraceData, tuple[int, ...]]:
    """The trace of a record that a hook was given, and the nodes that the record stands for."""
    if not isinstance(record, (Op, Layer, Module)):
        raise TypeError(f"a record of a trace is needed, not {type(record).__name__}")
    data: TraceData = record._trace.data
    if isinstance(record, Op):
        return data, (record.record.index,)
    if isinstance(record, Layer):
        return data, tuple(record.record.nodes)
    spans = [data.calls[call].span for call in record.record.calls]
    return data, tuple(i for first, end in spans for i in range(first, end))


def chosen(trace: Trace, target: Target) -> tuple[int, ...]:
    """Indexes of the nodes that a selector, a text or a function of an `Op` means; at least one.

    Raises: UnknownNameError[selector_no_match].
    """
    if isinstance(target, (Selector, str)):
        return select(trace.data, target)
    if not callable(target):
        words = ["a label", "a module address", "tl.module(...) and the like", "a function of an Op"]
        fail("selector_no_match", f"{target!r} is no selector", allowed=words, got=target)
    found = tuple(i for i in range(len(trace.data.nodes)) if target(Op(trace, i)))
    if not found:
        name = getattr(target, "__qualname__", type(target).__name__)
        fail("selector_no_match", f"{name} holds for no node of this trace", fix="widen the selection")
    return found


def annotate(trace: Annotated, target: Target, data: Any = None, image: Any = None) -> tuple[str, ...]:
    """See `Trace.annotate`; every `Annotated` is a trace."""
    if data is None and image is None:
        fail("annotation_invalid", "neither data= nor image= was given", fix="pass one of them, or both")
    nodes = chosen(cast("Trace", trace), target)
    rows = plain_rows(data) if data is not None else None
    png = png_of(image) if image is not None else None
    return attach(trace.data, nodes, rows=rows, image=png)
