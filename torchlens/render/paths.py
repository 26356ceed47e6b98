"""Where a figure goes: which file and format a path means, refused before any work."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from torchlens.base.errors import fail
from torchlens.render.engine import check_format

INLINE_FORMAT, FILE_FORMAT = "svg", "pdf"
# A path that ends in one of these means that format, even though no engine here writes it.
_OTHER_FORMATS = ("gif", "webp", "tif", "tiff", "bmp", "ps", "eps", "html", "json", "txt")


def plan_output(
    path: str | os.PathLike[str] | None, file_format: str | None = None, engine: str | None = None
) -> tuple[Path | None, str]:
    """The file to write and its format; without a path, None and the format to show inline.

    The path's extension decides, else file_format, else pdf (svg inline); a path without the format's extension gets
    it: `my_model` is `my_model.pdf`, `my_model.v2` is `my_model.v2.pdf`.
    Raises: InvalidArgumentError[file_format_invalid, file_format_conflict, output_path_invalid].
    """
    wanted = check_format(file_format, engine) if file_format is not None else None
    if path is None:
        return None, wanted or INLINE_FORMAT
    target = _as_path(path)
    written = _format_of(target, engine)
    if written and wanted and written != wanted:
        fail(
            "file_format_conflict",
            f"the path ends in {target.suffix!r} and file_format is {wanted!r}",
            path=str(target),
            file_format=wanted,
        )
    if not written:
        target = target.with_name(f"{target.name}.{wanted or FILE_FORMAT}")
    _check_folder(target)
    return target, written or wanted or FILE_FORMAT


def _as_path(path: str | os.PathLike[str]) -> Path:
    try:
        text = os.fsdecode(path)
    except TypeError:
        fail("output_path_invalid", f"path={path!r} is not a path", fix="pass text or a pathlib.Path", path=path)
    if not text or "\0" in text or text.endswith(("/", os.sep)):
        fail("output_path_invalid", f"path={text!r} names no file", fix="pass the name of a file", path=text)
    target = Path(text)
    if target.is_dir() or not target.name:
        fail("output_path_invalid", f"{text!r} is a folder", fix="pass the name of a file inside it", path=text)
    return target


def _format_of(target: Path, engine: str | None) -> str | None:
    """The format that a path's extension names, None if it has none or the dot belongs to the name."""
    ending = target.suffix.lower().removeprefix(".")
    try:
        return check_format(ending, engine)
    except ValueError:
        if ending in _OTHER_FORMATS:
            raise
        return None


def _check_folder(target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        what = f"the folder {str(folder)!r} does not exist"
        fail(
            "output_path_invalid",
            what,
            fix=f"make the folder first, or write elsewhere than {str(target)!r}",
            path=str(target),
        )
    if target.is_dir():
        fail("output_path_invalid", f"{str(target)!r} is a folder", fix="choose another name", path=str(target))
    if not os.access(folder, os.W_OK):
        fail("output_path_invalid", f"the folder {str(folder)!r} cannot be written", path=str(target))


def free_path(stem: str, file_format: str, folder: str | os.PathLike[str] = ".") -> Path:
    """A path that no file has yet: `<stem>.<format>`, then `<stem>-2.<format>` and so on."""
    for number in itertools.count(1):
        tail = f"-{number}" if number > 1 else ""
        candidate = Path(folder, f"{stem}{tail}.{file_format}")
        if not candidate.exists():
            return candidate
    raise AssertionError
