"""A trace survives JSON: every column, field and value comes back equal and of the same type."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import random
import subprocess
import sys
from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import builders
from torchlens.records import record_types
from torchlens.records.codec import Decoder, Encoder, decode, encode
from torchlens.records.export import to_dict
from torchlens.records.flow import ArmEdge, Branches, BranchTest
from torchlens.records.ops import CallSite
from torchlens.records.payloads import OutStats
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import Deferred, NodeTable, TraceData

SAMPLES = (
    builders.chain, builders.residual, builders.loop, builders.multi_output, builders.demo, builders.state,
    builders.awkward, builders.tree,
)  # fmt: skip


def there_and_back(data: TraceData) -> TraceData:
    document, left_out = encode(data)
    assert left_out == []
    return decode(json.loads(json.dumps(document, allow_nan=False)))


def same(a: Any, b: Any) -> bool:
    """Equal and of the same types all the way down; nan equals nan, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, slice):
        return same([a.start, a.stop, a.step], [b.start, b.stop, b.step])
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def assert_same_data(a: TraceData, b: TraceData) -> None:
    for name in record_types.fields_of(NodeTable):
        assert same(list(getattr(a.nodes, name)), list(getattr(b.nodes, name))), name
    for name in set(record_types.fields_of(TraceData)) - {"nodes", "branches"}:
        assert same(getattr(a, name), getattr(b, name)), name
    assert list(a.branches) == list(b.branches)
    assert a.branches.arms == b.branches.arms
    assert a.branches.reads == b.branches.reads


def value_there_and_back(value: object) -> Any:
    encoder = Encoder()
    text = json.dumps(encoder.value(value), allow_nan=False)
    assert encoder.left_out == []
    return Decoder(encoder.types).value(json.loads(text))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.__name__)
def test_sample_traces_come_back(sample):
    data = sample()
    back = there_and_back(data)
    assert_same_data(data, back)
    assert to_dict(back) == to_dict(data)


def test_every_field_is_carried():
    data = builders.loop()
    count = len(data.nodes)
    data.nodes.config = Deferred(count, lambda i: (("index", (slice(None), Ellipsis, [0, i])), ("eps", 1e-5 * i)))
    data.nodes.stats = [None] * (count - 1) + [(OutStats(4, 0.5, math.nan, math.inf, n_nan=1), None)]
    data.nodes.site = [CallSite("net.py", i % 3, "forward") if i % 2 else None for i in range(count)]
    data.nodes.value = [math.inf, -0.0, 0, 1 + 2j, complex(math.nan, -math.inf), True, None, *range(count - 7)]
    data.nodes.time_s = [None if i % 2 else 1e-6 * i / 3 for i in range(count)]
    data.branches = Branches(
        [BranchTest(3, "elif", True, "net.py", 7, arm="ELIF", number=2, notes=("not", "any"))],
        [ArmEdge(1, 4, "ELIF", 2, 0, 7)],
        reads=[5, 2],
    )
    data.provenance = InputProvenance("declared", (((1, 3), "float32", "cpu"), (None, "int64", "cpu")), "randn", 0)
    data.outcome = Outcome(False, "ValueError: \ud800 no", True, ["padding"])
    data.annotations = {"note": {"tags": ["a", ("b", 2)], "score": math.inf}, "empty": {}}
    back = there_and_back(data)
    assert_same_data(data, back)
    assert back.branches.steering == {2, 3, 5}


def test_a_column_of_this_or_that_gives_each_row_its_own_type():
    rows = [1, True, 1.0, 0, False, 0.0, -0.0, "1", None, (1,), (True,), (1.0,), [1], [True]] * 4
    encoder = Encoder()
    column = json.loads(json.dumps(encoder.column(rows)))
    assert same(Decoder(encoder.types).column(column), rows)


def test_equal_rows_are_written_once():
    spec = TensorSpec((2, 8), "float32", "cpu", 64)
    rows = [(spec,)] * 1000
    encoder = Encoder()
    column = encoder.column(rows)
    assert json.dumps(column).count("float32") == 1
    back = Decoder(encoder.types).column(column)
    assert back == rows
    assert len({id(row[0]) for row in back}) == 1


class Colour(enum.IntEnum):
    RED = 3


class Pair(NamedTuple):
    left: int
    right: tuple[int, ...]


VALUES = [
    0, -1, 2**70, True, None, "", "a\x00\ud800漢", 0.1, -0.0, 1e-323, math.inf, -math.inf, math.nan,
    1j, complex(math.nan, -0.0), (), [], {}, (1, [2, (3,)]), {"a": (1,), 2: [None], (1, 2): {}}, b"\x00\xff", ...,
    slice(None), slice(1, -1, 2), (slice(0, 2), ..., None, [True, 1]), CallSite("f", 1, "g"),
    TensorSpec(None, "float32", "cpu", None), {"spec": [TensorSpec((), "bool", "cpu", 1, True)]},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_comes_back(value):
    assert same(value_there_and_back(value), value)


def test_a_number_too_long_to_be_printed_comes_back():
    assert value_there_and_back((-(3**40_000),)) == (-(3**40_000),)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, 3),
        (np.float64(0.5), 0.5),
        (np.int32(7), 7),
        (np.bool_(True), True),
        (np.complex128(1j), 1j),
        (bytearray(b"x"), b"x"),
        (OrderedDict(a=1), {"a": 1}),
        (type("Text", (str,), {"__str__": lambda self: "wrong"})("right"), "right"),
        (type("Sizes", (tuple,), {"__iter__": lambda self: iter(())})((1, 2)), (1, 2)),
        (type("Items", (list,), {"__iter__": lambda self: iter(())})([1]), [1]),
    ],
)
def test_what_extends_a_plain_type_is_read_as_that_type(value, plain):
    assert same(value_there_and_back(value), plain)


def test_a_foreign_named_tuple_keeps_its_name_and_fields():
    back = value_there_and_back([Pair(1, (2,)), Pair(3, ())])
    assert type(back[0]).__name__ == "Pair"
    assert (back[0].left, back[0].right, type(back[0])) == (1, (2,), type(back[1]))
    renamed = namedtuple("Odd", ["class", "a"], rename=True)
    assert tuple(value_there_and_back(renamed(1, 2))) == (1, 2)


def test_what_json_cannot_hold_is_left_out_and_named():
    data = builders.chain()
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    data.annotations = {"fine": 1, "object": {"inner": object()}, "deep": deep, "set": {1}, "also": [2]}
    data.nodes.value = [object(), *[None] * (len(data.nodes) - 1)]
    document, left_out = encode(data)
    back = decode(json.loads(json.dumps(document)))
    assert back.annotations == {"fine": 1, "also": [2]}
    assert back.nodes.value[0] is None
    assert sorted(left_out) == sorted(
        ["annotations['object']", "annotations['deep']", "annotations['set']", "value: object"]
    )


def test_columns_and_fields_that_differ_between_versions():
    data = builders.chain()
    document = json.loads(json.dumps(encode(data)[0]))
    del document["fields"]["nodes"]["columns"]["composite"]
    del document["fields"]["outcome"]
    document["fields"]["nodes"]["columns"]["of_later"] = {"value": 1, "count": len(data.nodes)}
    document["fields"]["of_later"] = {"l": [1]}
    types = dict(document["types"])
    position = list(types).index("LayerRecord")
    document["types"][position][1][:] = ["of_later" if n == "type" else n for n in types["LayerRecord"]]
    with pytest.raises(TypeError):
        decode(document)  # a layer without its type is none
    document["types"][position][1][:] = ["type" if n == "of_later" else n for n in document["types"][position][1]]
    back = decode(document)
    assert back.nodes.label == data.nodes.label
    assert list(back.nodes.composite) == [None] * len(data.nodes)
    assert back.outcome == Outcome()


def test_every_record_class_is_known_by_one_name():
    found = record_types.record_types()
    assert {"ArgRef", "TensorSpec", "LayerRecord", "OutStats", "BranchTest", "TraceData"} <= set(found)
    assert all(kind.__module__.startswith("torchlens.records.") for kind in found.values())
    assert all(kind.__name__ == name for name, kind in found.items())


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("types"),
        lambda d: d["types"].append(["Popen", ["args"]]),
        lambda d: d["fields"].pop("model_class"),
        lambda d: d["fields"].update(params={"zz": 1}),
        lambda d: d["fields"].update(params={"99": [1]}),
        lambda d: d["fields"].update(params={"x": 0}),
        lambda d: d["fields"].update(params={"l": 1, "d": 2}),
        lambda d: d["fields"]["nodes"]["columns"]["label"]["rows"].pop(),
        lambda d: d["fields"]["nodes"]["columns"].update(kind={"values": {"rows": ["op"]}, "rows": [1]}),
        lambda d: d["fields"]["nodes"]["columns"].update(kind={"values": {"rows": ["op"]}, "rows": [-1]}),
        lambda d: d["fields"]["nodes"]["columns"]["parents"]["lengths"].update(rows=[0]),
        lambda d: d["fields"]["nodes"]["columns"]["parents"]["items"]["columns"]["node"]["rows"].pop(),
    ],
)
def test_a_damaged_document_is_refused(damage):
    document = json.loads(json.dumps(encode(builders.chain())[0]))
    damage(document)
    with pytest.raises((ValueError, TypeError, LookupError)):
        decode(document)


ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
NESTED = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(ATOMS.filter(lambda key: key == key), inner, max_size=3)
        | st.builds(slice, inner, inner, inner)
    ),
    max_leaves=12,
)


@given(NESTED)
def test_any_value_comes_back(value):
    assert same(value_there_and_back(value), value)


@given(st.lists(NESTED, max_size=8), st.integers(0, 2**32))
def test_any_column_comes_back(distinct, seed):
    rows = random.Random(seed).choices(distinct, k=20) if distinct else []
    encoder = Encoder()
    column = json.loads(json.dumps(encoder.column(rows), allow_nan=False))
    assert same(Decoder(encoder.types).column(column), rows)


def test_frozen_records_are_known_as_such():
    assert record_types.is_frozen(TensorSpec)
    assert not record_types.is_frozen(OutStats)
    assert not record_types.is_frozen(CallSite)


def test_reading_needs_no_torch():
    code = "import sys, torchlens.records.codec as c; c.Decoder([['ArgRef', ['node']]]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
