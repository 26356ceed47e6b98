"""A finished figure as DOT text: laid out once per format, saved in any of them, shown where the user is.

Knows nothing of what the figure shows. Nothing is laid out before the bytes are asked for.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import webbrowser
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

from torchlens.base.errors import TorchLensWarning, fail, heard
from torchlens.base.files import write_atomically
from torchlens.render import dot, png, svg
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.engine import RASTERS, make_artifact
from torchlens.render.paths import plan_output
from torchlens.render.placement import Rect
from torchlens.settings.options import DrawOptions, validate_option


@dataclass(frozen=True, slots=True)
class Source:
    """What a figure is made from. document: DOT text; pictures: the PNG files that it names; sheet: its page, where
    everything has its place already; smallest_text: points, None without any text.
    """

    document: str
    title: str
    options: DrawOptions
    pictures: Mapping[str, bytes]
    sheet: Rect | None
    smallest_text: float | None


class Rendered:
    """One figure.

    dot: its Graphviz source; file_format, path: what was asked for, path None if no file was written; warnings: what
    was disclosed while drawing.
    """

    def __init__(self, source: Source, *, file_format: str, path: Path | None) -> None:
        self.dot = source.document
        self.file_format, self.path = file_format, path
        self.warnings: list[TorchLensWarning] = []
        self._rendered = source
        self._artifacts: dict[str, Artifact] = {}

    @property
    def data(self) -> bytes:
        """The figure in `file_format`, as bytes for text formats too."""
        return self._artifact(self.file_format).data

    @property
    def page(self) -> Page | None:
        """Size of the drawn page; None for dot, which has none."""
        return self._artifact(self.file_format).page

    # -- files
    def save(
        self,
        path: str | PathLike[str],
        *,
        file_format: str | None = None,
        dpi: int | None = None,
        editable: bool = False,
    ) -> Path:
        """Write the figure, possibly in another format, and return the file's path.

        The extension or file_format decides, else pdf; editable: write the Graphviz source. dpi: of png. Pictures in
        nodes are part of every format but dot, which names them: they go into the folder `<name>.assets` beside it.
        Raises: as `Trace.draw`, before anything is laid out.
        """
        dpi = cast("int | None", validate_option("dpi", dpi))
        if editable:
            if file_format not in (None, "dot"):
                fail("file_format_conflict", f"editable=True writes dot and file_format is {file_format!r}")
            file_format = "dot"
        target, chosen = plan_output(path, file_format, self._rendered.options.engine)
        assert target is not None
        self._check_size(chosen)
        self._write(target, chosen, dpi)
        return target

    def _finished(self, warnings: Iterable[TorchLensWarning]) -> Self:
        """The figure, written and shown as its path and options say. warnings: of its making."""
        self.warnings += warnings
        if self.path is not None:
            self._write(self.path, self.file_format)
        if self._rendered.options.open_viewer:
            self.show()
        return self

    def _write(self, target: Path, file_format: str, dpi: int | None = None) -> None:
        data, pictures = self._artifact(file_format, dpi).data, self._rendered.pictures
        if pictures and file_format == "dot":
            assets = target.with_name(f"{target.stem}.assets")
            assets.mkdir(exist_ok=True)
            for name, content in pictures.items():
                write_atomically(assets / name, content)
            data = dot.with_pictures_in(self.dot, assets.name).encode("utf-8", errors="replace")
        write_atomically(target, data)

    def _artifact(self, file_format: str, dpi: int | None = None) -> Artifact:
        source = self._rendered
        dpi = dpi or source.options.dpi
        key = f"{file_format} {dpi}" if file_format in RASTERS else file_format
        if key not in self._artifacts:
            self._check_size(file_format)
            if file_format in RASTERS and source.sheet is not None:
                png.check_area(source.sheet.right, source.sheet.top, dpi or png.DEFAULT_DPI)
            with heard() as warnings:
                made = make_artifact(
                    self.dot,
                    file_format,
                    engine=source.options.engine,
                    dpi=dpi,
                    pdf_font=source.options.pdf_font,
                    title=source.title,
                    pictures=source.pictures,
                )
            page = made.page.with_text(source.smallest_text) if made.page else None
            self._artifacts[key] = replace(made, page=page)
            self.warnings += warnings
        return self._artifacts[key]

    def _check_size(self, file_format: str) -> None:
        """Refuse what cannot be laid out; most figures can be."""

    # -- display
    def show(self) -> None:
        """Show the figure: inline in a notebook, else in the system's viewer."""
        if in_notebook():
            from IPython.display import display  # type: ignore[import-not-found]

            display(self)
            return
        path = self.path
        if path is None:
            with tempfile.NamedTemporaryFile(prefix="torchlens-", suffix=f".{self.file_format}", delete=False) as file:
                file.write(self.data)
            path = Path(file.name)
        webbrowser.open(path.resolve().as_uri())

    def _repr_svg_(self) -> str:
        return svg.inline(self._artifact("svg").data)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.file_format == "png":
            return {"image/png": base64.b64encode(self.data).decode("ascii"), "text/plain": repr(self)}
        return {"image/svg+xml": self._repr_svg_(), "text/plain": repr(self)}


def in_notebook() -> bool:
    """Whether the code runs in a kernel that shows pictures."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None
