"""Statistics agree with plain arithmetic, and taking them leaves no mark."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import torchlens as tl
from tests.models import recording as zoo
from torchlens.capture import statistics
from torchlens.capture.statistics import WatchedParameters, held_by, stats_of
from torchlens.records.payloads import Held, OutStats

NAN, INF = math.nan, math.inf


def by_hand(tensor: torch.Tensor) -> OutStats:
    """The same facts from Python numbers."""
    numbers = [complex(v) for v in tensor.flatten().tolist()]
    nans = [v for v in numbers if math.isnan(v.real) or math.isnan(v.imag)]
    infinite = [v for v in numbers if v not in nans and (math.isinf(v.real) or math.isinf(v.imag))]
    nan_ids = {id(v) for v in nans} | {id(v) for v in infinite}
    sizes = [abs(v) for v in numbers if id(v) not in nan_ids]
    negative = 0 if tensor.is_complex() else sum(v.real < 0 for v in infinite)
    counts = (len(nans), len(infinite) - negative, negative)
    if not sizes:
        return OutStats(len(numbers), None, None, None, *counts)
    return OutStats(
        len(numbers), math.fsum(sizes) / len(sizes), math.sqrt(math.fsum(s * s for s in sizes)), max(sizes), *counts
    )


TENSORS = {
    "floats": torch.linspace(-3, 2, 24).reshape(2, 3, 4),
    "one odd of each": torch.tensor([1.0, NAN, INF, -INF, -2.0]),
    "only nan": torch.full((3,), NAN),
    "scalar": torch.tensor(-2.5),
    "scalar nan": torch.tensor(NAN),
    "scalar minus inf": torch.tensor(-INF),
    "one element": torch.tensor([[3.0]]),
    "empty": torch.empty(0, 3),
    "whole numbers": torch.tensor([-3, 4, 0]),
    "bytes": torch.tensor([255, 1], dtype=torch.uint8),
    "largest whole number": torch.tensor([2**62, -(2**62)]),
    "bools": torch.tensor([True, False, True, True]),
    "half": torch.tensor([60000.0, -60000.0, 1.0], dtype=torch.float16),
    "brain float": torch.tensor([1.5, -INF], dtype=torch.bfloat16),
    "eight bits": torch.tensor([1.0, -2.0]).to(torch.float8_e4m3fn),
    "large floats": torch.tensor([3e38, 3e38]),
    "complex": torch.tensor([3 + 4j, complex(NAN, 1), complex(INF, NAN), complex(1, -INF)]),
    "complex beyond its own precision": torch.tensor([complex(3e38, 3e38), 1 + 0j]),
    "one complex": torch.tensor(3 + 4j),
    "transposed": torch.linspace(-3, 2, 24).reshape(2, 3, 4).permute(2, 0, 1),
    "strided": torch.linspace(-3, 2, 24)[::5],
    "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
    "conjugated": torch.tensor([3 + 4j, 1 - 1j]).conj(),
}


@pytest.mark.parametrize("name", TENSORS)
def test_statistics_are_those_of_the_numbers(name):
    (found,) = stats_of(TENSORS[name])
    wanted = by_hand(TENSORS[name])
    if wanted.abs_mean is None:
        assert found == wanted
        return
    assert (found.numel, found.n_nan, found.n_posinf, found.n_neginf) == (
        wanted.numel, wanted.n_nan, wanted.n_posinf, wanted.n_neginf,
    )  # fmt: skip
    for field in ("abs_mean", "l2", "abs_max"):
        assert getattr(found, field) == pytest.approx(getattr(wanted, field), rel=1e-12)
    assert found.is_finite == (found.n_finite == found.numel)


def test_pieces_add_up(monkeypatch):
    tensor = torch.randn(7, 11)
    tensor[3, 4], tensor[6, 10], tensor[0, 0] = NAN, INF, -INF
    (whole,) = stats_of(tensor)
    monkeypatch.setattr(statistics, "_CHUNK", 8)
    (pieces,) = stats_of(tensor)
    assert pieces.abs_mean == pytest.approx(whole.abs_mean)
    assert pieces.l2 == pytest.approx(whole.l2)
    assert (pieces.abs_max, pieces.n_nan, pieces.n_posinf, pieces.n_neginf) == (whole.abs_max, 1, 1, 1)


def test_sums_are_made_in_double_precision():
    (found,) = stats_of(torch.full((1_000_000,), 0.1))
    assert found.abs_mean == pytest.approx(float(torch.tensor(0.1)), rel=1e-12)


def test_what_a_sparse_tensor_leaves_out_counts_as_zero():
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 0, 2]]), torch.tensor([1.0, 2.0, -5.0]), (4,))
    (found,) = stats_of(sparse)
    assert (found.numel, found.abs_mean, found.abs_max) == (4, 2.0, 5.0)


def test_values_that_cannot_be_read_are_unknown():
    seen = []

    def look(x):
        seen.append(stats_of(x))
        return x

    torch.func.vmap(look)(torch.ones(2, 3))
    assert seen == [(None,)]
    assert stats_of(torch.empty(2, device="meta")) == (None,)
    assert stats_of([torch.ones(1), {"a": torch.zeros(1)}])[1].abs_max == 0.0


def test_nothing_is_left_behind():
    tensor = (torch.ones(3, requires_grad=True) * 2).view(3)
    version, state, grad_fn = tensor._version, torch.get_rng_state(), tensor.grad_fn
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Watch():
        stats_of(tensor)
    assert seen == []
    assert tensor._version == version
    assert tensor.grad_fn is grad_fn
    assert torch.equal(torch.get_rng_state(), state)


def test_statistics_are_taken_without_keeping_values():
    trace = tl.trace(zoo.Several(), torch.tensor([[1.0, 2.0, NAN, 4.0]]), save="none", capture={"out_stats": True})
    first, second = trace["split_1_2"].stats
    assert (first.n_nan, second.n_nan, second.abs_max) == (0, 1, 4.0)
    assert trace["input_1"].stats.n_nan == 1
    assert trace["sub_1_3"].stats == trace["output_3"].stats


def test_a_write_that_returns_nothing_has_those_of_what_it_wrote():
    trace = tl.trace(zoo.ListWrite(), torch.arange(8.0).reshape(2, 4), save="none", capture={"out_stats": True})
    writes = [op for op in trace.ops if op.func_name == "__setitem__"]
    assert [op.stats.abs_max for op in writes] == [4.0, 5.0, 6.0]


def test_statistics_of_kept_values_are_worked_out_when_asked():
    kept = tl.trace(zoo.Loop(), torch.randn(2, 4))
    assert kept.data.nodes.stats[0] is None
    op = kept.ops[1]
    assert op.stats == by_hand(op.out) or op.stats.l2 == pytest.approx(by_hand(op.out).l2)
    nothing = tl.trace(zoo.Loop(), torch.randn(2, 4), save="none")
    assert nothing.ops[1].stats is None


def test_statistics_of_an_overwritten_value_are_unknown():
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    trace = tl.trace(Add(), torch.ones(2))
    trace.result.mul_(5)
    assert trace["add_1_1"].stats is None


# -- what parameters hold
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64])
def test_what_a_tensor_holds_is_what_is_in_it(dtype):
    plain = torch.ones(4, dtype=dtype)
    assert held_by(plain) == Held()
    for wrong, kinds in ((NAN, ("nan",)), (INF, ("posinf",))):
        plain[2] = wrong
        assert held_by(nn.Parameter(plain.clone())) == Held(kinds)
    if not dtype.is_complex:
        plain[1], plain[0] = -INF, NAN
        assert held_by(plain) == Held(("nan", "posinf", "neginf"))


def test_what_cannot_be_read_is_not_known_and_nothing_is_finite():
    assert held_by(torch.empty(2, device="meta")) == Held((), False)
    assert held_by(torch.empty(0)) == Held()
    assert held_by(torch.tensor([1, 2])) == Held()
    assert held_by(torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {}))) == Held((), False)
    sparse = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.tensor([NAN]), (4,))
    assert held_by(sparse) == Held(("nan",))


def test_parameters_are_known_while_they_are_as_they_were():
    first, second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.tensor([NAN]))
    watched = WatchedParameters([first, second])
    assert (watched.held(0), watched.held(1)) == (Held(), Held(("nan",)))
    with torch.no_grad():
        first.add_(1)
    assert watched.held(0) == Held((), False)
    del second
    assert watched.held(1) == Held((), False)
    assert watched.held(7) == Held((), False)


def test_parameters_are_looked_at_once_when_statistics_are_taken_and_never_otherwise(monkeypatch):
    seen = []
    monkeypatch.setattr(statistics, "held_by", lambda tensor: seen.append(tensor.shape) or Held())
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    model.unused = nn.Parameter(torch.ones(5))
    tl.trace(model, torch.ones(1, 2), save="none").draw(file_format="dot")
    tl.trace(model, torch.ones(1, 2)).draw(file_format="dot")
    assert seen == []
    trace = tl.trace(model, torch.ones(1, 2), save="none", capture={"out_stats": True})
    assert sorted(seen) == [(2,), (2, 3), (3,), (3, 2)]
    assert [held.known for held in trace.data.param_values] == [p.address != "unused" for p in trace.params]
    trace.draw(view="debug", file_format="dot")
    assert len(seen) == 4


def test_a_trace_keeps_no_parameter_alive():
    model = nn.Linear(2, 2)
    gone = weakref.ref(model.weight)
    with torch.no_grad():
        trace = tl.trace(model, torch.ones(1, 2))
    del model
    gc.collect()
    assert gone() is None
    assert trace.first_nonfinite == ()
