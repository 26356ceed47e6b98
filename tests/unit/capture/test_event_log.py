"""What the log makes of odd arguments and results."""

from __future__ import annotations

import gc
import weakref

import torch
import torch.nn.functional as F
from torch import nn

import torchlens as tl
from torchlens.capture.event_log import _stand_in


class Program(nn.Module):
    """Runs a function as its forward."""

    def __init__(self, function) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(4))
        self.register_buffer("b", torch.zeros(4))
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def trace(function) -> tl.Trace:
    recorded = tl.trace(Program(function), torch.ones(2, 4))
    recorded.check()
    return recorded


def test_what_a_call_hands_back_is_what_it_made() -> None:
    recorded = trace(lambda m, x: F.linear(x, m.w.contiguous()))
    assert [(op.parents, op.params) for op in recorded.ops] == [((), ("w",)), (("input_1", "contiguous_1_1"), ())]


def test_an_argument_is_asked_for_nothing() -> None:
    class Trap:
        def __getattr__(self, name):
            raise RuntimeError(name)

    assert _stand_in(Trap()) == "Trap"
    assert _stand_in(Trap) == "Trap"
    assert _stand_in(torch.relu) == "relu"


def test_long_lists_of_numbers_are_cut() -> None:
    recorded = trace(lambda m, x: x.sum() + torch.tensor([0.5] * 100_000).sum())
    assert recorded.outcome.completed
    from torchlens.capture.dispatch import Recorder

    kept = [
        len(a) for r in gc.get_objects() if type(r) is Recorder for e in r.log.events for a in e.args if type(a) is list
    ]
    assert max(kept, default=0) <= 1024


def test_functions_of_the_user_are_let_go() -> None:
    class Helper:
        def __init__(self) -> None:
            self.weight = torch.ones(2, 4)

        def scaled(self, x):
            return x * self.weight

    helper = Helper()
    gone = weakref.ref(helper)

    class Tagged(torch.Tensor):
        pass

    def forward(m, x):
        return torch.overrides.handle_torch_function(helper.scaled, (x.as_subclass(Tagged),), x)

    recorded = trace(forward)
    _ = recorded.to_dict()
    del recorded, forward
    helper = None
    gc.collect()
    assert gone() is None
