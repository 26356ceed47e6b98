"""What users attach to nodes: plain values among the annotations."""

from __future__ import annotations

import json

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.records.notes import EMPTY, attach, batch_limit, batch_render, check_batch_render, note_of, plain_rows


def test_rows_are_added_and_a_picture_is_replaced() -> None:
    data = builders.chain()
    assert attach(data, [1, 2], rows={"a": 1}, image=b"one") == (data.nodes.label[1], data.nodes.label[2])
    attach(data, [1], rows={"b": 2, "a": 3}, image=b"two")
    assert note_of(data, 1) == ({"a": 3, "b": 2}, b"two", ())
    assert note_of(data, 2) == ({"a": 1}, b"one", ())
    assert note_of(data, 0) == EMPTY


def test_data_is_copied_as_plain_json() -> None:
    given = {"scores": [1, 2.5], "why": None}
    rows = plain_rows(given)
    given["scores"].append(3)  # type: ignore[union-attr]
    assert rows == {"scores": [1, 2.5], "why": None}
    assert plain_rows("seen") == {"": "seen"}
    assert plain_rows({1: (2, 3)}) == {"1": [2, 3]}
    json.dumps(rows)


@pytest.mark.parametrize("value", [{"x": object()}, {"x": float("nan")}, {("a", "b"): 1}, b"bytes"])
def test_data_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        plain_rows(value)
    assert caught.value.code == "annotation_invalid"


@pytest.mark.parametrize("junk", [7, {"relu_1_2": 3}, {"relu_1_2": {"data": 1, "image": "x", "batch": [1]}}])
def test_annotations_of_another_form_are_not_notes(junk: object) -> None:
    data = builders.chain()
    data.annotations["nodes"] = junk
    assert all(note_of(data, i) == EMPTY for i in range(len(data.nodes)))


@pytest.mark.parametrize(
    ("value", "limit"),
    [("auto", 4), ("all", 16), ("first", 1), ("shape_only", 0), ("first_n:3", 3), ("first_n:99", 16)],
)
def test_how_many_pictures_of_a_batch_are_shown(value: str, limit: int) -> None:
    assert batch_limit(check_batch_render(value)) == limit


@pytest.mark.parametrize("value", ["none", "first_n:0", "first_n:", "first_n:x", 3, None, True])
def test_a_wrong_way_to_show_a_batch_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_batch_render(value)
    assert caught.value.code == "batch_render_invalid"


def test_a_trace_shows_batches_as_usual_unless_told() -> None:
    assert batch_render(builders.chain()) == "auto"
