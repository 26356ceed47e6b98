"""A finished drawing, and the six steps from a trace to one.

A `Drawing` is detached: it keeps the figure and its settings, never the trace, so that it can be kept, shown, saved
again in another format, and asked why a node looks as it does.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torchlens.base.errors import TorchLensWarning, fail, heard
from torchlens.plan.pipeline import make_plan
from torchlens.render import dot, svg
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.engine import check_size, make_artifact, require_engine
from torchlens.render.fonts import load_fonts
from torchlens.render.paths import free_path, plan_output, write_atomically
from torchlens.scene.build import build
from torchlens.scene.layers import explain
from torchlens.settings.compose import DrawRequest, Layer, resolve
from torchlens.settings.options import validate_option

if TYPE_CHECKING:
    from torchlens.records.provenance import InputProvenance
    from torchlens.records.trace_data import TraceData
    from torchlens.scene.model import Encoding, Scene
    from torchlens.settings.options import DrawOptions

__all__ = ["Drawing", "draw_trace", "free_path", "plan_output", "prepare", "settings_text", "write_atomically"]

AnyPath = str | PathLike[str]


class Text(str):
    """Text of several lines that an interpreter shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Drawing:
    """One figure of a trace.

    dot: its Graphviz source; file_format, path: what was asked for, path None if no file was written; provenance:
    where the input values came from; warnings: what was disclosed while drawing; receipt: of `torchlens.draw`, what the
    run restored. Without a path nothing is laid out until `data`, `page` or a notebook asks for it.
    """

    def __init__(
        self,
        scene: Scene,
        request: DrawRequest,
        *,
        title: str,
        provenance: InputProvenance,
        file_format: str,
        path: Path | None = None,
    ) -> None:
        self.dot = dot.write(scene)
        self.file_format, self.path, self.provenance = file_format, path, provenance
        self.warnings: list[TorchLensWarning] = []
        self.receipt: object = None
        self._title, self._scene, self._request = title, scene, request
        self._artifacts: dict[str, Artifact] = {}

    # -- what it is
    @property
    def data(self) -> bytes:
        """The figure in `file_format`, as bytes for text formats too."""
        return self._artifact(self.file_format).data

    @property
    def page(self) -> Page | None:
        """Size of the drawn page; None for dot, which has none."""
        return self._artifact(self.file_format).page

    @property
    def view(self) -> str | None:
        """Name of the view, if one was chosen."""
        return self._request.view.name if self._request.view else None

    @property
    def theme(self) -> str:
        """Name of the theme."""
        return self._request.theme.name

    @property
    def encoding(self) -> Encoding | None:
        """What the colour channel did: source, unit, scale, range, coverage, notes; None without one."""
        return self._scene.encoding

    @property
    def settings(self) -> dict[str, tuple[object, str]]:
        """Every option as resolved, with the label of the layer that set it."""
        origin = self._request.origin
        return {name: (getattr(self._request.options, name), origin[name]) for name in origin}

    def explain(self, label: str | None = None) -> Text:
        """Why the figure looks as it does: who set each option, or each style attribute of one node.

        Raises: UnknownNameError[label_not_found] if no drawn node bears the label.
        """
        return Text(settings_text(self._request) if label is None else explain(self._scene, label, self._request))

    def __repr__(self) -> str:
        place = f" in {str(self.path)!r}" if self.path else ""
        return f"<Drawing of {self._title}: {len(self._scene.nodes)} nodes, {self.file_format}{place}>"

    # -- files
    def save(
        self, path: AnyPath, *, file_format: str | None = None, dpi: int | None = None, editable: bool = False
    ) -> Path:
        """Write the figure, possibly in another format, and return the file's path.

        The extension or file_format decides, else pdf; editable: write the Graphviz source. dpi: of png.
        Raises: as `Trace.draw`, before anything is laid out.
        """
        dpi = cast("int | None", validate_option("dpi", dpi))
        if editable:
            if file_format not in (None, "dot"):
                fail("file_format_conflict", f"editable=True writes dot and file_format is {file_format!r}")
            file_format = "dot"
        target, chosen = plan_output(path, file_format, self._request.options.engine)
        assert target is not None
        check_size(len(self._scene.nodes), chosen)
        write_atomically(target, self._artifact(chosen, dpi).data)
        return target

    def _artifact(self, file_format: str, dpi: int | None = None) -> Artifact:
        options = self._request.options
        dpi = dpi or options.dpi
        key = f"{file_format} {dpi}" if file_format == "png" else file_format
        if key not in self._artifacts:
            check_size(len(self._scene.nodes), file_format)
            with heard() as warnings:
                self._artifacts[key] = make_artifact(
                    self.dot, file_format, engine=options.engine, dpi=dpi, pdf_font=options.pdf_font, title=self._title
                )
            self.warnings += warnings
        return self._artifacts[key]

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


# -- drawing
def draw_trace(
    data: TraceData, path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()
) -> Drawing:
    """Draw a trace.

    path: file to write, None for none; given: the keywords as written; layers: further (label, options) of collapse,
    encoding and figure files.
    Raises: whatever `prepare` raises, the codes of missing evidence, `graph_too_large`, and the codes of the engine.
    """
    with heard() as warnings:
        request = resolve(data, given, layers=layers)
        target, file_format = _check_output(path, request.options)
        plan = make_plan(data, request)
        check_size(len(plan.nodes), file_format)
        drawing = Drawing(
            build(plan, data, request),
            request,
            title=data.model_class,
            provenance=data.provenance,
            file_format=file_format,
            path=target,
        )
    drawing.warnings += warnings
    if target is not None:
        write_atomically(target, drawing.data)
    if request.options.open_viewer:
        drawing.show()
    return drawing


def prepare(path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()) -> None:
    """Refuse before a model runs what can be refused without a trace: keywords, path, format, engine, font.

    Raises: TypeError for an unknown keyword; the code of a wrong value; InvalidArgumentError[file_format_invalid,
    file_format_conflict, output_path_invalid, pdf_font_invalid]; EngineError[render_engine_unavailable].
    """
    _check_output(path, resolve(None, given, layers=layers).options)


def _check_output(path: AnyPath | None, options: DrawOptions) -> tuple[Path | None, str]:
    target, file_format = plan_output(path, options.file_format, options.engine)
    require_engine(options.engine, file_format)
    if options.pdf_font is not None and file_format == "pdf":
        load_fonts(options.pdf_font)
    return target, file_format


# -- words
def settings_text(request: DrawRequest) -> str:
    """A table of the options that a layer set: value, layer, and what that layer overruled."""
    rows = [("setting", "value", "set by", "over")]
    rows += [("theme", request.theme.name, "", ""), ("view", request.view.name if request.view else "none", "", "")]
    for name, steps in request.trail.items():
        *overruled, (layer, value) = steps
        rows.append((name, str(value), layer, ", ".join(f"{label}={old}" for label, old in reversed(overruled))))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join("  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows)
