"""Kept values are right as of their call, or refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def test_values_are_references_not_copies():
    model = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    result = tl.trace(model, x)
    assert result["input_1"].out.data_ptr() == x.data_ptr()
    assert result["linear_1_1"].out.data_ptr() == result.result.data_ptr()
    assert not result["linear_1_1"].out.requires_grad
    assert result.result.requires_grad


def test_a_value_written_in_place_later_is_as_it_was():
    model = zoo.Conv().eval()
    x = torch.randn(2, 3, 8, 8)
    result = tl.trace(model, x)
    normed = model.features[1](model.features[0](x))
    assert torch.allclose(result["batchnorm_1_2"].out, normed)
    assert torch.allclose(result["relu_1_3"].out, normed.relu())


def test_an_input_written_in_place_is_kept_as_given():
    class Write(nn.Module):
        def forward(self, x):
            return x.mul_(2) + 1

    x = torch.ones(3)
    result = tl.trace(Write(), x)
    assert torch.equal(x, torch.full((3,), 2.0))
    assert torch.equal(result["input_1"].out, torch.ones(3))
    assert torch.equal(result["mul_1_1"].out, torch.full((3,), 2.0))


def test_a_write_through_a_view_spares_the_whole():
    x = torch.ones(2, 4)
    result = tl.trace(zoo.AliasWrite(), x)
    assert torch.equal(result["mul_1_1"].out, torch.full((2, 4), 2.0))
    assert torch.equal(result["mul_2_3"].out, torch.full((2,), 6.0))
    assert result["add_1_4"].out[:, 0].tolist() == [7.0, 7.0]


def test_a_later_write_by_the_caller_is_refused_not_shown():
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    result = tl.trace(Add(), torch.ones(2))
    assert result["add_1_1"].out.tolist() == [2.0, 2.0]
    result.result.mul_(5)
    with pytest.raises(tl.TorchLensError) as caught:
        _ = result["add_1_1"].out
    assert caught.value.code == "payload_overwritten"


def test_several_outputs_keep_their_structure():
    result = tl.trace(zoo.Several(), torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert result["max_1_1"].out.values.tolist() == [4.0]
    assert result["max_1_1"].out.indices.tolist() == [3]
    assert [part.tolist() for part in result["split_1_2"].out] == [[[1.0, 2.0]], [[3.0, 4.0]]]


def test_assigned_slices_keep_each_state():
    result = tl.trace(zoo.ListWrite(), torch.arange(8.0).reshape(2, 4))
    assert result["zeros_1_1"].out.abs().sum() == 0
    assert result["setitem_1_3:1"].out[0].tolist() == [0.0, 4.0]
    assert result["setitem_1_3:1"].out[1].tolist() == [0.0, 0.0]
    assert torch.equal(result["setitem_1_3:3"].out, result.result)


def test_metadata_only_keeps_nothing_and_says_so():
    result = tl.trace(nn.Linear(4, 4), torch.randn(2, 4), save="none")
    assert result.result is None
    with pytest.raises(tl.TorchLensError) as caught:
        _ = result["linear_1_1"].out
    assert caught.value.code == "payload_unavailable"


def test_views_of_the_same_bytes_share_one_copy():
    class Handed(nn.Module):
        def __init__(self):
            super().__init__()
            self.same, self.relu = nn.Identity(), nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.same(x * 2))

    result = tl.trace(Handed(), torch.tensor([-1.0, 1.0]))
    first, second = result["mul_1_1"].out, result["identity_1_2"].out
    assert first.tolist() == second.tolist() == [-2.0, 2.0]
    assert first.data_ptr() == second.data_ptr()
    assert result["relu_1_3"].out.tolist() == [0.0, 2.0]


def test_pieces_that_a_write_spares_are_not_copied():
    class Halves(nn.Module):
        def forward(self, x):
            left, right = (x * 2).chunk(2)
            left.relu_()
            return left + right

    result = tl.trace(Halves(), torch.tensor([-1.0, -3.0]))
    left, right = result["chunk_1_2"].out
    whole = result["mul_1_1"].out
    assert (left.tolist(), right.tolist(), whole.tolist()) == ([-2.0], [-6.0], [-2.0, -6.0])
    assert right.untyped_storage().nbytes() == 8
    assert left.untyped_storage().nbytes() == 4


def test_a_value_changed_unseen_and_then_seen_is_refused():
    from torchlens.capture.values import Payloads

    payloads, tensor = Payloads(), torch.ones(2)
    payloads.keep(0, tensor)
    tensor.add_(1)
    payloads.keep(1, tensor)
    payloads.save_from_write([tensor])
    tensor.add_(1)
    assert payloads.intact(0) is None
    assert payloads.intact(1).tolist() == [2.0, 2.0]
    with pytest.raises(tl.TorchLensError) as caught:
        payloads.value(0, "x")
    assert caught.value.code == "payload_overwritten"


def test_what_is_let_go_is_not_held():
    import weakref

    from torchlens.capture.values import Payloads

    payloads, tensors = Payloads(), [torch.ones(2), torch.ones(2)]
    for node, tensor in enumerate(tensors):
        payloads.keep(node, tensor)
    payloads.save_from_write([torch.ones(1)])
    storages = [weakref.ref(payloads.intact(node)) for node in range(2)]
    payloads.retain({1})
    assert [ref() is None for ref in storages] == [True, False]
    assert (payloads.holds(0), payloads.holds(1)) == (False, True)


def test_pieces_written_one_after_the_other_are_each_as_they_were():
    class Rows(nn.Module):
        def forward(self, x):
            table = x * 1
            rows = [table[k] for k in range(6)]
            for k in (0, 2, 4, 1):
                rows[k].add_(10)
            return rows[5] + rows[3]

    result = tl.trace(Rows(), torch.arange(12.0).reshape(6, 2))
    reads = [op.out for op in result.ops if op.func_name == "__getitem__"]
    assert torch.equal(torch.stack(reads), torch.arange(12.0).reshape(6, 2))
    assert torch.equal(result.ops[0].out, torch.arange(12.0).reshape(6, 2))
    assert [op.out.tolist() for op in result.ops if op.func_name == "add_"][1] == [14.0, 15.0]


def test_a_piece_that_an_announced_write_spared_is_still_refused_after_an_unknown_one():
    from torchlens.capture.values import Payloads

    payloads, whole = Payloads(), torch.ones(4)
    payloads.keep(0, whole[:2])
    payloads.keep(1, whole[2:])
    payloads.save_from_write([whole[:2]])
    whole[:2].mul_(3)
    payloads.keep(2, whole[:2])
    assert [payloads.intact(node).tolist() for node in range(3)] == [[1.0, 1.0], [1.0, 1.0], [3.0, 3.0]]
    whole[2:].mul_(5)
    assert [payloads.intact(node) is None for node in range(3)] == [False, True, True]
