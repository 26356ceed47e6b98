"""Finding and reading files by group and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlens.base.errors import ConfigError, UnknownNameError
from torchlens.settings import catalog


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_packaged_names() -> None:
    assert catalog.names("view") == [
        "compute", "debug", "dims", "interventions", "memory", "overview", "plain", "sequence", "speed", "transformer",
    ]  # fmt: skip
    assert catalog.names("theme") == ["colorblind", "dark", "high_contrast", "paper", "torchlens"]
    assert catalog.names("collapse") == ["auto", "max", "none", "plumbing", "unset"]
    encodings = ["bytes", "columns", "dims", "flops", "magnitude", "time", "time_and_bytes", "unset"]
    assert catalog.names("encoding") == encodings


@pytest.mark.parametrize("group", list(catalog.GROUPS))
def test_every_packaged_file_reads_as_a_mapping_and_says_what_it_is_for(group: str) -> None:
    assert catalog.names(group)
    for name in catalog.names(group):
        (path,) = catalog.find(group, name)
        assert catalog.question(path)
        assert catalog.parse(path) is not None
        # The output files hold the date of the run, which only Hydra fills in.
        if group != "output":
            entry = catalog.load(group, name)
            assert (entry.group, entry.name, entry.path) == (group, name, path)


def test_an_interpolation_without_a_value_names_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "views" / "mine.yaml", "question: ${nowhere.at.all}\n")
    with pytest.raises(ConfigError, match=f"{path}: an interpolation has no value"):
        catalog.load("view", "mine", [tmp_path])


def test_an_entry_knows_its_file_and_is_the_callers_own_copy() -> None:
    first = catalog.load("view", "speed")
    first.data["draw"]["color_by"] = "changed"
    assert catalog.load("view", "speed").data["draw"]["color_by"] == "time"
    assert first.path == catalog.packaged() / "views" / "speed.yaml"


def test_a_folder_may_be_singular_or_plural(tmp_path: Path) -> None:
    _write(tmp_path / "view" / "one.yaml", "question: a")
    _write(tmp_path / "views" / "two.yaml", "question: b")
    assert catalog.names("view", [tmp_path]) == sorted(["one", "two", *catalog.names("view")])
    assert catalog.load("view", "one", [tmp_path]).data == {"question": "a"}
    assert catalog.load("view", "two", [tmp_path]).data == {"question": "b"}


def test_search_order_is_folders_then_variable_then_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "flag" / "views" / "speed.yaml", "question: flag")
    _write(tmp_path / "variable" / "views" / "speed.yaml", "question: variable")
    assert catalog.load("view", "speed").data["question"] == "Where does the time go?"
    monkeypatch.setenv(catalog.VARIABLE, str(tmp_path / "variable"))
    assert catalog.load("view", "speed").data["question"] == "variable"
    assert catalog.load("view", "speed", [tmp_path / "flag"]).data["question"] == "flag"
    assert catalog.load("view", "speed", [tmp_path / "flag"], skip=1).data["question"] == "variable"


def test_the_working_directory_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "conf" / "views" / "stray.yaml", "question: a")
    _write(tmp_path / "views" / "stray.yaml", "question: a")
    monkeypatch.chdir(tmp_path)
    assert "stray" not in catalog.names("view")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    import os

    path = _write(tmp_path / "views" / "mine.yaml", "question: before")
    assert catalog.load("view", "mine", [tmp_path]).data["question"] == "before"
    _write(path, "question: after")
    os.utime(path, ns=(1, 1))
    assert catalog.load("view", "mine", [tmp_path]).data["question"] == "after"


def test_an_unknown_name_lists_the_names_and_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.load("theme", "papr")
    assert caught.value.code == "config_name_unknown"
    assert "perhaps you meant 'paper'" in str(caught.value)
    assert "high_contrast" in str(caught.value)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"\[config_invalid\] --config-dir names a folder that does not exist"):
        catalog.names("view", [tmp_path / "nowhere"])
    monkeypatch.setenv(catalog.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="TORCHLENS_CONF names"):
        catalog.names("view")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1, 2\n", "bad.yaml:2:1: not valid YAML"),
        ("a: 1\n\tb: 2\n", "bad.yaml:2:1: not valid YAML"),
        ("a: 1\na: 2\n", "bad.yaml:2:1: not valid YAML: found duplicate key a"),
        ("- 1\n- 2\n", "bad.yaml: the file is not a mapping"),
    ],
)
def test_broken_files_name_file_and_line(tmp_path: Path, text: str, where: str) -> None:
    _write(tmp_path / "views" / "bad.yaml", text)
    with pytest.raises(ConfigError) as caught:
        catalog.load("view", "bad", [tmp_path])
    assert caught.value.code == "config_invalid"
    assert where in str(caught.value)


def test_the_question_line_wins_over_the_comment(tmp_path: Path) -> None:
    assert catalog.question(_write(tmp_path / "a.yaml", "# @package x\n# comment\n")) == "comment"
    assert catalog.question(_write(tmp_path / "b.yaml", 'question: "what: is"\n# comment\n')) == "what: is"
    assert catalog.question(_write(tmp_path / "c.yaml", "a: 1\n")) == ""
