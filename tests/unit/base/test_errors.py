"""One text shape, one family, and warnings that name the caller's line."""

from __future__ import annotations

import warnings

import pytest

from torchlens.base.codes import CODES
from torchlens.base.errors import (
    InvalidArgumentError,
    TorchLensError,
    TorchLensWarning,
    error,
    fail,
    heard,
    nearest,
    warn,
)


def test_text_is_code_problem_choices_remedy():
    problem = error(
        "draw_view_invalid", "view='sped' is not a view.", allowed=("plain", "speed"), fix='pass view="speed"'
    )
    assert (
        str(problem)
        == "[draw_view_invalid] view='sped' is not a view. Allowed: plain, speed. Fix: pass view=\"speed\"."
    )
    assert (problem.code, problem.remedy, problem.allowed) == (
        "draw_view_invalid",
        'pass view="speed"',
        ("plain", "speed"),
    )
    assert isinstance(problem, InvalidArgumentError)
    assert isinstance(problem, ValueError)


def test_a_missing_fix_is_the_rows_remedy():
    with pytest.raises(TorchLensError) as caught:
        fail("label_not_found", "nothing", name="x")
    assert caught.value.remedy == CODES["label_not_found"].remedy
    assert caught.value.fields == {"name": "x"}
    assert isinstance(caught.value, KeyError)
    assert not str(caught.value).startswith("'")


def test_unknown_codes_cannot_leave():
    with pytest.raises(KeyError):
        error("no_such_code", "x")


def test_warnings_name_the_callers_line_and_can_be_filtered_by_code():
    with pytest.warns(TorchLensWarning) as seen:
        warning = warn("figure_unreadable", "too large", pixels=3)
    assert seen[0].filename == __file__
    assert warning.fields == {"pixels": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"\[figure_unreadable\]")
        with heard() as collected:
            warn("figure_unreadable", "too large")
    assert [item.code for item in collected] == ["figure_unreadable"]


def test_nearest_names_come_best_first():
    assert nearest("sped", ["speed", "plain", "spend"])[0] in ("speed", "spend")
    assert nearest("zzz", ["speed"]) == []
