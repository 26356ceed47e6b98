"""The table of label rows, and what a row may be written from. Knows no row.

A row function returns the row's lines, none if it has nothing to say. A per-pass value is never shown as if it held
for all passes of a rolled layer: it is shown if they agree, as a marked total, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torchlens.base.registry import Registry
from torchlens.plan.graph import FOLD, MODULE, Plan, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.branches import Tests, asked_of_nodes
from torchlens.settings.options import DrawOptions

Shape = tuple[int, ...]

# Characters after which a line is broken where it may be.
WIDTH = 60


@dataclass(frozen=True)
class RowContext:
    """What a row may be written from."""

    data: TraceData
    plan: Plan
    options: DrawOptions
    tests: Tests = field(init=False)
    # What rows of one kind work out once for all nodes.
    shared: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tests", asked_of_nodes(self.data))

    @cached_property
    def usual(self) -> tuple[str, str]:
        """Dtype and device of most tensors that ops of the network put out."""
        return usual_of(self.data)

    @cached_property
    def heads(self) -> Mapping[str, str]:
        """Modules that speak for a folded run: id of the box -> its address."""
        found = (node.address for node in self.plan.nodes if node.kind == FOLD)
        return {f"{MODULE}:{address}": address for address in found if address}


RowFunction = Callable[[RowContext, PlanNode], Sequence[str]]
ROWS: Registry[RowFunction] = Registry("label row")


def usual_of(data: TraceData) -> tuple[str, str]:
    """Dtype and device of most tensors that ops of the network put out; empty without any."""
    specs = [spec for i in data.op_indexes for spec in data.nodes.outs[i]]
    dtypes, devices = Counter(spec.dtype for spec in specs), Counter(spec.device for spec in specs)
    return max(dtypes, key=dtypes.__getitem__, default=""), max(devices, key=devices.__getitem__, default="")


def marked(text: str, node: PlanNode) -> str:
    """A sum, with the passes it is over where there are several."""
    return f"{text} {across(node)}" if node.passes > 1 and node.kind in ("op", MODULE) else text


def marked_in(context: RowContext, text: str, node: PlanNode) -> str:
    """A sum as `marked`, with the module it is of where a box speaks for a folded run."""
    text = marked(text, node)
    if node.kind != MODULE or not context.heads:
        return text
    address = context.heads.get(node.name) or context.heads.get(node.name.rpartition(":")[0])
    return f"{text} (@{address} only)" if address else text


def across(node: PlanNode) -> str:
    """The words that mark a sum."""
    return f"(total across {node.passes} {'calls' if node.kind == MODULE else 'passes'})"
