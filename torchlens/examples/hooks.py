"""Functions of one's own that a drawing calls, as short as they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens.viz import NodeSpec


def mark_wide(record: Any, spec: NodeSpec) -> NodeSpec:
    """A pale blue fill and a row of its own for every op with more than ten features."""
    if record.kind == "op" and record.shape[-1] > 10:
        spec.fillcolor = "#d6e8fa"
        spec.lines.append("wide")
    return spec


def timepoint(record: Any) -> int | None:
    """The item of a sequence that a pass is about, from 1 on: the cell `ahead` reads them in order, `back` does not."""
    if record.kind != "op" or record.num_passes == 1:
        return None
    forwards = any(key.startswith("ahead:") for key in record.modules)
    return record.pass_number if forwards else record.num_passes + 1 - record.pass_number
