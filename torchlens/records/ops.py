"""One executed call (op), its arguments' origins and its cost; and the layer that groups its passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torchlens.records.tensors import TensorSpec

KINDS = ("input", "op", "output", "buffer", "constant")


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
    activation_memory: bytes of the outputs; transformed_activation_memory: None, as nothing transforms them.
    """

    func_duration: float | None = None
    flops_forward: int | None = None
    flops_backward: int | None = None
    macs_forward: int | None = None
    activation_memory: int | None = None
    transformed_activation_memory: int | None = None

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
    output, None where there is none.
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


@dataclass(slots=True)
class LayerRecord:
    """All passes of one op site.

    nodes: indexes of its passes in execution order; n counts layers of this op type, step layers of any type (None
    for inputs, outputs, buffers and constants).
    """

    label: str
    type: str
    n: int
    step: int | None
    nodes: tuple[int, ...]

    @property
    def num_passes(self) -> int:
        """How often the layer ran."""
        return len(self.nodes)
