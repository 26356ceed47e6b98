"""Functions that pass tensors on unseen are watched during a trace, and are torch's own again after it."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.capture.doors import doors
from torchlens.capture.forwards import forward_classes


class Program(nn.Module):
    """Runs a function as its forward."""

    def __init__(self, function) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("state", torch.zeros(4))
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def trace(function, x=None) -> tl.Trace:
    found = tl.trace(Program(function), torch.ones(2, 4) if x is None else x)
    found.check()
    return found


def held() -> list[object]:
    return [vars(door.owner).get(door.name) for door in doors()]


def fails(m, x):
    raise ValueError("no")


@pytest.mark.parametrize("function", [lambda m, x: m.fc(x), fails], ids=["returns", "raises"])
def test_everything_is_torchs_own_again(function) -> None:
    model = Program(function)
    before = (held(), [vars(kind)["forward"] for kind in forward_classes(model.modules())], nn.Module.__call__)
    with suppress(ValueError):
        tl.trace(model, torch.ones(2, 4))
    assert (held(), [vars(kind)["forward"] for kind in forward_classes(model.modules())], nn.Module.__call__) == before


def test_doors_of_another_thread_stay_closed() -> None:
    found: list[torch.Tensor] = []

    def forward(m, x):
        worker = threading.Thread(target=lambda: found.append(nn.Parameter(torch.ones(3))))
        worker.start()
        worker.join()
        return m.fc(x)

    recorded = trace(forward)
    assert len(found) == 1
    assert [op.func_name for op in recorded.ops] == ["linear"]
    assert "threads_started" in [row["code"] for row in recorded.annotations["capture_advisories"]]


def test_an_assigned_buffer_is_its_next_version() -> None:
    def forward(m, x):
        m.state = m.state + x.sum(0)
        m.state = m.state * 2
        return x + m.state

    recorded = trace(forward)
    versions = [recorded.data.nodes.label[i] for i in recorded.buffers[0].versions]
    assert len(versions) == 3
    assert [recorded[label].parents for label in versions] == [(), ("add_1_2",), ("mul_1_3",)]
    assert recorded["add_2_4"].parents == ("input_1", versions[-1])


def test_a_swap_exchanges_what_is_known() -> None:
    def forward(m, x):
        a, b = x * 2, x + 1
        torch.utils.swap_tensors(a, b)
        return a - 1, b - 2

    recorded = trace(forward)
    assert [op.parents for op in recorded.ops][2:] == [("add_1_2",), ("mul_1_1",)]


def test_a_refused_swap_leaves_both_as_they_were() -> None:
    def forward(m, x):
        a, b = x * 2, x + 1
        mine = weakref.ref(a)
        with pytest.raises(RuntimeError, match="weakref"):
            torch.utils.swap_tensors(a, b)
        return mine() - 1, b - 2

    recorded = trace(forward)
    assert [op.parents for op in recorded.ops][2:] == [("mul_1_1",), ("add_1_2",)]


def test_parts_of_complex_tensors_are_written_by_ops() -> None:
    def forward(m, x):
        z = torch.complex(x, x)
        z.imag = x * 2
        return z.abs()

    recorded = trace(forward)
    assert [op.func_name for op in recorded.ops] == ["complex", "mul", "set_imag", "abs"]
    assert recorded.ops[3].parents == (recorded.ops[2].label,)
    assert torch.equal(recorded.result, torch.complex(torch.ones(2, 4), torch.ones(2, 4) * 2).abs())


def test_the_setter_of_a_property_is_part_of_the_forward() -> None:
    class Owner(nn.Module):
        @property
        def scale(self):
            return self._scale

        @scale.setter
        def scale(self, value):
            self._scale = value * 2

        def forward(self, x):
            self.scale = x.sin()
            return self.scale + 1

    recorded = tl.trace(Owner(), torch.ones(2))
    assert [op.func_name for op in recorded.ops] == ["sin", "mul", "add"]
    assert recorded["add_1_3"].parents == ("mul_1_2",)


def test_attributes_of_scripted_modules_can_be_set() -> None:
    class Owner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.script(nn.Sequential(nn.ReLU()))

        def forward(self, x):
            self.inner.note = 3
            return self.inner(x)

    assert tl.trace(Owner(), torch.ones(2)).outcome.completed


def test_a_nan_that_a_scripted_module_only_reads_is_no_write() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("b", torch.tensor([float("nan"), 1.0]))

        def forward(self, x):
            return x * self.b

    class Owner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.script(Reads())

        def forward(self, x):
            return self.inner(x) + self.inner(x)

    recorded = tl.trace(Owner(), torch.ones(2))
    assert [len(buffer.versions) for buffer in recorded.buffers] == [1]
