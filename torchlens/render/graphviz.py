"""Runs a Graphviz program on DOT text: finds it, feeds it through stdin, and turns every way of failing into a code.

Two programs speak the same language: the one that comes with the `graphviz-pure` wheel, and the machine's own `dot`.
Nothing here knows what the figure shows, and nothing is written to disk but the pictures it needs for the moment.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from torchlens.base.errors import fail, warn

TIME_LIMIT_S = 120

# The embedded program's font metrics know ASCII only; it says so once per character and goes on.
_HARMLESS = ("no value for width of non-ASCII character",)


@dataclass(frozen=True, slots=True)
class GraphvizEngine:
    """A Graphviz program under the name that `engine=` uses.

    locate: path of the program, None if it is not installed; hint: how to install it.
    """

    name: str
    program: str
    hint: str
    locate: Callable[[], str | None]

    def require(self) -> str:
        """Path of the program. Raises EngineError[render_engine_unavailable] with the install hint."""
        path = self.locate()
        if path is None:
            fail(
                "render_engine_unavailable",
                f"engine={self.name!r} needs the program {self.program!r}, which is not installed",
                fix=self.hint,
                engine=self.name,
            )
        return path

    def run(
        self, document: str, output: str, *, dpi: int | None = None, pictures: Mapping[str, bytes] | None = None
    ) -> bytes:
        """Lay out DOT text and return it in one of the program's own formats, svg or png.

        dpi: dots per inch, for png; an SVG is always in points. pictures: the files that the document names.
        Raises: EngineError[render_engine_unavailable, render_engine_failed, render_engine_timeout].
        Warns:  render_engine_warning with what the program complained about.
        """
        command = [self.require(), f"-T{output}", *([f"-Gdpi={dpi}"] if dpi else [])]
        try:
            with _folder_of(pictures or {}) as folder:
                done = subprocess.run(
                    command,
                    input=document.encode("utf-8", errors="replace"),
                    capture_output=True,
                    timeout=TIME_LIMIT_S,
                    check=False,
                    cwd=folder,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
        except subprocess.TimeoutExpired:
            fail(
                "render_engine_timeout",
                f"the {self.name} engine did not finish the layout within {TIME_LIMIT_S} s",
                engine=self.name,
                limit_s=TIME_LIMIT_S,
            )
        except OSError as cause:
            fail("render_engine_failed", f"the {self.name} engine could not be started: {cause}", engine=self.name)
        messages = _messages(done.stderr)
        # A refused label still yields a picture, with the node's name in its place, and sometimes a clean exit code.
        refused = done.returncode != 0 or any(message.startswith("Error") for message in messages)
        if refused or not done.stdout:
            said = "; ".join(messages[:3]) or _silence(done.returncode)
            fail(
                "render_engine_failed",
                f"the {self.name} engine refused the figure: {said}",
                engine=self.name,
                returncode=done.returncode,
                messages=tuple(messages),
            )
        self._pass_on(messages)
        return done.stdout

    def _pass_on(self, messages: Iterable[str]) -> None:
        notes = [text for text in messages if text.startswith("Warning") or "too large" in text]
        if notes:
            more = f" (+{len(notes) - 3} more)" if len(notes) > 3 else ""
            said = "; ".join(notes[:3]) + more
            warn("render_engine_warning", f"the {self.name} engine: {said}", engine=self.name, messages=tuple(notes))


@contextmanager
def _folder_of(pictures: Mapping[str, bytes]) -> Generator[str | None]:
    """A folder that holds these files for a while, None where there are none."""
    if not pictures:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="torchlens-") as folder:
        for name, data in pictures.items():
            Path(folder, name).write_bytes(data)
        yield folder


def _messages(stderr: bytes) -> list[str]:
    """The distinct messages, in order, a continuation line joined to its first line."""
    messages: list[str] = []
    for line in stderr.decode("utf-8", errors="replace").splitlines():
        line = line.strip()
        if not line:
            continue
        if messages and line.startswith(("...", "in label")):
            messages[-1] = f"{messages[-1]} {line}"
        else:
            messages.append(line.replace("Warning: Warning:", "Warning:"))
    return [text for text in dict.fromkeys(messages) if not any(part in text for part in _HARMLESS)]


def _silence(returncode: int) -> str:
    return f"no message, exit code {returncode}" if returncode else "it returned nothing"


def find_embedded() -> str | None:
    """Path of the wheel's program: by the installed file list, beside the interpreter, or on PATH."""
    names = ("graphviz-pure", "graphviz-pure.exe")
    try:
        files = metadata.distribution("graphviz-pure").files or []
    except metadata.PackageNotFoundError:
        files = []
    candidates = [Path(str(file.locate())) for file in files if file.name in names]
    candidates += [Path(sysconfig.get_path("scripts"), name) for name in names]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate.resolve())
    return shutil.which("graphviz-pure")


def find_system() -> str | None:
    """Path of the machine's own `dot`."""
    return shutil.which("dot")


EMBEDDED = GraphvizEngine(
    "embedded", "graphviz-pure", 'pip install graphviz-pure==0.2.2, or pass engine="system"', find_embedded
)
SYSTEM = GraphvizEngine(
    "system",
    "dot",
    "install Graphviz (apt install graphviz, brew install graphviz, winget install graphviz), or leave engine= unset",
    find_system,
)
