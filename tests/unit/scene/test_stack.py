"""Columns of a loop, and columns by anything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.drawings import draw_trace
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import Scene, TextLine

MakeScene = Callable[..., Scene]


def columns(scene: Scene) -> list[list[str]]:
    return [[scene.nodes[k].name for k in column] for column in scene.columns]


def texts(scene: Scene, kind: str) -> list[str]:
    return [line.text for line in scene.root if isinstance(line, TextLine) and line.kind == kind]


def two_loops() -> TraceData:
    """One loop after the other: nothing says which of their passes belong together."""
    b = builders.Builder()
    h = b.input()
    for layer in ("tanh", "relu"):
        for _ in range(2):
            h = b.op(layer, [h], layer=layer)
    b.output(h)
    return b.build()


@pytest.mark.parametrize("asked", [True, "auto"])
def test_ops_of_a_pass_share_a_column_and_what_ran_once_has_none(scene: MakeScene, asked: object) -> None:
    made = scene(builders.loop(3), stack_by=asked)
    found = columns(made)
    assert len(found) == 3
    for number, column in enumerate(found, 1):
        assert len(column) == 4
        assert all(name.endswith(f":{number}") for name in column)
    assert made.encoding is not None
    assert made.encoding.stack is not None
    assert (made.encoding.stack.source, made.encoding.stack.encoded) == ("pass_number", 12)


def test_the_annotation_is_in_the_key_and_in_the_caption(scene: MakeScene) -> None:
    made = scene(builders.loop(), stack_by=True)
    assert texts(made, "key") == ["aligned: same pass_number"]
    assert texts(made, "caption") == ["columns: nodes with the same pass_number"]
    assert texts(scene(builders.loop(), stack_by=True, show_legend=False), "key") == []


def test_boxes_stand_in_the_column_of_all_their_members(scene: MakeScene) -> None:
    b = builders.Builder()
    h = b.input()
    for _ in range(2):
        for name in ("a", "b"):
            with b.module(name) as call:
                h = b.op("tanh", [b.op("neg", [h], layer=f"{name}.neg")], layer=f"{name}.tanh")
                call.returns = [h]
    b.output(h)
    found = columns(scene(b.build(), stack_by=True, depth=1))
    assert found == [["module:a:1", "module:b:1"], ["module:a:2", "module:b:2"]]


@pytest.mark.parametrize("data", [two_loops(), builders.chain()], ids=["two loops", "no loop"])
def test_without_lockstep_nothing_is_derived(scene: MakeScene, data: TraceData) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[stack_by_auto_underivable\]"):
        scene(data, stack_by=True)


def test_an_annotation_of_ones_own_needs_no_lockstep_and_is_named(scene: MakeScene) -> None:
    made = scene(two_loops(), stack_by="pass_number")
    assert columns(made) == [["tanh_1_1:1", "relu_1_2:1"], ["tanh_1_1:2", "relu_1_2:2"]]
    assert texts(made, "caption") == ["columns: nodes with the same pass_number"]


def test_a_function_may_name_columns_and_leave_nodes_out(scene: MakeScene) -> None:
    def half(record: object) -> object:
        return None if record.kind != "op" else record.type == "relu"  # type: ignore[attr-defined]

    made = scene(two_loops(), stack_by=half)
    assert columns(made) == [["tanh_1_1:1", "tanh_1_1:2"], ["relu_1_2:1", "relu_1_2:2"]]
    assert texts(made, "key") == ["aligned: same half"]


@pytest.mark.parametrize("field", ["num_passes", "step", "n", "type", "func_name", "layer_label", "dtype", "device"])
def test_every_field_is_the_records_own(scene: MakeScene, field: str) -> None:
    data = two_loops()
    made = scene(data, stack_by=field)

    def value(name: str) -> object:
        record = data.record(data.index_of[name])
        return getattr(record, field) if hasattr(record, field) else getattr(record.outs[0], field)

    assert columns(made)
    for column in columns(made):
        assert len({value(name) for name in column}) == 1
    groups = {value(data.nodes.label[i]) for i in data.op_indexes}
    assert len(columns(made)) == len(groups)


def test_what_is_neither_text_nor_number_names_no_column(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[encoding_value_invalid\].*list"):
        scene(two_loops(), stack_by=lambda record: [1])


def test_a_rolled_drawing_has_no_passes_to_align(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[stack_by_requires_unrolled\]"):
        scene(builders.loop(), stack_by=True, rolled=True)


def test_the_engine_puts_a_column_on_one_line_and_keeps_the_frames() -> None:
    b = builders.Builder()
    x = b.input()
    h = x
    for _ in range(3):
        with b.module("cell", "Cell") as call:
            h = b.op("tanh", [b.op("add", [x, h], layer="add")], layer="tanh")
            call.returns = [h]
    b.output(h)
    drawing = draw_trace(b.build(), None, {"stack_by": True, "direction": "leftright", "file_format": "svg"})
    svg = drawing.data.decode()
    for number in (1, 2, 3):
        assert f'id="cluster:cell:{number}"' in svg
    places = _centres(drawing.data)
    for number in (1, 2, 3):
        across = {round(places[name][0]) for name in (f"add_1_1:{number}", f"tanh_1_2:{number}")}
        assert len(across) == 1
    assert places["add_1_1:1"][0] < places["add_1_1:2"][0] < places["add_1_1:3"][0]


def _centres(svg: bytes) -> dict[str, tuple[float, float]]:
    import xml.etree.ElementTree as ET

    found: dict[str, tuple[float, float]] = {}
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        for shape in group.iter("{http://www.w3.org/2000/svg}ellipse"):
            if (group.get("class") or "").startswith("node"):
                found[str(group.get("id"))] = (float(shape.get("cx") or 0), float(shape.get("cy") or 0))
    return found
