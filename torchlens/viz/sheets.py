"""Figures that are no graph: the key of a theme, and the schedule by which `collapse=` folds a trace.

Both take the same files, formats and themes as a drawing of a graph. Nothing is recorded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from torchlens.base.errors import fail, heard
from torchlens.plan.collapse.planner import planned
from torchlens.plan.collapse.quality import AUTO, MAX
from torchlens.plan.collapse.report import CollapsePlan
from torchlens.plan.pipeline import make_plan, plan_schedule
from torchlens.render import sheet as render_sheet
from torchlens.render.rendered import Rendered, Source
from torchlens.scene.schedule_chart import schedule_chart
from torchlens.scene.sheet import Sheet, Words
from torchlens.scene.theme_key import theme_key
from torchlens.settings.compose import DrawRequest, Layer, resolve, without_callables
from torchlens.settled import AnyPath, check_output

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData
    from torchlens.settings.keywords import DrawKeywords
    from torchlens.trace_view import Trace

# What a schedule goes through itself.
_VARIED = "collapse"


class Diagram(Rendered):
    """A figure that is no graph; it can be saved in every format, shown, and shows itself in a notebook."""

    def __init__(self, sheet: Sheet, request: DrawRequest, *, file_format: str, path: Path | None = None) -> None:
        sizes = [mark.size for mark in sheet.marks if isinstance(mark, Words)]
        options = without_callables(request).options
        page = render_sheet.page_of(sheet)
        source = Source(render_sheet.write(sheet), sheet.title, options, {}, page, min(sizes, default=None))
        super().__init__(source, file_format=file_format, path=path)
        self.theme = request.theme.name

    def __repr__(self) -> str:
        place = f" in {str(self.path)!r}" if self.path else ""
        return f"<Diagram: {self._rendered.title}, {self.file_format}{place}>"


def legend(
    path: AnyPath | None = None,
    *,
    theme: str | Mapping[str, Any] = "torchlens",
    file_format: str | None = None,
    dpi: int | None = None,
    engine: str | None = None,
    pdf_font: str | None = None,
    open_viewer: bool = False,
) -> Diagram:
    """Draw the key of a theme: all fills, outlines, lines and labels with what they mean. Needs no model.

    path: file to write, None for none; theme and the others: as `Trace.draw` takes them.
    Raises: InvalidArgumentError[visualization_theme_invalid] and the codes of formats, files and engines.
    """
    given: dict[str, object] = {"theme": theme, "file_format": file_format, "dpi": dpi, "engine": engine}
    return draw_legend(path, {**given, "pdf_font": pdf_font, "open_viewer": open_viewer})


def schedule(trace: Trace, path: AnyPath | None = None, **options: Unpack[DrawKeywords]) -> Diagram:
    """Draw how `collapse=` folds a trace: nodes over the level t, the plans of `auto` and `max`, and every step.

    options: those of `Trace.draw` but for collapse, which the figure goes through; `module`, `rolled`, `depth`,
    `fold_repeats` and the like change what there is to fold.
    Raises: InvalidArgumentError[collapse_mode_invalid] if collapse is given;
    UnavailableError[collapse_plan_unavailable] for a trace with too many ops to be planned; and as `Trace.draw`.
    """
    given: dict[str, object] = {**options}
    focus = given.get("module")
    if focus is not None and not isinstance(focus, str):
        given["module"] = getattr(focus, "address", focus)
    return draw_schedule(trace.data, path, given)


# -- for the runner too
def draw_legend(path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()) -> Diagram:
    """The key of a theme. given, layers: as `draw_trace` takes them; only the theme and the file matter."""
    with heard() as warnings:
        request = resolve(None, given, layers=layers)
        target, file_format = check_output(path, request.options)
        figure = Diagram(theme_key(request.theme), request, file_format=file_format, path=target)
    return figure._finished(warnings)


def draw_schedule(
    data: TraceData, path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()
) -> Diagram:
    """How a trace folds. given, layers: as `draw_trace` takes them."""
    if _VARIED in given:
        what = f"{_VARIED}={given[_VARIED]!r} chooses one step, and a schedule shows all of them"
        fail("collapse_mode_invalid", what, fix="leave collapse= out")
    with heard() as warnings:
        request = resolve(data, given, layers=layers)
        target, file_format = check_output(path, request.options)
        auto, strongest = _plan(data, request, AUTO), _plan(data, request, MAX)
        caption = request.options.caption
        lines = caption.splitlines() if caption else []
        steps = plan_schedule(data, request)
        sheet = schedule_chart(data.model_class, steps, auto, strongest, request.theme, lines)
        figure = Diagram(sheet, request, file_format=file_format, path=target)
    return figure._finished(warnings)


def _plan(data: TraceData, request: DrawRequest, mode: str) -> CollapsePlan:
    plan = make_plan(data, replace(request, options=replace(request.options, collapse=mode))).collapse
    assert plan is not None
    return planned(plan)
