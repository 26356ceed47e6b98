"""What a person sees while a job runs: a live line on a terminal, plain lines elsewhere.

Written paths go to standard output, one a line, so that they can be piped; everything else goes to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from pathlib import Path
from typing import Any


class Reporter:
    """Tells what happens. steps: how many recordings and figures the job has."""

    def __init__(self, steps: int) -> None:
        self._steps, self._done = steps, 0
        self._console = _console()
        self._status: Any = None

    def __enter__(self) -> Reporter:
        if self._console is not None:
            self._status = self._console.status("")
            self._status.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is not None:
            self._status.__exit__(*exc)

    def step(self, text: str, *, timed: bool = False) -> None:
        """Say what starts now. timed: its duration is measured, so no live line may take turns with it."""
        self._done += 1
        line = f"[{self._done}/{self._steps}] {text}"
        if self._status is None:
            print(line, file=sys.stderr, flush=True)
        elif timed:
            self._status.stop()
            self._console.print(_escaped(line), highlight=False)
        else:
            self._status.update(_escaped(line))
            self._status.start()

    def wrote(self, path: Path) -> None:
        """Print a written path, relative to the working directory if it is below it."""
        with self._paused():
            say(shown(path))

    def note(self, text: str) -> None:
        """Print a warning or failure of one line."""
        with self._paused():
            print(" ".join(text.split()), file=sys.stderr, flush=True)

    def _paused(self) -> AbstractContextManager[object]:
        """The live line must not mix with printed ones."""
        if self._status is None:
            return nullcontext()
        self._status.stop()
        return _Restart(self._status)


class _Restart:
    def __init__(self, status: Any) -> None:
        self._status = status

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self._status.start()


def say(text: str) -> None:
    """Print a line to standard output. A reader that went away, as in `| head`, is no reason to stop drawing."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        mute()


def mute() -> None:
    """Send standard output nowhere from now on, so that the interpreter does not complain about it at exit."""
    with suppress(OSError):  # it may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def silenced() -> Iterator[None]:
    """Nothing of a job is printed inside; what matters of it is told afterwards."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def shown(path: Path) -> str:
    """A path as short as it is clear."""
    path = path.resolve()
    here = Path.cwd().resolve()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _console() -> Any:
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    return Console(file=sys.stderr)
