"""Identity by reference, geometry, and overlap of writes."""

from __future__ import annotations

import torch

from torchlens.capture.tensors import TensorTable, extent, map_tensors


def test_a_dead_tensor_never_answers_for_a_new_one():
    table = TensorTable(lambda node: ())
    for _ in range(100):
        tensor = torch.zeros(2)
        assert table.find(tensor) is None
        table.register(tensor, 1)
        assert table.find(tensor).node == 1
        del tensor


def test_equal_geometry_is_one_object():
    table = TensorTable(lambda node: ())
    assert table.spec_of(torch.zeros(2, 3)) is table.spec_of(torch.ones(2, 3))
    spec = table.spec_of(torch.zeros(2, 3, dtype=torch.float16))
    assert (spec.shape, spec.dtype, spec.device, spec.nbytes) == ((2, 3), "float16", "cpu", 12)


def test_a_view_reports_its_logical_size():
    assert TensorTable(lambda node: ()).spec_of(torch.zeros(4).expand(3, 4)).nbytes == 48


def test_extent_is_the_byte_range():
    whole = torch.zeros(4, 8)
    storage, first, last = extent(whole)
    assert (first, last) == (0, 128)
    assert extent(whole[1]) == (storage, 32, 64)
    assert extent(whole[:, 1]) == (storage, 4, 104)
    assert extent(torch.zeros(0))[1:] == (0, 0)


def test_refresh_names_only_overlapping_later_writers():
    table, whole = TensorTable(lambda node: ()), torch.zeros(4, 8)
    top, bottom = whole[:2], whole[2:]
    table.register(whole, 1)
    table.register(top, 2)
    table.note_write(bottom, 3)
    table.note_write(top, 4)
    assert table.refresh(top, table.find(top)).late == (4,)
    assert table.refresh(whole, table.find(whole)).late == (3, 4)


def test_map_tensors_keeps_the_structure():
    pair = torch.tensor([[1.0, 2.0]]).max(1)
    mapped = map_tensors([pair, {"a": torch.ones(1)}, 3], lambda t: tuple(t.shape))
    assert type(mapped[0]).__name__ == "max"
    assert mapped[0].values == (1,)
    assert mapped[1:] == [{"a": (1,)}, 3]
