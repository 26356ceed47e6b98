"""Frozen times: the same figure ever after, and a word when they are not those of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import builders
from torchlens.base.errors import EvidenceError
from torchlens.runner.input_spec import InputSpec
from torchlens.runner.spec import ModelSpec
from torchlens.runner.timings import FrozenTimings

SPEC = ModelSpec("net", {"_target_": "x"}, InputSpec(shape=[1]), "eval", 0)


def _timed(*seconds: float) -> Any:
    data = builders.demo()
    times = list(data.nodes.time_s)
    for number, i in enumerate(data.op_indexes):
        times[i] = seconds[number % len(seconds)]
    data.nodes.time_s = times
    return data


def test_the_first_run_freezes_and_the_next_one_keeps_to_it(tmp_path: Path) -> None:
    first, second = _timed(0.00123456), _timed(9.0)
    times = FrozenTimings(tmp_path, "set")
    assert not times.has(SPEC)
    line = times.apply(first, SPEC)
    times.save()
    assert line.startswith("times frozen: torch ")
    again = FrozenTimings(tmp_path, "set", closed=True)
    assert again.has(SPEC)
    assert again.apply(second, SPEC) == line
    for data in (first, second):
        assert {data.nodes.time_s[i] for i in data.op_indexes} == {0.00123}
    written = (tmp_path / "set.timings.json").read_bytes()
    again.save()
    assert (tmp_path / "set.timings.json").read_bytes() == written


def test_refreezing_measures_anew(tmp_path: Path) -> None:
    for seconds, refreeze, expected in ((1.0, False, 1.0), (2.0, False, 1.0), (3.0, True, 3.0)):
        times, data = FrozenTimings(tmp_path, "set", refreeze=refreeze), _timed(seconds)
        times.apply(data, SPEC)
        times.save()
        assert data.nodes.time_s[data.op_indexes[0]] == expected


def test_times_of_another_model_are_stale(tmp_path: Path) -> None:
    times = FrozenTimings(tmp_path, "set")
    times.apply(_timed(1.0), SPEC)
    times.save()
    path = tmp_path / "set.timings.json"
    content = json.loads(path.read_text())
    (entry,) = content["recordings"].values()
    gone = list(entry["seconds"])[:5]
    for label in gone:
        del entry["seconds"][label]
    path.write_text(json.dumps(content))
    with pytest.raises(EvidenceError, match=r"\[timings_stale\]") as caught:
        FrozenTimings(tmp_path, "set").apply(_timed(1.0), SPEC)
    assert gone[0] in str(caught.value)
    assert "and 2 more of model 'net'" in str(caught.value)
    assert "refreeze=true" in str(caught.value)
    with pytest.raises(EvidenceError, match=r"\[timings_stale\] other.timings.json holds no times of model 'net'"):
        FrozenTimings(tmp_path, "other", closed=True).apply(_timed(1.0), SPEC)
    for text in ("no json", "[]", '{"schema": "x"}', '{"schema": "torchlens_timings_v1", "recordings": {"a": 3}}'):
        path.write_text(text)
        with pytest.raises(EvidenceError, match="cannot be read as a file of frozen times"):
            FrozenTimings(tmp_path, "set")


def test_models_and_inputs_are_told_apart(tmp_path: Path) -> None:
    times = FrozenTimings(tmp_path, "set")
    other = ModelSpec("net", {"_target_": "x"}, InputSpec(shape=[2]), "eval", 0)
    times.apply(_timed(1.0), SPEC)
    assert not times.has(other)
