"""A broken recording is found out, whatever was broken; a right one is not."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from tests.models import recording as zoo
from torchlens.capture.event_log import EventLog
from torchlens.capture.memory import ModelState
from torchlens.capture.tensors import TensorTable
from torchlens.capture.values import Payloads
from torchlens.proof.validate import Proof, validate
from torchlens.records.ops import ArgRef


class LateRead(nn.Module):
    """A tensor is written through a view, and read after that; the writer leads to no other way to the output."""

    def forward(self, x):
        whole = x * 2
        whole[:, 0].mul_(3)
        return whole + 1


class Order(nn.Module):
    """Arguments that may not change places."""

    def forward(self, x):
        return (x + 1) - (x * 3)


class Pair(nn.Module):
    """Two outputs of one op."""

    def forward(self, x):
        low, high = x.split(2, dim=1)
        return low - 2 * high


class Stateful(nn.Module):
    """A buffer that is written and read again."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen.add_(x.mean(0))
        return x - self.seen


def proof_of(model, *shape):
    torch.manual_seed(0)
    args = (torch.randn(*shape),)
    return Proof(model, args, {}, ModelState(model, args))


def prove(proof):
    proof.look_for_lost_calls()
    proof.replay(perturb=False)
    proof.replay_ancestors(20)
    return {failure.check for failure in proof.report.failures}


def node_of(data, func, occurrence=0):
    return [i for i, name in enumerate(data.nodes.func) if name.strip("_") == func][occurrence]


def replace(data, node, change):
    data.nodes.parents[node] = tuple(change(ref) for ref in data.nodes.parents[node])


@pytest.mark.parametrize("model", [LateRead, Order, Pair, Stateful])
def test_the_unbroken_recordings_pass(model):
    assert prove(proof_of(model(), 3, 4)) == set()


def test_a_missing_late_arrow():
    proof = proof_of(LateRead(), 3, 4)
    node = node_of(proof.data, "add")
    kept = tuple(ref for ref in proof.data.nodes.parents[node] if not ref.late)
    assert len(kept) < len(proof.data.nodes.parents[node])
    proof.data.nodes.parents[node] = kept
    assert prove(proof) == {"ancestors"}
    (failure,) = proof.report.failures
    assert failure.label == proof.data.nodes.label[node]
    assert failure.site.startswith("test_validate.py:")
    assert "apart" in failure.what


def test_two_arrows_that_changed_places():
    proof = proof_of(Order(), 3, 4)
    node = node_of(proof.data, "sub")
    first, second = proof.data.nodes.parents[node]
    proof.data.nodes.parents[node] = (first._replace(position=(1,)), second._replace(position=(0,)))
    assert "parents" in prove(proof)


def test_places_changed_where_the_recorder_itself_is_wrong(monkeypatch):
    """The recorder's own table takes one result for another: no note can tell, but the values can."""
    plain = TensorTable.find

    def find(self, tensor):
        entry = plain(self, tensor)
        swap = {2: 1, 1: 2}
        return entry if entry is None or entry.node not in swap else entry._replace(node=swap[entry.node])

    proof = proof_of(Order(), 3, 4)
    assert [proof.data.nodes.func[i] for i in (1, 2)] == ["add", "mul"]
    monkeypatch.setattr(TensorTable, "find", find)
    proof = proof_of(Order(), 3, 4)
    node = node_of(proof.data, "sub")
    replace(proof.data, node, lambda ref: ref._replace(node={1: 2, 2: 1}[ref.node]))
    assert "replay" in prove(proof)


@pytest.mark.parametrize("output", [0, 1, 5])
def test_a_wrong_output(output):
    proof = proof_of(Pair(), 3, 4)
    node = node_of(proof.data, "sub")
    split = node_of(proof.data, "split")
    before = proof.data.nodes.parents[node]
    assert (split, 0) in [(ref.node, ref.output) for ref in before]
    replace(proof.data, node, lambda ref: ref._replace(output=output) if ref.node == split else ref)
    assert bool(prove(proof)) == (proof.data.nodes.parents[node] != before)


def test_a_missing_arrow():
    proof = proof_of(Order(), 3, 4)
    node = node_of(proof.data, "sub")
    proof.data.nodes.parents[node] = proof.data.nodes.parents[node][:1]
    assert "parents" in prove(proof)


def test_an_arrow_too_many():
    proof = proof_of(Order(), 3, 4)
    node = node_of(proof.data, "mul")
    proof.data.nodes.parents[node] += (ArgRef(0, 0, (7,)),)
    assert "parents" in prove(proof)


def test_an_output_without_a_node():
    proof = proof_of(Order(), 3, 4)
    node = proof.data.nodes.kind.index("output")
    proof.data.nodes.parents[node] = ()
    assert "outputs" in prove(proof)


def test_an_output_of_another_node():
    proof = proof_of(Order(), 3, 4)
    node = proof.data.nodes.kind.index("output")
    replace(proof.data, node, lambda ref: ref._replace(node=node_of(proof.data, "mul")))
    assert prove(proof) == {"replay"}


def test_a_buffer_version_that_nobody_made():
    proof = proof_of(Stateful(), 3, 4)
    version = [i for i, kind in enumerate(proof.data.nodes.kind) if kind == "buffer"][1]
    assert proof.data.nodes.parents[version]
    proof.data.nodes.parents[version] = ()
    assert "ancestors" in prove(proof)


def test_a_parameter_that_is_not_named():
    proof = proof_of(zoo.Loop(), 2, 4)
    node = node_of(proof.data, "linear")
    proof.data.nodes.params[node] = ()
    assert "parents" in prove(proof)


@pytest.mark.parametrize("grad", [True, False])
def test_a_dropped_event(monkeypatch, grad):
    plain = EventLog.append_op

    def append_op(self, info, *rest, **named):
        if info.name != "mul":
            plain(self, info, *rest, **named)

    monkeypatch.setattr(EventLog, "append_op", append_op)
    torch.manual_seed(0)
    x = torch.randn(3, 4, requires_grad=grad)
    model = Order()
    proof = Proof(model, (x,), {}, ModelState(model, [x]))
    assert "mul" not in proof.data.nodes.func
    assert "parents" in prove(proof)


def test_a_write_that_was_not_seen(monkeypatch):
    monkeypatch.setattr(TensorTable, "note_write", lambda *_: None)
    assert prove(proof_of(LateRead(), 3, 4)) == {"ancestors"}


def test_a_kept_value_that_was_overwritten(monkeypatch):
    assert prove(proof_of(LateRead(), 3, 4)) == set()
    monkeypatch.setattr(Payloads, "save_from_write", lambda *_: None)
    monkeypatch.setattr(Payloads, "value", lambda self, node, _: self._kept[node].tensor)
    found = proof_of(LateRead(), 3, 4).report.failures
    assert {failure.check for failure in found} == {"values"}


def test_a_run_that_recording_changes(monkeypatch):
    class Watched(nn.Module):
        """Does something else while it is recorded."""

        def forward(self, x):
            self.last = x.sum()
            return x * (2 if torch._C._len_torch_function_stack() else 3)

    report = validate(Watched(), (torch.randn(3),), {}, perturb=False, budget=5)
    assert {failure.check for failure in report.failures} == {"rerun"}


def test_a_shortcut_that_records_otherwise():
    calls = itertools.count()

    class Alternating(nn.Module):
        """Not the same twice, through state that nobody can put back."""

        def forward(self, x):
            return x.sin() if next(calls) % 2 else x.cos()

    report = validate(Alternating(), (torch.randn(3),), {}, perturb=False, budget=5)
    assert "recording" in {failure.check for failure in report.failures}
