"""Functions as value sources: told one record each, once, and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.scene.encodings import function_name
from torchlens.scene.model import Scene, TextLine

MakeScene = Callable[..., Scene]


def test_a_function_is_called_once_per_op_input_and_output_whatever_it_serves(scene: MakeScene) -> None:
    seen: Counter[str] = Counter()

    def count(record: object) -> int:
        seen[record.label] += 1  # type: ignore[attr-defined]
        return len(seen)

    data = builders.state()
    scene(data, color_by=count, size_by=count)
    wanted = {
        label for label, k in zip(data.nodes.label, data.nodes.kind, strict=True) if k in ("op", "input", "output")
    }
    assert set(seen) == wanted
    assert set(seen.values()) == {1}


def test_its_name_is_the_quantity_of_the_key(scene: MakeScene) -> None:
    def rows(record: object) -> int:
        return record.index  # type: ignore[attr-defined]

    made = scene(builders.chain(), size_by=rows)
    keys = [line.text for line in made.root if isinstance(line, TextLine) and line.kind == "key"]
    assert len(keys) == 1
    assert keys[0].startswith("size: rows,")
    assert function_name(lambda record: 1) == "value"
    assert function_name(partial(rows, 1)) == "rows"

    class Described:
        """As a configuration describes a function."""

        def __init__(self) -> None:
            self.__qualname__ = "wide"

        def __call__(self, record: object) -> int:
            return 1

    assert function_name(Described()) == "wide"
    assert made.encoding is not None
    assert made.encoding.size is not None
    assert made.encoding.size.source == "rows"


@pytest.mark.parametrize(
    "value", [True, "large", [1], 1j, object(), 10**400, Fraction(10**400, 3)], ids=lambda value: type(value).__name__
)
def test_what_is_no_number_is_refused_with_the_node(scene: MakeScene, value: object) -> None:
    for option in ("color_by", "size_by"):
        with pytest.raises(
            InvalidArgumentError, match=rf"\[encoding_value_invalid\] {option}=value gave .* at input_1"
        ):
            scene(builders.chain(), **{option: lambda record: value})


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_no_number_and_no_finite_number_leave_a_node_out(scene: MakeScene, value: float | None) -> None:
    made = scene(builders.demo(), color_by=lambda record: value if record.kind == "op" else 1.0)
    assert made.encoding is not None
    assert made.encoding.color is not None
    assert made.encoding.color.encoded == 0
    assert made.encoding.color.notes[0] == "10 nodes have no value"


def test_a_function_that_raises_is_named_with_the_node_and_the_cause(scene: MakeScene) -> None:
    def broken(record: object) -> float:
        raise KeyError("no such thing")

    with pytest.raises(InvalidArgumentError, match=r"\[encoding_callable_error\] color_by=broken at input_1") as caught:
        scene(builders.chain(), color_by=broken)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_function_leaves_boxes_without_a_number(scene: MakeScene) -> None:
    made = scene(builders.demo(), color_by=lambda record: record.index, depth=1)
    assert made.encoding is not None
    assert made.encoding.color is not None
    assert made.encoding.color.aggregation == ("collapsed nodes unencoded: value has no exact sum over ops",)


def test_on_a_rolled_node_a_function_is_asked_about_every_pass(scene: MakeScene) -> None:
    with pytest.raises(InvalidArgumentError, match="size_by_rolled_varying"):
        scene(builders.loop(3), size_by=lambda record: record.pass_number, rolled=True)
    scene(builders.loop(3), size_by=lambda record: record.num_passes, rolled=True)


def test_a_fold_is_told_as_showing_the_representative_only(scene: MakeScene) -> None:
    made = scene(builders.residual(8), color_by="bytes", collapse="auto", fold_repeats=True)
    assert "fold" in {node.kind for node in made.nodes}
    assert made.encoding is not None
    assert made.encoding.color is not None
    assert made.encoding.color.notes[0].startswith("repeat folds: the representative module only")
    # Its value is its own, not that of the modules behind the fold.
    data = builders.residual(8)
    (shown,) = [node for node in made.nodes if node.kind == "module"]
    assert max(made.encoding.color.domain or ()) == sum(data.nbytes[data.index_of[name]] or 0 for name in shown.members)


def test_boxes_without_a_kernel_are_counted_apart_from_those_that_lack_a_time(scene: MakeScene) -> None:
    data = builders.demo()
    data.kernel_join = "joined"
    inside = {node.name: node for node in scene(data, depth=1).nodes}["module:features:1"].members
    idle = {data.index_of[name] for name in inside}
    data.nodes.num_kernels = [0 if i in idle else 1 for i in range(len(data.nodes))]
    data.nodes.device_time = [None if i in idle else 100 + i for i in range(len(data.nodes))]
    made = scene(data, depth=1, color_by="device_time", node_style="profiling")
    assert made.encoding is not None
    assert made.encoding.color is not None
    assert made.encoding.color.notes == ("1 node ran no kernel: n/a",)
    box = next(node for node in made.nodes if node.kind == "module")
    assert "device=n/a" in [line for row in box.rows for line in row.lines]
