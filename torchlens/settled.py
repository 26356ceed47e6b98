"""What a drawing will be, settled before a model runs: keywords, path, format, engine and font, and who set what.

Imports nothing that draws, so that a command line can refuse or explain at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from torchlens.base.text import truncate
from torchlens.render.engine import require_engine
from torchlens.render.fonts import load_fonts
from torchlens.render.paths import INLINE_FORMAT, plan_output
from torchlens.settings.compose import DrawRequest, Layer, resolve
from torchlens.settings.evidence import check_bound
from torchlens.settings.options import DrawOptions

AnyPath = str | PathLike[str]
# Characters of a value in a table of settings: a list of rules may be long.
VALUE_WIDTH = 100


def prepare(path: AnyPath | None, given: Mapping[str, object], *, layers: Sequence[Layer] = ()) -> DrawRequest:
    """Refuse before a model runs what can be refused without a trace: keywords, view, path, format, engine, font.

    Raises: TypeError for an unknown keyword; the code of a wrong value; that of `evidence.check_bound`;
    InvalidArgumentError[file_format_invalid, file_format_conflict, output_path_invalid, pdf_font_invalid];
    EngineError[render_engine_unavailable].
    """
    request = resolve(None, given, layers=layers)
    if request.view is not None:
        check_bound(request.view.name, request.view.needs)
    check_output(path, request.options)
    return request


def check_output(path: AnyPath | None, options: DrawOptions) -> tuple[Path | None, str]:
    """The file to write, None without a path, and its format. Raises as `prepare`, from the path on."""
    target, file_format = plan_output(path, options.file_format, options.engine)
    require_engine(options.engine, file_format if options.fit_width is None else INLINE_FORMAT)
    if options.pdf_font is not None and file_format == "pdf":
        load_fonts(options.pdf_font)
    return target, file_format


def settings_text(request: DrawRequest) -> str:
    """A table of the options that a layer set: value, layer, and what that layer overruled."""
    rows = [("setting", "value", "set by", "over")]
    rows += [("theme", request.theme.name, "", ""), ("view", request.view.name if request.view else "none", "", "")]
    for name, steps in request.trail.items():
        *overruled, (layer, value) = steps
        over = ", ".join(f"{label}={truncate(str(old), VALUE_WIDTH)}" for label, old in reversed(overruled))
        rows.append((name, truncate(str(value), VALUE_WIDTH), layer, over))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join("  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows)
