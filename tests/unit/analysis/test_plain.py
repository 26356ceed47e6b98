"""Argument values come out as plain data of Python's own types."""

from __future__ import annotations

import enum

import numpy as np
import pytest
import torch

from torchlens.analysis.plain import plain
from torchlens.base.units import ELLIPSIS


class Axis(enum.IntEnum):
    LAST = -1


class Mode(enum.StrEnum):
    MEAN = "mean"


class Loud(float):
    def __str__(self) -> str:
        return "LOUD"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Axis.LAST, -1),
        (Mode.MEAN, "mean"),
        (Loud(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (torch.float16, "float16"),
        (torch.device("cuda:1"), "cuda:1"),
        (slice(Axis.LAST, None), slice(-1, None)),
        ([1, [2, np.float64(3)]], (1, (2, 3.0))),
        ({"a": torch.channels_last}, {"a": "channels_last"}),
        (print, "print"),
        (Mode, "Mode"),
        (True, True),
    ],
    ids=str,
)
def test_plain(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


def test_a_long_list_ends_visibly() -> None:
    found = plain(list(range(1000)))
    assert isinstance(found, tuple)
    assert found[-1] == ELLIPSIS
    assert len(found) < 1000
