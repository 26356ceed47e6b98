"""What a trace replaces in the process is put back, also when putting it in place fails, and nothing else is."""

from __future__ import annotations

import gc
import sys

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.capture import patches


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


def process() -> tuple[object, ...]:
    return nn.Module.__call__, Plain.forward, sys.getrecursionlimit(), gc.isenabled(), torch.Tensor.set_


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_installation_that_fails_halfway_is_undone(error, monkeypatch: pytest.MonkeyPatch) -> None:
    before, opened = process(), []
    open_door = patches._open_door

    def fails_at_the_fourth(undo, door) -> None:
        opened.append(door)
        if len(opened) == 4:
            raise error
        open_door(undo, door)

    with monkeypatch.context() as broken:
        broken.setattr(patches, "_open_door", fails_at_the_fourth)
        with pytest.raises(error):
            tl.trace(Plain(), torch.ones(2, 4))
    assert process() == before
    assert len(tl.trace(Plain(), torch.ones(2, 4))) == 1
    assert process() == before


def test_a_class_that_lets_nobody_change_it_is_traced_all_the_same() -> None:
    class Locked(type):
        def __setattr__(cls, name, value):
            raise RuntimeError("locked")

    class Model(Plain, metaclass=Locked):
        def forward(self, x):
            return self.fc(x) * 2

    before = process()
    assert len(tl.trace(Model(), torch.ones(2, 4))) == 2
    assert process() == before


def test_a_trace_in_a_trace_is_refused_and_the_outer_one_goes_on() -> None:
    class Nested(Plain):
        def forward(self, x):
            for inner in (tl.trace, tl.validation.validate_forward_pass):
                with pytest.raises(tl.TorchLensError) as caught:
                    inner(Plain(), x.detach())
                assert caught.value.code == "trace_nested"
            return self.fc(x)

    before = process()
    assert tl.trace(Nested(), torch.ones(2, 4)).outcome.completed
    assert process() == before


def test_what_the_forward_changes_stays_changed() -> None:
    def other(self, x):
        return x

    class Changing(Plain):
        def forward(self, x):
            Changing.forward = other
            sys.setrecursionlimit(5000)
            return self.fc(x)

    limit = sys.getrecursionlimit()
    try:
        tl.trace(Changing(), torch.ones(2, 4))
        assert vars(Changing)["forward"] is other
        assert sys.getrecursionlimit() == 5000
    finally:
        sys.setrecursionlimit(limit)


def test_what_runs_unwatched_runs_watched() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.other: list[nn.Module] = []

        def forward(self, x, depth: int):
            return x + 1 if not depth else self.other[0].forward(x, depth - 1)

    first, second = Deep(), Deep()
    first.other, second.other = [second], [first]
    depth = sys.getrecursionlimit() - 300
    first(torch.ones(2), depth)
    assert len(tl.trace(first, (torch.ones(2), depth), save="none")) == 1
