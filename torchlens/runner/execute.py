"""Runs one job: one recording for all figures of a model and input, then every figure, then the manifest.

A figure that fails does not stop the others, and the manifest is written whatever happens.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import EvidenceError, TorchLensError, TorchLensWarning, heard
from torchlens.drawings import Drawing, draw_trace
from torchlens.render import png
from torchlens.render.rendered import Rendered
from torchlens.runner import manifest as records
from torchlens.runner.figures import SCHEDULE, Figure
from torchlens.runner.hooks import annotated
from torchlens.runner.job import Job, unwritable
from torchlens.runner.progress import Reporter
from torchlens.runner.timings import FrozenTimings
from torchlens.scene.node_spec import has_hooks
from torchlens.settings.channel_checks import measures, shows_times
from torchlens.settings.evidence import check_bound
from torchlens.viz.sheets import draw_legend, draw_schedule
from torchlens.viz.subjects import record_of

if TYPE_CHECKING:
    from torchlens.trace_view import Trace

TRACEBACKS = "HYDRA_FULL_ERROR"
THREADS = "TORCHLENS_THREADS"
# Of no account here: the model is made for the recording and thrown away. It also comes once per process only, so that
# a manifest would depend on what ran before.
_OWN_MODEL = "batchnorm_train_stats_mutated"


def execute(job: Job, folder: Path, *, frozen: Path | None = None) -> bool:
    """Draw all figures of a job into its folder. Returns whether all of them were written.

    frozen: the folder whose frozen times are used and left alone, by default the same folder, where they are kept.
    Raises: InvalidArgumentError[output_path_invalid] if the folder or the manifest cannot be written.
    """
    manifest = records.describe(job, folder)
    recordings = _by_recording(job.figures)
    _make(folder)
    _write(manifest, job, folder)  # what is found as `running` later on was killed
    try:
        recorded = sum(figures[0].model is not None for figures in recordings)
        with Reporter(recorded + len(job.figures)) as reporter, _quiet_warnings():
            _set_threads(job.threads)
            with _timings(job, folder, frozen) as times:
                place = _Place(folder, times, manifest["figures"], reporter, lambda: _write(manifest, job, folder))
                for figures in recordings:
                    _draw_all(figures, place)
        drawn = all(entry["status"] == records.OK for entry in manifest["figures"].values())
        manifest["status"] = records.OK if drawn else records.FAILED
    except KeyboardInterrupt:
        manifest["status"] = records.INTERRUPTED
        raise
    finally:
        _write(manifest, job, folder)
    return drawn


@dataclass(frozen=True)
class _Place:
    """Where the figures of a job go, and whom to tell.

    times: the frozen ones, None to show the measured ones; note: writes the manifest as far as it is known.
    """

    folder: Path
    times: FrozenTimings | None
    entries: dict[str, Any]
    reporter: Reporter
    note: Callable[[], None]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise unwritable(exc, folder) from exc


def _write(manifest: dict[str, Any], job: Job, folder: Path) -> None:
    records.write(folder, records.published(manifest) if job.published else manifest)


@contextmanager
def _timings(job: Job, folder: Path, frozen: Path | None) -> Iterator[FrozenTimings | None]:
    if not job.frozen:
        yield None
        return
    times = FrozenTimings(frozen or folder, job.figure_set, refreeze=job.refreeze, closed=frozen is not None)
    try:
        yield times
    finally:
        times.save()


def _by_recording(figures: tuple[Figure, ...]) -> list[list[Figure]]:
    """Figures that share a model and an input, in order of the first of each; those without a model are one group."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.recording, []).append(figure)
    return list(groups.values())


def _draw_all(figures: list[Figure], place: _Place) -> None:
    """Record once and draw every figure of the recording."""
    from torchlens.runner.build import record_trace  # brings torch, which planning and help do without

    entries, reporter, model = place.entries, place.reporter, figures[0].model
    figures = [figure for figure in figures if _possible(figure, place)]
    if not figures:
        return
    if model is None:
        for figure in figures:
            _draw_one(figure, None, place)
        return
    timed = any(shows_times(figure.request.options) for figure in figures)
    measured = timed and not (place.times is not None and place.times.has(model))
    notes = ""
    reporter.step(f"recording {model.name}", timed=True)
    try:
        with heard() as caught:
            saved, stats = measures([figure.request.options for figure in figures])
            values = any(has_hooks(figure.request.options) for figure in figures)
            trace = record_trace(model, warm=measured, saved=saved, stats=stats, values=values)
        if timed and place.times is not None:
            notes = place.times.apply(trace.data, model)
    except Exception as exc:  # noqa: BLE001 - any failure of a user's model fails its figures only
        for figure in figures:
            _failed(figure, exc, entries, reporter)
        return
    for warning in _distinct(caught):
        reporter.note(str(warning))
    for figure in figures:
        entries[figure.name]["warnings"] = [records.warning_entry(warning) for warning in _distinct(caught)]
        entries[figure.name]["provenance"] = records.provenance_entry(trace.provenance)
        _draw_one(figure, trace, place, notes if shows_times(figure.request.options) else "")


def _possible(figure: Figure, place: _Place) -> bool:
    """Whether some trace can serve the view of the figure; else it fails, and no model runs for it."""
    view = figure.request.view
    try:
        if view is not None:
            check_bound(view.name, view.needs)
    except EvidenceError as exc:
        _failed(figure, exc, place.entries, place.reporter)
        return False
    return True


def _draw_one(figure: Figure, trace: Trace | None, place: _Place, notes: str = "") -> None:
    """Draw a figure, or note why it failed."""
    place.reporter.step(f"drawing {figure.name}")
    try:
        _draw(figure, trace, place, notes)
    except Exception as exc:  # noqa: BLE001 - the other figures are still drawn
        _failed(figure, exc, place.entries, place.reporter)
    place.note()


def _draw(figure: Figure, trace: Trace | None, place: _Place, notes: str) -> None:
    """Draw one figure and write its files. notes: lines for the caption, below the user's own."""
    options, folder, reporter = figure.request.options, place.folder, place.reporter
    entry = place.entries[figure.name]
    given = {**figure.given, "open_viewer": False}
    if notes:
        given["caption"] = "\n".join(part for part in (options.caption, notes) if part)
    drawing = _made(figure, trace, given, folder)
    if isinstance(drawing, Drawing):
        entry["options"].update(records.answers(figure, drawing))
    for name, file_format in zip(figure.files, figure.formats, strict=True):
        if file_format in figure.optional and (reason := _too_large(drawing, options.dpi)):
            entry["left_out"] = {file_format: reason}
            reporter.note(f"{figure.name}: no {file_format}: {reason}; formats=[{file_format}] writes it all the same")
            continue
        target = folder / name
        _make(target.parent)
        drawing.path = drawing.save(target, file_format=file_format)
        entry["files"].append(records.file_entry(target, folder, file_format))
        reporter.wrote(target)
    if "svg" in figure.formats and (page := drawing.page) is not None:
        sides = {"width_pt": page.width, "height_pt": page.height}
        entry["page"] = {**sides, "smallest_text_pt": page.smallest_text}
    entry["status"] = records.OK
    for warning in _distinct(drawing.warnings):
        entry["warnings"].append(records.warning_entry(warning))
        reporter.note(f"{figure.name}: {warning}")
    if options.open_viewer:
        drawing.show()


def _made(figure: Figure, trace: Trace | None, given: Mapping[str, Any], folder: Path) -> Rendered:
    """The figure that its kind calls for."""
    if trace is None:
        return draw_legend(None, given, layers=figure.layers)
    if figure.kind == SCHEDULE:
        return draw_schedule(trace.data, None, given, layers=figure.layers)
    noted = annotated(trace, figure.notes)
    first = folder / figure.files[0]
    _make(first.parent)
    return draw_trace(noted.data, None, given, layers=figure.layers, record_of=record_of(noted), beside=first)


def _too_large(drawing: Rendered, dpi: int | None) -> str:
    """Why a raster picture of the drawing would be of no use, empty if it is fine. Decided by its size, not by time."""
    page, dpi = drawing.page, dpi or png.DEFAULT_DPI
    assert page is not None
    width, height = (int(side * dpi / 72) for side in (page.width, page.height))
    fits = max(width, height) <= png.SIDE_LIMIT_PX and width * height <= png.AREA_LIMIT_PX
    return "" if fits else f"it would have {width} x {height} pixels"


def _failed(figure: Figure, exc: BaseException, entries: dict[str, Any], reporter: Reporter) -> None:
    entries[figure.name].update(status=records.FAILED, error=records.problem(exc))
    text = str(exc) if isinstance(exc, TorchLensError) else f"{type(exc).__name__}: {exc}"
    reporter.note(f"figure {figure.name!r} failed: {text}")
    if os.environ.get(TRACEBACKS) == "1":
        traceback.print_exception(exc)


def _distinct(caught: list[TorchLensWarning]) -> list[TorchLensWarning]:
    return list({str(warning): warning for warning in caught if warning.code != _OWN_MODEL}.values())


def _set_threads(threads: int | None) -> None:
    """Of torch. A sweep over several processes of one machine shares its processors among them."""
    if threads is None and (share := os.environ.get(THREADS, "")).isdigit():
        threads = int(share)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


@contextmanager
def _quiet_warnings() -> Iterator[None]:
    """Our own warnings are reported by us; a torch without NumPy need not say so in every process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
        yield
