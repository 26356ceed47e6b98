"""Names of job folders: readable, safe, short, and different for different jobs."""

from __future__ import annotations

import itertools

import pytest

from torchlens.base.errors import ConfigError
from torchlens.runner.folders import job_names, value_of


@pytest.mark.parametrize(
    ("overrides", "swept", "name"),
    [
        (["model=rnn", "theme=dark"], ("theme",), "model-rnn_theme-dark"),
        (["collapse='0.25'"], ("collapse",), "collapse-0.25"),
        (["draw.depth=1", "out=a", "explain=true", "threads=2"], ("draw.depth",), "draw.depth-1"),
        (["+model.factory.width=3", "draw.dpi=70"], ("model.factory.width",), "model.factory.width-3"),
        (["formats=svg", "out=a"], ("formats",), "formats-svg"),
        (["out=a", "trust=[a]"], (), "job"),
        ([], (), "job"),
    ],
)
def test_names_read_as_the_choices_and_what_is_swept(overrides: list[str], swept: tuple[str, ...], name: str) -> None:
    assert job_names([overrides], swept) == [name]


def test_names_are_safe_short_and_different() -> None:
    awkward = ["a=x/y", "a=x y", "a=x:y", "a=[x,y]", "a={x: y}", "a=" + "x" * 200, "a=" + "x" * 201, "a=../..", "a=ä"]
    names = job_names([[text] for text in awkward], ("a",))
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= 90
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-")
        assert not name.startswith((".", "-"))


def test_names_tell_every_job_of_a_sweep_apart() -> None:
    jobs = itertools.product(["model=a", "model=b"], ["view=x", "view=x_y"], ["draw.depth=1", "draw.depth=10"])
    assert len(set(job_names([list(job) for job in jobs], ("model", "view", "draw.depth")))) == 8


def test_names_that_would_be_one_folder_are_told_apart() -> None:
    keys = ("view", "theme")
    jobs = [["view=a", "theme=b_theme-c"], ["view=a_theme-b", "theme=c"], ["view=A", "theme=x"], ["view=a", "theme=x"]]
    names = job_names(jobs, keys)
    assert len({name.casefold() for name in names}) == 4
    assert all(name.startswith(("view-a", "view-A")) for name in names)


def test_the_same_job_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[sweep_jobs_equal\] theme=dark is listed 2 times"):
        job_names([["theme=dark"], ["theme=paper"], ["theme=dark"]], ("theme",))


def test_values_without_their_quotes() -> None:
    assert [value_of(text) for text in ("a='0.5'", 'a="x y"', "a=b=c", "a='", "a=")] == ["0.5", "x y", "b=c", "'", ""]
