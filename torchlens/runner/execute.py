"""Runs one job: one recording for all figures of a model and input, then every figure, then the manifest.

A figure that fails does not stop the others, and the manifest is written whatever happens.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import TorchLensError, TorchLensWarning, heard
from torchlens.drawings import Drawing, draw_trace
from torchlens.render import png
from torchlens.runner import manifest as records
from torchlens.runner.figures import Figure
from torchlens.runner.job import Job
from torchlens.runner.progress import Reporter

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData

TRACEBACKS = "HYDRA_FULL_ERROR"


def execute(job: Job, folder: Path) -> bool:
    """Draw all figures of a job into its folder. Returns whether all of them were written."""
    manifest = records.describe(job)
    recordings = _by_recording(job.figures)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with Reporter(len(recordings) + len(job.figures)) as reporter, _quiet_warnings():
            _set_threads(job.threads)
            for figures in recordings:
                _draw_all(figures, folder, manifest["figures"], reporter)
        drawn = all(entry["status"] == "ok" for entry in manifest["figures"].values())
        manifest["status"] = "ok" if drawn else "failed"
    except KeyboardInterrupt:
        manifest["status"] = "interrupted"
        raise
    finally:
        records.write(folder, records.published(manifest) if job.published else manifest)
    return drawn


def _by_recording(figures: tuple[Figure, ...]) -> list[list[Figure]]:
    """Figures that share a model and an input, in order of the first of each."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.model.key, []).append(figure)
    return list(groups.values())


def _draw_all(figures: list[Figure], folder: Path, entries: dict[str, Any], reporter: Reporter) -> None:
    """Record once and draw every figure of the recording."""
    from torchlens.runner.build import record  # brings torch, which planning and help do without

    model = figures[0].model
    timed = any(_shows_times(figure) for figure in figures)
    reporter.step(f"recording {model.name}", timed=True)
    try:
        with heard() as caught:
            data = record(model, warm=timed)
    except Exception as exc:  # noqa: BLE001 - any failure of a user's model fails its figures only
        for figure in figures:
            _failed(figure, exc, entries, reporter)
        return
    for warning in _distinct(caught):
        reporter.note(str(warning))
    for figure in figures:
        entries[figure.name]["warnings"] = [records.warning_entry(warning) for warning in _distinct(caught)]
        reporter.step(f"drawing {figure.name}")
        try:
            _draw(figure, data, folder, entries[figure.name], reporter)
        except Exception as exc:  # noqa: BLE001 - the other figures are still drawn
            _failed(figure, exc, entries, reporter)


def _shows_times(figure: Figure) -> bool:
    options = figure.request.options
    return options.color_by == "time" or options.node_style == "profiling"


def _draw(figure: Figure, data: TraceData, folder: Path, entry: dict[str, Any], reporter: Reporter) -> None:
    options = figure.request.options
    drawing = draw_trace(data, None, {**figure.given, "open_viewer": False}, layers=figure.layers)
    for name, file_format in zip(figure.files, figure.formats, strict=True):
        if file_format in figure.optional and (reason := _too_large(drawing)):
            entry["left_out"] = {file_format: reason}
            reporter.note(f"{figure.name}: no {file_format}: {reason}; formats=[{file_format}] writes it all the same")
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        drawing.path = drawing.save(target, file_format=file_format)
        entry["files"].append(records.file_entry(target, folder, file_format))
        reporter.wrote(target)
    entry["status"] = "ok"
    for warning in _distinct(drawing.warnings):
        entry["warnings"].append(records.warning_entry(warning))
        reporter.note(f"{figure.name}: {warning}")
    if options.open_viewer:
        drawing.show()


def _too_large(drawing: Drawing) -> str:
    """Why a raster picture of the drawing would be of no use, empty if it is fine. Decided by its size, not by time."""
    page, dpi = drawing.page, drawing.settings["dpi"][0] or png.DEFAULT_DPI
    assert page is not None
    assert isinstance(dpi, int)
    width, height = (int(side * dpi / 72) for side in (page.width, page.height))
    fits = max(width, height) <= png.SIDE_LIMIT_PX and width * height <= png.AREA_LIMIT_PX
    return "" if fits else f"it would have {width} x {height} pixels"


def _failed(figure: Figure, exc: BaseException, entries: dict[str, Any], reporter: Reporter) -> None:
    entries[figure.name].update(status="failed", error=records.problem(exc))
    text = str(exc) if isinstance(exc, TorchLensError) else f"{type(exc).__name__}: {exc}"
    reporter.note(f"figure {figure.name!r} failed: {text}")
    if os.environ.get(TRACEBACKS) == "1":
        traceback.print_exception(exc)


def _distinct(caught: list[TorchLensWarning]) -> list[TorchLensWarning]:
    return list({str(warning): warning for warning in caught}.values())


def _set_threads(threads: int | None) -> None:
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
