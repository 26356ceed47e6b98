"""Taking the command line apart."""

from __future__ import annotations

import itertools

import pytest

from torchlens.base.errors import ConfigError
from torchlens.runner.arguments import read


def test_flags_and_overrides_may_come_in_any_order() -> None:
    words = [["view=speed"], ["-m"], ["--config-dir", "a"], ["draw.depth=1"], ["-cd=b"]]
    for order in itertools.permutations(words):
        found = read([word for group in order for word in group])
        assert found.multirun
        assert sorted(found.overrides) == ["draw.depth=1", "view=speed"]
        assert sorted(found.config_dirs) == ["a", "b"]


def test_overrides_keep_their_order_and_signs() -> None:
    assert read(["~figures.speed", "+a.b=-1", "c=d=e"]).overrides == ["~figures.speed", "+a.b=-1", "c=d=e"]
    assert read(["a=1", "--", "-x=2", "b=3"]).overrides == ["a=1", "-x=2", "b=3"]


def test_flags_that_hydra_answers_are_handed_on() -> None:
    assert read(["--cfg", "job", "a=1"]).hydra == ["--cfg", "job"]
    assert read(["-c", "hydra", "-p", "view"]).hydra == ["--cfg", "hydra", "--package", "view"]
    assert read(["a=1"]).hydra == []


def test_both_spellings_of_a_multirun_are_one() -> None:
    found = read(["hydra.mode=MULTIRUN", "a=1,2"])
    assert found.multirun
    assert found.overrides == ["a=1,2"]


def test_info_alone_is_all_of_it() -> None:
    assert read(["--info"]).hydra == read(["-i", "all"]).hydra == ["--info", "all"]


def test_help_and_version() -> None:
    assert read(["-h"]).help
    assert read(["view=speed", "--help"]).help
    assert read(["--version"]).version


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--mulitrun"], "unknown flag '--mulitrun'. Fix: perhaps you meant --multirun"),
        (["--view=speed"], "unknown flag '--view=speed'"),
        (["--multirun=1"], "unknown flag '--multirun=1'"),
        (["-zzzzz"], "settings are written key=value"),
        (["--config-dir"], "--config-dir needs a value"),
        (["--config-dir", "-m"], "--config-dir needs a value"),
    ],
)
def test_wrong_flags_are_refused(words: list[str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(words)
    assert text in str(caught.value)
