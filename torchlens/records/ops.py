"""One executed call (op), its arguments' origins and its cost; and the layer that groups its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torchlens.base.units import shape_text
from torchlens.records.payloads import OutStats
from torchlens.records.tensors import TensorSpec

KINDS = ("input", "op", "output", "buffer", "constant")
Shape = tuple[int, ...]


class ArgRef(NamedTuple):
    """One tensor that an op read.

    node: index of the node that made it; output: which of that node's outputs; position: path of the argument,
    `(0,)`, `(0, 1)` for an element of a list, `("weight",)` for a keyword; late: the dependency is a write through
    another alias of the same storage, found by version, not an argument object.
    """

    node: int
    output: int
    position: tuple[int | str, ...]
    late: bool = False


class CallSite(NamedTuple):
    """Where user code made the call: the innermost frame that is neither torch nor torchlens."""

    file: str
    line: int
    function: str


@dataclass(slots=True)
class Cost:
    """What one call cost. None = not measured or not known, never 0.

    func_duration: seconds of wall clock of the wrapped call alone; flops_forward: a multiply-add is 2;
    flops_backward: estimated from it by family; macs_forward only for matmul, convolution and attention;
    activation_memory: bytes of the outputs; transformed_activation_memory: None, as nothing transforms them;
    num_autograd_tensors: tensors that the op's grad_fn held after the call, each storage once, parameters included;
    autograd_memory: bytes of their storages. Both need `CaptureOptions(saved_for_backward=True)`.
    device_time: nanoseconds of the kernels it launched, of a trace made by `torchlens.report.kernel_profile`.
    """

    func_duration: float | None = None
    flops_forward: int | None = None
    flops_backward: int | None = None
    macs_forward: int | None = None
    activation_memory: int | None = None
    transformed_activation_memory: int | None = None
    num_autograd_tensors: int | None = None
    autograd_memory: int | None = None
    device_time: int | None = None

    @property
    def flops_total(self) -> int | None:
        """Forward and backward FLOPs together, None unless both are known."""
        if self.flops_forward is None or self.flops_backward is None:
            return None
        return self.flops_forward + self.flops_backward


@dataclass(slots=True)
class OpRecord:
    """One node of the trace as a row: made on first access from the columns of `TraceData` and cached there.

    step is None for inputs, outputs, buffers and constants, which are numbered on their own. config holds the
    arguments worth showing, as plain values. composite: the public torch function whose body made the call, "" if the
    user did. module_stack: keys of the module calls around the op, outermost first. value: the Python value of a 0-dim
    output, None where there is none. stats: one `OutStats` per output if they were taken, None for an output that
    could not be read.
    """

    index: int
    label: str
    layer_label: str
    pass_number: int
    num_passes: int
    kind: str
    func_name: str
    type: str
    n: int
    step: int | None
    path: str
    inputs: tuple[ArgRef, ...]
    outs: tuple[TensorSpec, ...]
    config: tuple[tuple[str, object], ...]
    params: tuple[str, ...]
    buffers: tuple[str, ...]
    module_stack: tuple[str, ...]
    is_inplace: bool
    synthetic: bool
    value: object
    call_site: CallSite | None
    composite: str
    cost: Cost
    stats: tuple[OutStats | None, ...] | None = None


@dataclass(slots=True)
class LayerRecord:
    """All passes of one op site.

    nodes: indexes of its passes in execution order; n counts layers of this op type, step layers of any type (None
    for inputs, outputs, buffers and constants); shape_summary: how the output shape changes from pass to pass, "" if
    it does not.
    """

    label: str
    type: str
    n: int
    step: int | None
    nodes: tuple[int, ...]
    shape_summary: str = ""

    @property
    def num_passes(self) -> int:
        """How often the layer ran."""
        return len(self.nodes)


def summarize_shapes(passes: Sequence[Sequence[Shape | None]]) -> str:
    """How output shapes change over the passes of a layer; "" if they do not.

    passes: per pass the shapes of its outputs, None for a tensor that has none. One axis that only grows or shrinks
    reads `4->2`, one that does both `2-4`, several axes, or a rank that changes, `(2, 4)->(3, 2)`: first to last. Of
    several outputs the first one that changes is told, as `[1] 4->2`.
    """
    first = passes[0]
    if all(shapes == first for shapes in passes):
        return ""
    count = min(len(shapes) for shapes in passes)
    if count < max(len(shapes) for shapes in passes):
        return f"{len(first)}->{len(passes[-1])} outputs"
    changed = next(k for k in range(count) if any(shapes[k] != first[k] for shapes in passes))
    text = _change([shapes[changed] for shapes in passes])
    return f"[{changed}] {text}" if count > 1 else text


def _change(shapes: list[Shape | None]) -> str:
    known = [shape for shape in shapes if shape is not None]
    ends = f"{shape_text(shapes[0])}->{shape_text(shapes[-1])}"
    if len(known) < len(shapes) or len({len(shape) for shape in known}) > 1:
        return ends
    axes = [list(sizes) for sizes in zip(*known, strict=True) if len(set(sizes)) > 1]
    if len(axes) > 1:
        return ends
    sizes, rising = axes[0], sorted(axes[0])
    return f"{sizes[0]}->{sizes[-1]}" if sizes in (rising, rising[::-1]) else f"{rising[0]}-{rising[-1]}"
