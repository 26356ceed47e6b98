"""Device times by the profiler: every op found, none guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn
from torch._C._autograd import DeviceType

import torchlens as tl
from tests import builders
from torchlens.base.errors import EvidenceError
from torchlens.report import JOINED, NONE, OWN, SHARED, _kernel_of, join


class Net(nn.Module):
    """Ops with several kernels, one, and none; a composite function, a written buffer, a module called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.head, self.drop = nn.Linear(64, 64), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        x = self.drop(x.flatten(1).view(-1, 64))
        x = self.head(self.head(x))
        return torch.nn.functional.normalize(x)


@pytest.fixture(scope="module")
def profiled() -> tl.Trace:
    torch.manual_seed(0)
    return tl.report.kernel_profile(Net().eval(), torch.randn(1, 3, 4, 4))


def test_the_trace_is_that_of_a_plain_recording(profiled: tl.Trace) -> None:
    torch.manual_seed(0)
    plain = tl.trace(Net().eval(), torch.randn(1, 3, 4, 4), save="none")
    assert [op.label for op in profiled.ops] == [op.label for op in plain.ops]
    assert profiled.data.nodes.parents == plain.data.nodes.parents
    assert [op.call_site for op in profiled.ops] == [op.call_site for op in plain.ops]
    assert [layer.num_passes for layer in profiled.layers] == [layer.num_passes for layer in plain.layers]
    profiled.check()


def test_every_op_is_joined_and_those_without_a_kernel_have_no_time(profiled: tl.Trace) -> None:
    assert profiled.data.kernel_join == JOINED
    kernels = {op.label: profiled.data.nodes.num_kernels[op.index] for op in profiled.ops}
    times = {op.label: op.device_time for op in profiled.ops}
    assert None not in kernels.values()
    assert all((count == 0) == (times[label] is None) for label, count in kernels.items())
    assert all(time is None or time > 0 for time in times.values())
    idle = {label.split("_")[0] for label, count in kernels.items() if count == 0}
    # In eval mode dropout returns what it got.
    assert idle == {"flatten", "view", "dropout", "expandas"} & {label.split("_")[0] for label in kernels}
    assert {label.split("_")[0] for label, count in kernels.items() if count} >= {
        "conv2d",
        "batchnorm",
        "relu",
        "linear",
    }


def test_the_kernels_of_an_op_take_no_longer_than_its_call(profiled: tl.Trace) -> None:
    for op in profiled.ops:
        assert (op.device_time or 0) <= 1e9 * (op.func_duration or 0)


def test_it_can_be_drawn_and_a_kernelless_op_reads_as_such(profiled: tl.Trace) -> None:
    drawing = profiled.draw(color_by="device_time", size_by="device_time")
    color = drawing.encoding and drawing.encoding.color
    assert color is not None
    assert (color.source, color.unit) == ("device_time", "ns")
    assert color.encoded == sum(op.device_time is not None for op in profiled.ops)
    assert any("ran no kernel: n/a" in note for note in color.notes)


def test_rolled_nodes_have_the_sum_and_say_so(profiled: tl.Trace) -> None:
    drawing = profiled.draw(color_by="device_time", rolled=True)
    assert drawing.encoding is not None
    assert drawing.encoding.color is not None
    assert "rolled nodes: sum over passes" in drawing.encoding.color.aggregation


def test_a_plain_trace_has_none_and_is_refused() -> None:
    trace = tl.trace(nn.Linear(2, 2), torch.ones(1, 2))
    assert [op.device_time for op in trace.ops] == [None]
    with pytest.raises(EvidenceError, match=r"\[device_time_unavailable\].*kernel_profile"):
        trace.draw(color_by="device_time")


def test_the_times_are_saved_and_loaded(profiled: tl.Trace, tmp_path: Any) -> None:
    loaded = tl.load(profiled.save(tmp_path / "t.safetensors"))
    assert [op.device_time for op in loaded.ops] == [op.device_time for op in profiled.ops]
    assert loaded.draw(color_by="device_time").dot == profiled.draw(color_by="device_time").dot


def test_a_forward_that_raises_raises() -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        tl.report.kernel_profile(Broken(), torch.ones(1), capture={"save": "none"})


# -- joining
@dataclass
class Event:
    name: str
    self_cpu_time_total: float = 0.0
    kernels: list[Any] = field(default_factory=list)
    cpu_children: list[Event] = field(default_factory=list)
    cpu_parent: Event | None = None
    device_type: DeviceType = DeviceType.CPU

    def holding(self, *children: Event) -> Event:
        self.cpu_children = list(children)
        for child in children:
            child.cpu_parent = self
        return self


@dataclass
class Kernel:
    duration: float


def test_kernels_of_a_device_are_summed_per_op_and_operators_then_are_none() -> None:
    data = builders.chain()
    ops = data.op_indexes[:2]
    launch = Event("aten::addmm", 99.0, [Kernel(2.5), Kernel(1.0)])
    events = [
        Event("torchlens op 0").holding(Event("aten::linear", 5.0).holding(launch)),
        Event("torchlens op 1").holding(Event("aten::relu", 3.0)),
        Event("torchlens op 1", device_type=DeviceType.CUDA),
    ]
    join(data, events, {0: ops[0], 1: ops[1]})
    assert data.kernel_join == JOINED
    assert [data.nodes.device_time[i] for i in ops] == [3500, None]
    assert [data.nodes.num_kernels[i] for i in ops] == [2, 0]


@pytest.mark.parametrize("count", [0, 2])
def test_an_op_that_is_not_there_exactly_once_fails_the_join(count: int) -> None:
    data = builders.chain()
    first, second = data.op_indexes[:2]
    join(data, [Event("torchlens op 0"), *[Event("torchlens op 1")] * count], {0: first, 1: second})
    assert data.kernel_join == "1 of 2 ops were not found in the profiler's session"
    assert data.nodes.device_time == [None] * len(data.nodes)


def test_only_the_time_of_computing_operators_counts() -> None:
    data = builders.chain()
    (first, *_) = data.op_indexes
    inner = Event("aten::copy_", 4.0)
    tree = Event("torchlens op 0", 100.0).holding(
        Event("aten::linear", 10.0).holding(
            Event("aten::t", 1.0).holding(Event("aten::as_strided", 1.0)), Event("aten::addmm", 7.0).holding(inner)
        ),
        Event("aten::clone", 2.0).holding(Event("aten::empty_like", 1.0), Event("aten::copy_", 3.0)),
    )
    join(data, [tree], {0: first})
    # addmm and both copies; clone only made room and called one.
    assert data.nodes.device_time[first] == 14_000
    assert data.nodes.num_kernels[first] == 3


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("aten::addmm", OWN), ("aten::relu", OWN), ("aten::view", NONE), ("aten::t", NONE), ("aten::linear", NONE),
        ("aten::empty", NONE), ("aten::clone", SHARED), ("aten::mkldnn_convolution", SHARED), ("a range", NONE),
    ],
)  # fmt: skip
def test_what_an_operator_is(name: str, kernel: str) -> None:
    assert _kernel_of(name) == kernel


def test_a_label_row_tells_the_time_and_where_there_is_none(profiled: tl.Trace) -> None:
    rows = {
        node.name: [line for row in node.rows if row.token == "device_time" for line in row.lines]
        for node in profiled.draw(node_style="profiling")._scene.nodes
    }
    for op in profiled.ops:
        (text,) = rows[op.label]
        assert (text == "device=n/a") == (op.device_time is None)
    assert rows["input_1"] == []
    plain = tl.trace(Net().eval(), torch.randn(1, 3, 4, 4), save="none")
    assert "device=" not in plain.draw(node_style="profiling").dot
