"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from torchlens.base.errors import InvalidArgumentError
from torchlens.base.files import replacing, write_atomically


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_whole_content_is_written_and_replaces_the_old(tmp_path: Path) -> None:
    write_atomically("x.bin", b"old and longer")
    write_atomically("x.bin", b"new")
    assert Path("x.bin").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


@pytest.mark.skipif(os.name == "nt", reason="permission bits are a matter of POSIX")
def test_permissions_are_those_of_an_ordinary_file() -> None:
    old = os.umask(0o027)
    try:
        write_atomically("x.bin", b"1")
        assert stat.S_IMODE(Path("x.bin").stat().st_mode) == 0o640
        Path("x.bin").chmod(0o604)
        write_atomically("x.bin", b"2")
        assert stat.S_IMODE(Path("x.bin").stat().st_mode) == 0o604
    finally:
        os.umask(old)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights there")
def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.bin").write_bytes(b"old")
    Path("link.bin").symlink_to(tmp_path / "real" / "x.bin")
    write_atomically("link.bin", b"new")
    assert Path("link.bin").is_symlink()
    assert (tmp_path / "real" / "x.bin").read_bytes() == b"new"


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("x.bin").write_bytes(b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InvalidArgumentError, match="Permission denied") as caught:
        write_atomically("x.bin", b"new")
    assert caught.value.code == "output_path_invalid"
    assert Path("x.bin").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_an_interrupted_write_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically("x.bin", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanished_is_a_coded_error() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        write_atomically("gone/x.bin", b"")
    assert caught.value.code == "output_path_invalid"


def test_a_writer_that_fails_halfway_leaves_the_old_file(tmp_path: Path) -> None:
    Path("x.bin").write_bytes(b"old")

    def write() -> None:
        with replacing("x.bin") as file:
            file.write(b"ne")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert Path("x.bin").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]
