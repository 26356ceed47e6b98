"""A finished drawing, and the six steps from a trace to one.

A `Drawing` is detached: it keeps the figure and its settings, never the trace, so that it can be kept, shown, saved
again in another format, and asked why a node looks as it does.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import weakref
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torchlens.base.errors import TorchLensWarning, fail, heard, warn
from torchlens.base.files import write_atomically
from torchlens.plan.collapse.planner import CEILING, CollapsePlan
from torchlens.plan.collapse.quality import NONE
from torchlens.plan.collapse.schedule import CollapseSchedule
from torchlens.plan.graph import PlanNode
from torchlens.plan.pipeline import make_plan, plan_schedule
from torchlens.render import dot, png, svg
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.engine import RASTERS, make_artifact, require_engine
from torchlens.render.fonts import load_fonts
from torchlens.render.layouts import check_size, lay_out
from torchlens.render.measure import smallest_text
from torchlens.render.paths import INLINE_FORMAT, free_path, plan_output
from torchlens.scene.build import DIRECTIONS, build
from torchlens.scene.layers import explain
from torchlens.scene.node_spec import Callbacks, has_hooks
from torchlens.settings.channel_checks import has_channel
from torchlens.settings.compose import DrawRequest, Layer, resolve, with_direction, without_callables
from torchlens.settings.options import validate_option

if TYPE_CHECKING:
    from torchlens.records.provenance import InputProvenance
    from torchlens.records.trace_data import TraceData
    from torchlens.scene.model import Encoding, Scene
    from torchlens.settings.options import DrawOptions

__all__ = ["Drawing", "draw_trace", "free_path", "plan_output", "prepare", "settings_text"]

AnyPath = str | PathLike[str]
# The direction beside the usual one that `fit_width=` may pick, and the smallest text that prints legibly.
SIDEWAYS, LEAST_TEXT_PT = "leftright", 5.0
# What a hook is told about a node of the plan; rolled: whether the node stands for all passes of a layer.
RecordOf = Callable[[PlanNode, bool], object]


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
        collapse: CollapsePlan | None = None,
        source: TraceData | None = None,
    ) -> None:
        laid_out, placement = lay_out(scene, request.options.layout, channel=has_channel(request.options))
        self.dot, self._sheet = dot.write(laid_out, placement), placement.page
        self.file_format, self.path, self.provenance = file_format, path, provenance
        self.warnings: list[TorchLensWarning] = []
        self.receipt: object = None
        self._title, self._scene, self._request = title, scene, without_callables(request)
        self._pictures = {picture.name: picture.png for node in scene.nodes for picture in node.pictures}
        self._artifacts: dict[str, Artifact] = {}
        self._collapse = collapse
        self._source = weakref.ref(source) if source is not None else None

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
        """What the channels did: `.color`, `.size` and `.stack`, each None where it is off; None without any."""
        return self._scene.encoding

    @property
    def collapse_plan(self) -> CollapsePlan:
        """How the figure was folded: mode, nodes drawn of how many, boxes, folds, segments, and why.

        Raises: UnavailableError[collapse_plan_unavailable] for collapse="none", for a trace too large to be planned,
        and once the trace is gone.
        """
        self._require_source()
        plan = self._collapse
        if plan is None or plan.mode == NONE:
            what = 'the figure was drawn with collapse="none", which needs no plan'
            fail("collapse_plan_unavailable", what, fix='draw it with collapse="auto"', reason="collapse_none")
        if plan.reason == CEILING:
            what = "the trace has too many ops to be planned: only the outermost modules are drawn"
            fail("collapse_plan_unavailable", what, fix="draw a part with module=", reason=CEILING)
        return plan

    @property
    def collapse_schedule(self) -> CollapseSchedule:
        """Every step from the full figure to the strongest fold, under the options of this figure; `.at(0.5)` is one.

        Raises: UnavailableError[collapse_plan_unavailable] once the trace is gone.
        """
        return plan_schedule(self._require_source(), self._request)

    def _require_source(self) -> TraceData:
        source = self._source() if self._source is not None else None
        if source is None:
            what = "the trace of this figure has been released"
            fail("collapse_plan_unavailable", what, fix="keep the trace while you ask", reason="trace_released")
        return source

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

        The extension or file_format decides, else pdf; editable: write the Graphviz source. dpi: of png. Pictures in
        nodes are part of every format but dot, which names them: they go into the folder `<name>.assets` beside it.
        Raises: as `Trace.draw`, before anything is laid out.
        """
        dpi = cast("int | None", validate_option("dpi", dpi))
        if editable:
            if file_format not in (None, "dot"):
                fail("file_format_conflict", f"editable=True writes dot and file_format is {file_format!r}")
            file_format = "dot"
        target, chosen = plan_output(path, file_format, self._request.options.engine)
        assert target is not None
        self._check_size(chosen)
        self._write(target, chosen, dpi)
        return target

    def _write(self, target: Path, file_format: str, dpi: int | None = None) -> None:
        data = self._artifact(file_format, dpi).data
        if self._pictures and file_format == "dot":
            assets = target.with_name(f"{target.stem}.assets")
            assets.mkdir(exist_ok=True)
            for name, png in self._pictures.items():
                write_atomically(assets / name, png)
            data = dot.with_pictures_in(self.dot, assets.name).encode("utf-8", errors="replace")
        write_atomically(target, data)

    def _artifact(self, file_format: str, dpi: int | None = None) -> Artifact:
        options = self._request.options
        dpi = dpi or options.dpi
        key = f"{file_format} {dpi}" if file_format in RASTERS else file_format
        if key not in self._artifacts:
            self._check_size(file_format)
            if file_format in RASTERS and self._sheet is not None:
                png.check_area(self._sheet.right, self._sheet.top, dpi or png.DEFAULT_DPI)
            with heard() as warnings:
                made = make_artifact(
                    self.dot,
                    file_format,
                    engine=options.engine,
                    dpi=dpi,
                    pdf_font=options.pdf_font,
                    title=self._title,
                    pictures=self._pictures,
                )
            page = made.page.with_text(smallest_text(self._scene)) if made.page else None
            self._artifacts[key] = replace(made, page=page)
            self.warnings += warnings
        return self._artifacts[key]

    def _printed_text(self, width: float) -> float:
        """Points of the smallest text at this width in print; a narrower figure keeps its size."""
        page = self._artifact("svg").page
        assert page is not None
        text = page.text_at(min(width, page.width_pt))
        return float("inf") if text is None else text

    def _check_size(self, file_format: str) -> None:
        check_size(
            len(self._scene.nodes),
            file_format,
            layout=self._request.options.layout,
            channel=has_channel(self._request.options),
        )

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
    data: TraceData,
    path: AnyPath | None,
    given: Mapping[str, object],
    *,
    layers: Sequence[Layer] = (),
    record_of: RecordOf | None = None,
    source: TraceData | None = None,
) -> Drawing:
    """Draw a trace.

    path: file to write, None for none; given: the keywords as written; layers: further (label, options) of collapse,
    encoding and figure files; record_of: what `node_spec_fn` is told about a node, by default its plain record; source:
    the records that the drawing remembers weakly, by default those given.
    Raises: whatever `prepare` raises, the codes of missing evidence, `graph_too_large`, and the codes of the engine.
    """
    with heard() as warnings:
        request = resolve(data, given, layers=layers)
        target, file_format = _check_output(path, request.options)
        plan = make_plan(data, request)
        options = request.options
        check_size(len(plan.nodes), file_format, layout=options.layout, channel=has_channel(options))
        scene = build(plan, data, request, _callbacks(request, record_of), record_of)

        def make(scene: Scene, request: DrawRequest) -> Drawing:
            return Drawing(
                scene,
                request,
                title=data.model_class,
                provenance=data.provenance,
                file_format=file_format,
                path=target,
                collapse=plan.collapse,
                source=data if source is None else source,
            )

        drawing = make(scene, request) if options.fit_width is None else _fit(make, scene, request, options.fit_width)
        if plan.collapse is not None and plan.collapse.manifest:
            _disclose(plan.collapse, target)
    drawing.warnings += warnings
    if target is not None:
        drawing._write(target, file_format)
    if request.options.open_viewer:
        drawing.show()
    return drawing


def _disclose(plan: CollapsePlan, target: Path | None) -> None:
    """Say what could be opened on a page that is above the readable band, in a file beside the figure if there is one.

    Warns: collapse_expansion_manifest.
    """
    what = f"the page has {plan.nodes} nodes, more than the readable {plan.band}"
    if target is None:
        what, place = f"{what}; drawing.collapse_plan.manifest lists what can be opened", None
    else:
        place = target.with_name(f"{target.name}.expansion.json")
        units = [dict(row) for row in plan.manifest]
        text = json.dumps({"schema": "torchlens_expansion_manifest_v1", "units": units}, indent=1)
        write_atomically(place, text.encode() + b"\n")
        what = f"{what}; {place} lists what can be opened"
    warn("collapse_expansion_manifest", what, nodes=plan.nodes, band=plan.band, path=place)


def _fit(make: Callable[[Scene, DrawRequest], Drawing], scene: Scene, request: DrawRequest, width: int) -> Drawing:
    """The drawing whose smallest text is the larger at this width in print, among the directions left open.

    Warns: figure_text_small.
    """
    found = [make(scene, request)]
    if request.options.direction is None:
        turned = replace(scene, page=replace(scene.page, direction=DIRECTIONS[SIDEWAYS]))
        found.append(make(turned, with_direction(request, SIDEWAYS)))
    best = max(found, key=lambda drawing: drawing._printed_text(width))
    text = best._printed_text(width)
    if text < LEAST_TEXT_PT:
        what = f"printed {width} points wide, the smallest text is {text:.1f} points high, less than {LEAST_TEXT_PT:g}"
        warn("figure_text_small", what, width=width, text=text)
    return best


def _callbacks(request: DrawRequest, record_of: RecordOf | None) -> Callbacks | None:
    if record_of is None or not has_hooks(request.options):
        return None
    from torchlens.viz.pictures import png_of  # only a hook can set an image here

    rolled = request.options.rolled
    return Callbacks(lambda node: record_of(node, rolled), png_of)


def prepare(path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()) -> DrawOptions:
    """Refuse before a model runs what can be refused without a trace: keywords, path, format, engine, font.

    Raises: TypeError for an unknown keyword; the code of a wrong value; InvalidArgumentError[file_format_invalid,
    file_format_conflict, output_path_invalid, pdf_font_invalid]; EngineError[render_engine_unavailable].
    """
    options = resolve(None, given, layers=layers).options
    _check_output(path, options)
    return options


def _check_output(path: AnyPath | None, options: DrawOptions) -> tuple[Path | None, str]:
    target, file_format = plan_output(path, options.file_format, options.engine)
    require_engine(options.engine, file_format if options.fit_width is None else INLINE_FORMAT)
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
