"""Number formats: every example of the reading guide and the edges where a unit changes."""

from __future__ import annotations

import pytest

from torchlens.base import units


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (128, "128 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (4096, "4.0 KB"),
        (19866, "19.4 KB"),
        (3_250_000, "3.1 MB"),
        (1024**2 - 1, "1.0 MB"),
        (1024**3, "1.0 GB"),
        (5 * 1024**4, "5.0 TB"),
        (2000 * 1024**4, "2000.0 TB"),
    ],
)
def test_bytes(n: int, text: str) -> None:
    assert units.bytes_text(n) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (296, "296"),
        (999, "999"),
        (1000, "1K"),
        (1610, "1.61K"),
        (1780, "1.78K"),
        (86_567_656, "86.6M"),
        (12_345, "12.3K"),
        (1_300_000_000_000, "1.3T"),
        (999_499, "999K"),
        (999_500, "1M"),
        (100_000, "100K"),
        (2_000_000_000, "2B"),
        (5 * 10**15, "5000T"),
    ],
)
def test_counts(n: int, text: str) -> None:
    assert units.count_text(n) == text


@pytest.mark.parametrize(
    ("s", "text"),
    [
        (0.0182, "18.2 ms"),
        (146e-6, "146 us"),
        (1.5, "1.50 s"),
        (2e-3, "2.00 ms"),
        (999.7e-6, "1.00 ms"),
        (12e-9, "12.0 ns"),
        (0, "0 s"),
        (98e-6, "98.0 us"),
        (3600.0, "3600 s"),
        (0.4e-9, "0.400 ns"),
        (0.02 - 1e-9, "20.0 ms"),
    ],
)
def test_seconds(s: float, text: str) -> None:
    assert units.seconds_text(s) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 FLOPs"),
        (600, "600 FLOPs"),
        (4_190_000, "4.19 MFLOPs"),
        (1000, "1.00 KFLOPs"),
        (3_628_147_712, "3.63 GFLOPs"),
        (999_999, "1.00 MFLOPs"),
        (7 * 10**12, "7.00 TFLOPs"),
        (4 * 10**16, "40000 TFLOPs"),
    ],
)
def test_flops(n: int, text: str) -> None:
    assert units.flops_text(n) == text


@pytest.mark.parametrize(
    ("shape", "text"), [((2, 16), "(2, 16)"), ((16,), "(16,)"), ((), "scalar"), (None, "irregular"), ((0, 3), "(0, 3)")]
)
def test_shapes(shape: tuple[int, ...] | None, text: str) -> None:
    assert units.shape_text(shape) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.49213, "-0.492"),
        (3, "3"),
        (123456789, "123456789"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (0.5, "0.5"),
        (1e-7, "1e-07"),
        (True, "True"),
        (1 + 2.34567j, "1+2.35j"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert units.value_text(value) == text


@pytest.mark.parametrize(
    ("passes", "text"),
    [([1, 2, 3], "1-3"), ([1, 3], "1,3"), ([5, 3, 2], "2-3,5"), ([4], "4"), ([], ""), ([2, 2, 1], "1-2")],
)
def test_passes(passes: list[int], text: str) -> None:
    assert units.passes_text(passes) == text


@pytest.mark.parametrize(
    ("lo", "hi", "unit", "texts"),
    [
        (98e-6, 1.46e-3, "s", ("0.098 ms", "1.46 ms")),
        (15 * 1024, 60 * 1024, "B", ("15 KB", "60 KB")),
        (0, 0, "s", ("0 s", "0 s")),
        (0, 2_000_000, "FLOPs", ("0 MFLOPs", "2 MFLOPs")),
        (40, 1020, "B", ("40 B", "1020 B")),
        (4, 3.1 * 1024**2, "B", ("4 B", "3.1 MB")),
        (1, 1024**2 - 1, "B", ("1 B", "1 MB")),
        (500, 999_900, "FLOPs", ("500 FLOPs", "1 MFLOPs")),
        (1000, 1_000_000, "FLOPs", ("0.001 MFLOPs", "1 MFLOPs")),
        (2e-14, 3.0, "s", ("0.00002 ns", "3 s")),
        (1.0, 5000.0, "s", ("1 s", "5000 s")),
        # one time for all
        (1e-4, 1e-4, "s", ("0.1 ms", "0.1 ms")),
        (146_000, 146_000, "ns", ("0.146 ms", "0.146 ms")),
        (99e-6, 99e-6, "s", ("99 us", "99 us")),
        (3e-6, 1.4e-4, "s", ("3 us", "140 us")),
    ],
)
def test_range_uses_the_unit_of_the_larger_end(lo: float, hi: float, unit: units.Unit, texts: tuple[str, str]) -> None:
    assert units.range_text(lo, hi, unit) == texts


class Spec:
    """Stands for a tensor spec: known by its geometry alone."""

    shape, dtype = (2, 3), "float32"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (2, "2"),
        (True, "True"),
        (None, "None"),
        ("nearest", "nearest"),
        ("float16", "float16"),
        ((3, 3), "(3, 3)"),
        ((3,), "(3,)"),
        ((), "()"),
        ([1, 2], "[1, 2]"),
        ((1, (2, None)), "(1, (2, None))"),
        (Spec(), "tensor"),
        ((Spec(), 1), "(tensor, 1)"),
        (2 + 1j, "(2+1j)"),
    ],
)
def test_arguments(value: object, text: str) -> None:
    assert units.argument_text(value) == text


def test_a_count_with_its_noun() -> None:
    assert [units.counted(n, "op") for n in (0, 1, 2, 1610)] == ["0 ops", "1 op", "2 ops", "1.61K ops"]


def test_a_long_argument_is_cut_at_forty_characters_with_its_bracket_closed() -> None:
    cut = units.argument_text(tuple(range(100)))
    assert len(cut) <= 40
    assert cut.startswith("(0, 1, 2,")
    assert cut.endswith("…)")
    assert units.argument_text("x" * 40) == "x" * 40
    assert units.argument_text("x" * 41) == "x" * 39 + "…"
