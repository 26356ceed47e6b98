"""The reading guide: its page, its figures, its Python and its commands all say the same as its set of figures."""

from __future__ import annotations

import base64
import io
import re
import shlex
import shutil
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy
import pytest
from PIL import Image

from torchlens.base.errors import TorchLensWarning
from torchlens.runner.figures import Figure
from torchlens.runner.main import main
from torchlens.runner.pages import read_set, renewed, undrawn
from torchlens.runner.timings import FrozenTimings
from torchlens.settings.options import options
from torchlens.trace_view import Trace

ROOT = Path(__file__).resolve().parents[2]
NAME = "reading_guide"
PAGE, FOLDER = Path("docs/reading.md"), Path("docs/images") / NAME
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
TIMINGS = f"{NAME}.timings.json"
_BLOCK = re.compile(r"<!-- (setup|figure): (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
_PICTURE = re.compile(rb'"data:image/png;base64,([^"]+)"')

# Shown by other sets of figures, or nothing that a picture could show.
ELSEWHERE = {"collapse", "fold_repeats", "size_by", "size_scale", "size_cap", "stack_by"}
NOT_SEEN = {"file_format", "dpi", "engine", "pdf_font", "open_viewer"}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def the_set() -> tuple[Figure, ...]:
    return _job().figures


@cache
def _job():
    return read_set(NAME)


def code(kind: str, language: str) -> Iterator[tuple[str, str]]:
    """Name and code of each block of a kind."""
    for found in _BLOCK.finditer(TEXT):
        if found[1] == kind:
            (text,) = re.findall(rf"^```{language}\n(.*?)^```", found[3], flags=re.MULTILINE | re.DOTALL)
            yield found[2], text


def assert_alike(found: bytes, kept: bytes, name: str) -> None:
    """Equal byte for byte, but for pictures of activations, where the last bit of a number may move a colour."""
    assert _PICTURE.sub(b"", found) == _PICTURE.sub(b"", kept), f"{name}: make docs draws it otherwise"
    for ours, theirs in zip(_PICTURE.findall(found), _PICTURE.findall(kept), strict=True):
        a, b = (numpy.asarray(Image.open(io.BytesIO(base64.b64decode(x))).convert("RGB"), int) for x in (ours, theirs))
        assert a.shape == b.shape, name
        assert abs(a - b).mean() < 1, name


def test_the_page_is_what_the_figures_make_it():
    assert renewed(TEXT, _job(), PAGE) == TEXT, "run make docs"


def test_the_page_shows_every_figure_once():
    shown = [name for name, _ in code("figure", "python")]
    assert sorted(shown) == sorted(figure.name for figure in the_set())


def test_every_option_is_shown_or_known_to_be_shown_elsewhere():
    assert set(undrawn(the_set())) == ELSEWHERE | NOT_SEEN
    table = TEXT.partition("## Other options")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == ELSEWHERE | NOT_SEEN
    for name in options().keys() - ELSEWHERE - NOT_SEEN:
        used = [getattr(figure.request.options, name) for figure in the_set() if name in figure.request.trail]
        assert any(value != options()[name].default for value in used), f"{name} is only shown as it is without it"


def test_the_runner_draws_the_kept_figures(tmp_path):
    shutil.copy(FOLDER / TIMINGS, tmp_path)
    assert main([f"figures={NAME}", "output=docs", f"out='{tmp_path}'"]) == 0
    assert {p.name for p in tmp_path.glob("*.svg")} == {p.name for p in FOLDER.glob("*.svg")}
    assert (tmp_path / TIMINGS).read_bytes() == (FOLDER / TIMINGS).read_bytes()
    for figure in the_set():
        (name,) = figure.files
        assert_alike((tmp_path / name).read_bytes(), (FOLDER / name).read_bytes(), name)


def test_the_python_of_the_page_draws_the_kept_figures(tmp_path, monkeypatch):
    figures = {figure.name: figure for figure in the_set()}
    plain = Trace.draw

    def draw(self, path, **given):
        """As it is, but with the times that were kept, in the figures that show times."""
        name = Path(path).stem
        if b"times frozen" in (ROOT / FOLDER / path).read_bytes():
            given["caption"] = FrozenTimings(ROOT / FOLDER, NAME, closed=True).apply(self.data, figures[name].model)
        return plain(self, tmp_path / path, **given)

    monkeypatch.setattr(Trace, "draw", draw)
    namespace: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        for _, text in (*code("setup", "python"), *code("figure", "python")):
            exec(text, namespace)
    for name in figures:
        found, kept = (folder / f"{name}.svg" for folder in (tmp_path, FOLDER))
        assert_alike(found.read_bytes(), kept.read_bytes(), name)


def test_the_commands_of_the_page_mean_the_same_figures():
    figures = {figure.name: figure for figure in the_set()}
    for name, text in code("figure", "console"):
        program, *words = shlex.split(text)
        assert program == "torchlens"
        (found,) = read_set("one", words).figures
        assert _meaning(found) == _meaning(figures[name]), name


def _meaning(figure: Figure) -> list[object]:
    request = figure.request
    hooks = {name: str(value) for name, value in _values(figure).items()}
    notes = [(str(note.select), note.data, note.image) for note in figure.notes]
    return [figure.model.key, request.theme.name, request.view and request.view.name, hooks, notes]


def _values(figure: Figure) -> dict[str, object]:
    return {name: getattr(figure.request.options, name) for name in options()}
