"""Names and plan nodes of what several nodes are drawn as: segments, the rest of a fold, outputs alike.

A name is made from addresses and labels, so that the same trace and settings give the same one. Knows no texts of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.units import passes_text
from torchlens.plan.collapse.cut import Capsule, Cut
from torchlens.plan.graph import FOLD, OUTPUTS, PlanNode, Tensor, call_address
from torchlens.records.trace_data import TraceData


def capsule_name(data: TraceData, capsule: Capsule, rolled: bool) -> str:
    """The id: `segment:blocks.0-5`, `segment:conv2d_1_1-dropout_1_7`, `fold:blocks.0`, `outputs:cache.keys`."""
    if capsule.kind == OUTPUTS:
        return f"{OUTPUTS}:{capsule.name}"
    if capsule.kind == FOLD:
        return f"{FOLD}:{_address(data, capsule.head[0], rolled)}"
    return f"{capsule.kind}:{span_text(data, capsule.calls, rolled) or '-'.join(op_ends(data, capsule.nodes))}"


def span_text(data: TraceData, calls: Sequence[int], rolled: bool) -> str:
    """The range of addresses of a row of blocks: `blocks.0-5`, `layer1-layer3`, `cell:1-40`; empty for none."""
    if not calls:
        return ""
    modules = list(dict.fromkeys(data.calls[c].module for c in calls))
    first, last = (data.modules[m].address for m in (modules[0], modules[-1]))
    several = not rolled and len(data.modules[modules[0]].calls) > 1
    suffix = f":{passes_text(data.calls[c].number for c in calls)}" if several else ""
    if len(modules) == 1:
        return f"{first}{suffix}"
    above, _, end = last.rpartition(".")
    if first.rpartition(".")[0] != above:
        return f"{first}-{last}{suffix}"
    return f"{first}-{end}{suffix}"


def op_ends(data: TraceData, nodes: Sequence[int]) -> tuple[str, str]:
    """Labels of the first and the last op of a chain."""
    ops = [i for i in nodes if data.nodes.kind[i] == "op"]
    return data.nodes.label[ops[0]], data.nodes.label[ops[-1]]


def _address(data: TraceData, call: int, rolled: bool) -> str:
    return data.modules[data.calls[call].module].address if rolled else call_address(data, call)


def capsule_node(data: TraceData, cut: Cut, number: int, members: Sequence[int], rolled: bool) -> PlanNode:
    """The plan node of a capsule. Its calls are the blocks that it holds; a rolled one has groups by round."""
    capsule = cut.capsules[number]
    inside = set(members)
    outputs = tuple(_leaving(data, members, inside))
    groups = tuple(_rounds(data, cut, members)) if rolled and capsule.calls else (tuple(members),)
    address = _address(data, capsule.head[0], rolled) if capsule.head else capsule.name or None
    return PlanNode(
        capsule.kind,
        capsule_name(data, capsule, rolled),
        tuple(members),
        None,
        capsule.calls,
        address=address,
        groups=groups,
        outputs=(outputs,),
    )


def _rounds(data: TraceData, cut: Cut, members: Sequence[int]) -> list[tuple[int, ...]]:
    """The members by round: in each, each block ran once."""
    found: dict[int, list[int]] = {}
    for i in members:
        box = cut.boxed[data.nodes.call[i]]
        found.setdefault(data.calls[box].number if box is not None else 0, []).append(i)
    return [tuple(row) for row in found.values()]


def _leaving(data: TraceData, members: Sequence[int], inside: set[int]) -> list[Tensor]:
    """The tensors that others read."""
    found: dict[Tensor, None] = {}
    for i in members:
        for child in data.children[i]:
            if child not in inside:
                found.update({(i, ref.output): None for ref in data.nodes.parents[child] if ref.node == i})
    return list(found)


def frame_of(data: TraceData, cut: Cut, number: int) -> int:
    """The innermost call around everything in a capsule."""
    capsule = cut.capsules[number]
    around = [data.calls[c].parent or 0 for c in capsule.calls] + [data.nodes.call[i] for i in capsule.nodes]
    shared = list(data.call_chain(around[0]))
    for call in around[1:]:
        other = set(data.call_chain(call))
        shared = [c for c in shared if c in other]
    return shared[-1]
