"""What nodes hold and where it starts, on traces made by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.builders import Builder, Ref
from torchlens.records.nonfinite import Nonfinite, Start, all_starts, is_float
from torchlens.records.payloads import Held, OutStats
from torchlens.records.trace_data import TraceData

COUNTS = {"nan": (1, 0, 0), "posinf": (0, 1, 0), "neginf": (0, 0, 1), "both": (1, 2, 0), "ok": (0, 0, 0)}


def stats(word: str) -> OutStats:
    return OutStats(9, 1.0, 3.0, 1.0, *COUNTS[word])


def with_values(data: TraceData, words: Mapping[str, str], rest: str = "ok") -> TraceData:
    """The trace as if values had been looked at. words: label -> of `COUNTS`, several with blanks, "" for none."""
    rows: list[tuple[OutStats | None, ...] | None] = []
    for label, outs in zip(data.nodes.label, data.nodes.outs, strict=True):
        said = words.get(label, rest).split()
        said = said * len(outs) if len(said) == 1 else said
        rows.append(tuple(stats(word) for word in said) if said else None)
    data.nodes.stats = rows
    data.param_values = [Held()] * len(data.params)
    return data


def chain(*funcs: str) -> TraceData:
    b = Builder()
    h = b.input()
    for func in funcs:
        h = b.op(func, [h])
    b.output(h)
    return b.build()


def starts(data: TraceData) -> list[tuple[str, tuple[str, ...], str]]:
    return [(start.label, start.kinds, start.cause) for start in all_starts(data)]


# -- states
@pytest.mark.parametrize(
    ("held", "state"),
    [
        (Held(), "finite"),
        (Held((), False), "unchecked"),
        (Held(("nan",)), "nan"),
        (Held(("posinf",), False), "posinf"),
        (Held(("nan", "neginf")), "mixed"),
    ],
)
def test_a_state_is_one_word(held: Held, state: str) -> None:
    assert held.state == state


def test_statistics_tell_what_a_tensor_holds() -> None:
    assert stats("both").held == Held(("nan", "posinf"))
    assert stats("neginf").held == Held(("neginf",))
    assert stats("ok").held == Held()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "float8_e4m3fn"])
def test_dtypes_that_can_be_wrong(dtype: str) -> None:
    assert is_float(dtype)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "quint8"])
def test_whole_numbers_are_finite_whoever_looked(dtype: str) -> None:
    assert not is_float(dtype)
    b = Builder()
    b.output(b.op("argmax", [b.input()], dtype="int64"))
    data = with_values(b.build(), {}, "")
    assert Nonfinite(data).held(data.index_of["argmax_1_1"]) == Held()
    assert not Nonfinite(data).any_checked()


def test_one_of_several_outputs_is_enough_and_readers_read_their_own() -> None:
    b = Builder()
    split = b.op("split", [b.input()], outs=[(1, 8), (1, 8)])
    left, right = b.op("relu", [Ref(split.node, 0)]), b.op("relu", [Ref(split.node, 1)])
    b.output(left)
    b.output(right)
    data = with_values(b.build(), {"split_1_1": "ok nan", "relu_1_2": "posinf", "relu_2_3": "nan"})
    assert Nonfinite(data).held(data.index_of["split_1_1"]).kinds == ("nan",)
    assert starts(data) == [("split_1_1", ("nan",), "op"), ("relu_1_2", ("posinf",), "op")]


def test_an_output_that_nobody_looked_at_leaves_the_op_unchecked() -> None:
    b = Builder()
    b.output(b.op("split", [b.input()], outs=[(1, 8), (1, 8)]))
    data = with_values(b.build(), {"split_1_1": "ok nan"})
    data.nodes.stats[data.index_of["split_1_1"]] = (stats("ok"),)  # type: ignore[index]
    assert Nonfinite(data).held(data.index_of["split_1_1"]).state == "unchecked"


def test_what_was_never_written_tells_nothing() -> None:
    data = with_values(chain("empty_like", "relu"), {"emptylike_1_1": "nan"})
    assert Nonfinite(data).held(data.index_of["emptylike_1_1"]).state == "unchecked"


# -- starts
def test_nan_starts_where_no_input_holds_nan() -> None:
    data = with_values(chain("log", "relu"), {"log_1_1": "nan", "relu_1_2": "nan", "output_1": "nan"})
    assert all_starts(data) == (Start("log_1_1", ("nan",), "op"),)


def test_nan_made_of_inf_starts_where_it_is_made_and_inf_made_of_nan_does_not() -> None:
    words = {"masked_fill_1_1": "neginf", "maskedfill_1_1": "neginf", "softmax_1_2": "nan", "nan_to_num_1_3": "posinf"}
    data = with_values(chain("masked_fill", "softmax", "nan_to_num"), {**words, "nantonum_1_3": "posinf"})
    assert starts(data) == [("maskedfill_1_1", ("neginf",), "op"), ("softmax_1_2", ("nan",), "op")]


def test_a_change_of_sign_starts_nothing() -> None:
    data = with_values(chain("exp", "neg"), {"exp_1_1": "posinf", "neg_1_2": "neginf", "output_1": "neginf"})
    assert starts(data) == [("exp_1_1", ("posinf",), "op")]


def test_a_second_kind_may_start_on_the_way() -> None:
    data = with_values(chain("exp", "sub"), {"exp_1_1": "posinf", "sub_1_2": "both"})
    assert starts(data) == [("exp_1_1", ("posinf",), "op"), ("sub_1_2", ("nan",), "op")]


def test_what_was_given_starts_where_it_came_in() -> None:
    b = Builder()
    b.output(b.op("add", [b.input(), b.constant(), b.read("scale")]))
    data = with_values(b.build(), {"input_1": "nan", "constant_1": "posinf", "buffer_1": "neginf", "add_1_1": "nan"})
    assert [cause for _, _, cause in starts(data)] == ["input", "constant", "buffer"]


def test_a_parameter_is_a_source_and_its_reader_no_origin() -> None:
    b = Builder()
    h = b.linear("fc", b.input(), 8)
    b.output(b.op("relu", [h]))
    data = with_values(b.build(), {"linear_1_1": "nan", "relu_1_2": "nan", "output_1": "nan"})
    data.param_values = [Held(("nan",)), Held()]
    assert all_starts(data) == (Start("linear_1_1", ("nan",), "parameter", ("fc.weight",)),)
    # Of an Inf in the weight the NaN is made here.
    data.param_values = [Held(), Held(("posinf",))]
    assert starts(data) == [("linear_1_1", ("nan",), "op")]
    data.param_values = []
    assert starts(data) == [("linear_1_1", ("nan",), "unknown")]


def test_what_a_parent_did_not_show_is_not_guessed() -> None:
    data = with_values(chain("mul", "log"), {"mul_1_1": "", "log_1_2": "nan"})
    assert starts(data) == [("log_1_2", ("nan",), "unknown")]
    data = with_values(chain("mul", "log"), {"mul_1_1": "nan", "log_1_2": "nan"}, "")
    assert starts(data) == [("mul_1_1", ("nan",), "unknown")]


def test_of_memory_written_behind_an_alias_the_last_writer_counts() -> None:
    for maker, writer, cause in (("ok", "ok", "op"), ("ok", "nan", ""), ("nan", "nan", ""), ("nan", "ok", "unknown")):
        b = Builder()
        whole = b.op("mul", [b.input()])
        part = b.op("fill_", [whole])
        args = [whole]
        made = b.op("log", args)
        b.output(made)
        data = b.build()
        late = data.nodes.parents[made.node][0]._replace(node=part.node, late=True)
        data.nodes.parents[made.node] = (*data.nodes.parents[made.node], late)  # type: ignore[index]
        with_values(data, {"mul_1_1": maker, "fill_1_2": writer, "log_1_3": "nan"})
        assert "".join(found for label, _, found in starts(data) if label == "log_1_3") == cause


def test_a_version_of_a_buffer_is_explained_by_what_its_writer_read() -> None:
    b = Builder(training=True)
    b.output(b.batch_norm("norm", b.input("x", (2, 4, 2, 2)), 4))
    data = b.build()
    versions = [i for i, path in enumerate(data.nodes.path) if path == "norm.running_mean"]
    words = {data.nodes.label[i]: "posinf" for i in versions}
    with_values(data, words)
    assert starts(data) == [(data.nodes.label[versions[0]], ("posinf",), "buffer")]
    with_values(data, {data.nodes.label[versions[1]]: "nan"})
    assert starts(data) == [(data.nodes.label[versions[1]], ("nan",), "op")]
