"""Singular group names over singular or plural folders, the user's first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra.core.object_type import ObjectType

from torchlens.base.errors import ConfigError
from torchlens.runner import groups
from torchlens.runner.groups import FileConfigSource
from torchlens.settings import catalog


def _source(folder: Path) -> FileConfigSource:
    return FileConfigSource("test", f"file://{folder}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_packaged_groups_are_listed_in_the_singular() -> None:
    source = _source(catalog.packaged())
    assert source.list("", ObjectType.GROUP) == sorted(catalog.GROUPS)
    for group in catalog.GROUPS:
        assert source.is_group(group)
        assert source.list(group, ObjectType.CONFIG) == catalog.names(group)
    for plural in ("views", "themes", "models", "encodings", "inputs"):
        assert not source.is_group(plural)
        assert not source.is_config(f"{plural}/plain")


def test_both_spellings_of_a_folder_count_and_the_singular_wins(tmp_path: Path) -> None:
    _write(tmp_path / "view" / "a.yaml", "question: singular")
    _write(tmp_path / "views" / "a.yaml", "question: plural")
    _write(tmp_path / "views" / "b.yaml", "question: plural")
    source = _source(tmp_path)
    assert source.list("view", ObjectType.CONFIG) == ["a", "b"]
    assert source.load_config("view/a").config == {"question": "singular"}
    assert source.load_config("view/b").config == {"question": "plural"}


def test_only_the_packaged_folder_holds_the_primary_configuration(tmp_path: Path) -> None:
    _write(tmp_path / "config.yaml", "a: 1")
    _write(tmp_path / "mine.yaml", "a: 1")
    assert not _source(tmp_path).is_config("config")
    assert _source(tmp_path).is_config("mine")
    assert _source(catalog.packaged()).is_config("config")


def test_broken_files_keep_their_name_and_line(tmp_path: Path) -> None:
    _write(tmp_path / "views" / "bad.yaml", "a: [1\n")
    with pytest.raises(ConfigError, match=r"bad.yaml:2:1: not valid YAML"):
        _source(tmp_path).load_config("view/bad")


def test_hydra_uses_this_source_and_these_folders(tmp_path: Path) -> None:
    from hydra._internal.sources_registry import SourcesRegistry

    groups.install([str(tmp_path)])
    groups.install([str(tmp_path)])
    # If Hydra moves its registry, this fails and says where to look.
    assert SourcesRegistry.instance().resolve("file") is FileConfigSource
    assert groups.UserFolders.folders == [tmp_path.resolve()]
