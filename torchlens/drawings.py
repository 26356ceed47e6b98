"""A finished drawing, and the six steps from a trace to one.

A `Drawing` is detached: it keeps the figure and its settings, never the trace, so that it can be kept, shown, saved
again in another format, and asked why a node looks as it does.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlens.base.errors import fail, heard, warn
from torchlens.base.files import write_atomically
from torchlens.plan.collapse.planner import planned
from torchlens.plan.collapse.quality import NONE
from torchlens.plan.collapse.report import CEILING, CollapsePlan
from torchlens.plan.collapse.schedule import CollapseSchedule
from torchlens.plan.pipeline import make_plan, plan_schedule
from torchlens.render import dot
from torchlens.render.layouts import check_size, lay_out
from torchlens.render.measure import smallest_text
from torchlens.render.rendered import Rendered, Source
from torchlens.scene.build import DIRECTIONS, build
from torchlens.scene.encodings import RecordOf
from torchlens.scene.layers import explain
from torchlens.scene.node_spec import Callbacks, has_hooks
from torchlens.settings.channel_checks import has_channel
from torchlens.settings.compose import DrawRequest, Layer, resolve, with_direction, without_callables
from torchlens.settled import AnyPath, check_output, settings_text

if TYPE_CHECKING:
    from torchlens.records.provenance import InputProvenance
    from torchlens.records.trace_data import TraceData
    from torchlens.scene.model import Encoding, Scene

# The direction beside the usual one that `fit_width=` may pick, and the smallest text that prints legibly.
SIDEWAYS, LEAST_TEXT_PT = "leftright", 5.0


class Text(str):
    """Text of several lines that an interpreter shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Drawing(Rendered):
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
        self._scene, self._request = scene, without_callables(request)
        rendered = Source(
            dot.write(laid_out, placement),
            title,
            self._request.options,
            {picture.name: picture.png for node in scene.nodes for picture in node.pictures},
            placement.page,
            smallest_text(scene),
        )
        super().__init__(rendered, file_format=file_format, path=path)
        self.provenance = provenance
        self.receipt: object = None
        self._collapse = collapse
        self._source = weakref.ref(source) if source is not None else None

    # -- what it is
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
        return planned(plan)

    @property
    def collapse_schedule(self) -> CollapseSchedule:
        """Every step from the full figure to the strongest fold, under the options of this figure; `.at(0.5)` is one.

        `tl.viz.schedule(trace)` draws them.
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
        return f"<Drawing of {self._rendered.title}: {len(self._scene.nodes)} nodes, {self.file_format}{place}>"

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


# -- drawing
def draw_trace(
    data: TraceData,
    path: AnyPath | None,
    given: Mapping[str, object],
    *,
    layers: Sequence[Layer] = (),
    record_of: RecordOf | None = None,
    source: TraceData | None = None,
    beside: Path | None = None,
) -> Drawing:
    """Draw a trace.

    path: file to write, None for none; given: the keywords as written; layers: further (label, options) of collapse,
    encoding and figure files; record_of: what `node_spec_fn` is told about a node, by default its plain record; source:
    the records that the drawing remembers weakly, by default those given; beside: the file into which the caller saves
    the drawing if path is None.
    Raises: whatever `prepare` raises, the codes of missing evidence, `graph_too_large`, and the codes of the engine.
    """
    with heard() as warnings:
        request = resolve(data, given, layers=layers)
        target, file_format = check_output(path, request.options)
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
            _disclose(plan.collapse, target, beside)
    return drawing._finished(warnings)


def _disclose(plan: CollapsePlan, path: Path | None, beside: Path | None) -> None:
    """Say what could be opened on a page that is above the readable band, in a file beside the figure if there is one.

    A file beside one that the caller writes is called by its name alone: the caller knows the folder.
    Warns: collapse_expansion_manifest.
    """
    what, target, place = f"the page has {plan.nodes} nodes, more than the readable {plan.band}", path or beside, None
    if target is not None:
        place = target.with_name(f"{target.name}.expansion.json")
        units = [dict(row) for row in plan.manifest]
        text = json.dumps({"schema": "torchlens_expansion_manifest_v1", "units": units}, indent=1)
        write_atomically(place, text.encode() + b"\n")
        what = f"{what}; {place if path else place.name} lists what can be opened"
    elif plan.reason == CEILING:  # such a plan is refused
        what = f"{what}; drawn with a path, a file beside the figure lists what can be opened"
    else:
        what = f"{what}; drawing.collapse_plan.manifest lists what can be opened"
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
