"""Channels on recorded models: boxes have the sum over the ops that the model itself says are inside, and nothing else
changes.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import torchlens as tl
from torchlens.drawings import Drawing
from torchlens.examples.demo import Demo
from torchlens.examples.stack import Stack
from torchlens.scene.model import ChannelState
from torchlens.settings.sources import NumberField

ADDITIVE = ("time", "bytes", "flops", "func_duration", "activation_memory", "flops_forward", "flops_backward")
FIELDS = {"time": "func_duration", "bytes": "activation_memory", "flops": "flops_forward"}


@pytest.fixture(scope="module")
def demo() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(Demo().eval(), torch.rand(1, 3, 8, 8))


@pytest.fixture(scope="module")
def blocks() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(Stack().eval(), torch.rand(2, 16))


def color(drawing: Drawing) -> ChannelState:
    assert drawing.encoding is not None
    assert drawing.encoding.color is not None
    return drawing.encoding.color


def inside(trace: tl.Trace, address: str, source: str) -> list[float | None]:
    """The numbers of the ops that ran within a module."""
    return [getattr(trace[label], FIELDS.get(source, source)) for label in trace.modules[address].ops]


@pytest.mark.parametrize("source", ADDITIVE)
@pytest.mark.parametrize("rolled", [False, True])
def test_a_box_is_the_sum_of_what_ran_in_it(demo: tl.Trace, source: NumberField, *, rolled: bool) -> None:
    state = color(demo.draw(color_by=source, depth=1, rolled=rolled))
    values = [sum(value or 0 for value in inside(demo, "features", source))]
    values += [inside(demo, address, source)[0] or 0 for address in ("pool1", "pool2", "classifier")]
    values.append(getattr(demo["mean_1_9"], FIELDS.get(source, source)))
    if source in ("bytes", "activation_memory"):
        values += [3 * 8 * 8 * 4, 10 * 4]
    assert state.domain == pytest.approx((min(values), max(values)))
    assert state.encoded == state.eligible == len(demo.ops)
    assert state.aggregation == ("module boxes: sum over member ops" + (" across all calls" if rolled else ""),)


def test_a_segment_is_the_sum_over_its_blocks(blocks: tl.Trace) -> None:
    drawing = blocks.draw(color_by="bytes", size_by="bytes", collapse="max")
    (segment,) = [node for node in drawing._scene.nodes if node.kind == "segment"]
    addresses = [f"blocks.{k}" for k in range(8)]
    held = [a for a in addresses if set(blocks.modules[a].ops) <= set(segment.members)]
    assert len(held) > 1
    total = sum(value or 0 for address in held for value in inside(blocks, address, "bytes"))
    assert color(drawing).domain == (2 * 4 * 4, total)
    assert "segments: sum over member ops" in color(drawing).aggregation


def test_one_op_without_a_number_leaves_its_box_without_one(blocks: tl.Trace) -> None:
    assert None in inside(blocks, "blocks.0", "macs_forward")
    drawing = blocks.draw(color_by="macs_forward", depth=2)
    neutral = {node.style.fill for node in drawing._scene.nodes if node.kind == "module"}
    others = {node.style.fill for node in drawing._scene.nodes if node.kind == "op"}
    assert len(neutral) == 1
    assert neutral.isdisjoint(others)
    state = color(drawing)
    # The residual sums stand beside the boxes, and have none either.
    assert state.notes == ("module boxes unencoded: an op inside has no macs_forward", "8 nodes have no macs_forward")
    assert (state.encoded, state.eligible) == (2, 42)


def test_a_drawing_with_channels_leaves_trace_folding_and_plain_drawings_as_they_are(blocks: tl.Trace) -> None:
    before, plain = blocks.to_dict(), blocks.draw(collapse="max")
    drawn = blocks.draw(collapse="max", color_by="time", size_by="bytes")
    assert blocks.to_dict() == before
    assert drawn.collapse_plan == plain.collapse_plan
    assert [(n.name, n.rows, n.members) for n in drawn._scene.nodes] == [
        (n.name, n.rows, n.members) for n in plain._scene.nodes
    ]
    assert blocks.draw(collapse="max").dot == plain.dot


# -- device time
class Reshaping(nn.Module):
    """An op that computes and one that only describes, three times."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            x = x.view(2, 2, 2).view(2, 4)
        return x


def test_rolled_device_times_are_sums_and_what_ran_no_kernel_reads_na() -> None:
    trace = tl.report.kernel_profile(Reshaping(), torch.rand(2, 4))
    sums: dict[str, int] = {}
    for layer in trace.layers:
        times = [op.device_time for op in layer.ops if op.device_time is not None]
        if times:
            assert len(times) == 3
            sums[layer.label] = sum(times)
    assert {label.split("_")[0] for label in sums} == {"linear", "tanh"}
    drawing = trace.draw(color_by="device_time", node_style="profiling", rolled=True)
    assert color(drawing).domain == (min(sums.values()), max(sums.values()))
    assert color(drawing).aggregation == ("rolled nodes: sum over passes",)
    assert color(drawing).notes == ("2 nodes ran no kernel: n/a",)
    for node in drawing._scene.nodes:
        rows = [line for row in node.rows for line in row.lines if line.startswith("device=")]
        if node.kind != "op":
            assert rows == []
        elif node.name in sums:
            assert rows[0].endswith("(total across 3 passes)")
        else:
            assert rows == ["device=n/a"]
