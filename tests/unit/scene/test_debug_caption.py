"""The caption lines of the view `debug`, on hand-made traces. On recorded ones: `tests/contract/test_debug.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import Builder
from tests.unit.records.test_nonfinite import chain, with_values
from tests.unit.scene.test_caption import captions
from torchlens.records.payloads import Held
from torchlens.scene.model import Scene

MakeScene = Callable[..., Scene]


def test_what_is_usual_is_what_most_ops_put_out(scene: MakeScene) -> None:
    b = Builder()
    h = b.input("ids", dtype="int64")
    for dtype in ("int64", "float16", "float16"):
        h = b.op("thing", [h], dtype=dtype)
    b.output(h)
    data = with_values(b.build(), {})
    assert captions(scene(data, view="debug")) == [
        "usual dtype float16, device cpu", "nonfinite: checked 3 of 3 ops; found none",
    ]  # fmt: skip
    assert captions(scene(data, view="debug", show_exceptions=False)) == ["nonfinite: checked 3 of 3 ops; found none"]


def test_an_op_counts_once_per_kind_and_unchecked_ones_are_told(scene: MakeScene) -> None:
    data = with_values(chain("log", "mul", "relu"), {"log_1_1": "both", "mul_1_2": "", "relu_1_3": "nan"})
    assert captions(scene(data, view="debug"))[1:] == [
        "nonfinite: checked 2 of 3 ops; found NaN in 2, +Inf in 1",
        "first: log_1_1 (NaN and +Inf), relu_1_3 (NaN, start not known)",
    ]


def test_parameters_are_named_with_their_readers_and_counted(scene: MakeScene) -> None:
    data = builders.chain()
    with_values(data, dict.fromkeys(("linear_1_1", "relu_1_2", "linear_2_3", "output_1"), "nan"))
    data.param_values = [Held(("nan",))] * len(data.params)
    first, second, *_ = data.params
    lines = captions(scene(data, view="debug"))[2:]
    assert lines[0] == f"first: @{first.address} and 1 more read by linear_1_1 (NaN)"
    assert lines[1].startswith(f"parameters: @{first.address} (NaN), @{second.address} (NaN), ")


def test_a_module_in_focus_is_counted_alone(scene: MakeScene) -> None:
    data = builders.demo()
    with_values(data, {"conv2d_1_1": "nan", "linear_1_12": "nan"})
    inside = [i for i in data.op_indexes if data.module_stack(data.nodes.call[i])[:1] == ("features:1",)]
    lines = captions(scene(data, view="debug", module="features"))
    assert f"nonfinite: checked {len(inside)} of {len(inside)} ops; found NaN in 1" in lines
    assert "first: conv2d_1_1 (NaN)" in lines


def test_without_values_only_the_lack_is_told(scene: MakeScene) -> None:
    with pytest.warns(UserWarning, match="view_nonfinite_not_checked"):
        made = scene(chain("log"), view="debug")
    assert captions(made) == ["usual dtype float32, device cpu", "nonfinite status not checked: no saved activations"]
