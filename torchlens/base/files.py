"""Files that are written whole or not at all. Knows nothing of what is in them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from torchlens.base.errors import error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A file to write beside the path, which takes its place once it is whole and on the disk.

    An existing file keeps its permissions. Raises: InvalidArgumentError[output_path_invalid].
    """
    try:
        # A rename over a symbolic link would replace the link instead of the file it points to.
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".torchlens-{secrets.token_hex(8)}.tmp")
    except (TypeError, ValueError) as cause:
        raise error("output_path_invalid", f"{path!r} is not a path of a file", path=str(path)) from cause
    try:
        try:
            with draft.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as cause:
        what = f"{str(path)!r} cannot be written: {cause.strerror or cause}"
        raise error("output_path_invalid", what, fix="write elsewhere", path=str(path)) from cause


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file or none. Raises: InvalidArgumentError[output_path_invalid]."""
    with replacing(path) as file:
        file.write(data)
