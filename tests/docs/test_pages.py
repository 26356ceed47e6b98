"""Pages of figures: what a page shows, its Python, its commands and the kept files all say the same as its set."""

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
from typing import Any

import numpy
import pytest
from PIL import Image

from torchlens.base.errors import TorchLensWarning
from torchlens.render.rendered import Rendered
from torchlens.runner.figures import Figure
from torchlens.runner.main import main
from torchlens.runner.pages import figure_set, read_set, renewed, showing, shown, undrawn
from torchlens.runner.timings import FrozenTimings
from torchlens.settings import catalog
from torchlens.settings.options import options
from torchlens.trace_view import Trace

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torchvision.", "timm.", "transformers.")
GUIDE = "reading_guide"
# Nothing that a picture could show.
NOT_SEEN = {"file_format", "dpi", "engine", "pdf_font", "open_viewer"}
_BLOCK = re.compile(r"<!-- (setup|figures?): ([\w ]+) -->\n(.*?)<!-- end -->", re.DOTALL)
_SOURCE = re.compile(r"<!-- source: .*?<!-- end -->", re.DOTALL)
_PICTURE = re.compile(rb'"data:image/png;base64,([^"]+)"')


def pages() -> dict[str, Path]:
    """Set of figures -> its page, relative to the repository."""
    found = {}
    for path in sorted((ROOT / "docs").glob("*.md")):
        name = figure_set(path.read_text(encoding="utf-8"))
        if name is not None:
            assert name not in found, f"{path} and {found[name]} show one set"
            found[name] = path.relative_to(ROOT)
    return found


PAGES = pages()


def needs_packages(name: str) -> bool:
    """Whether a figure of the set is of a model from another package. Read from the files: nothing is imported."""
    entries = catalog.load("figures", name).data.values()
    models = {entry.get("model") for entry in entries if entry} - {None}
    texts = [(ROOT / "conf" / "models" / f"{model}.yaml").read_text(encoding="utf-8") for model in models]
    return any(f"_target_: {package}" in text for text in texts for package in PACKAGES)


SETS = [pytest.param(name, marks=[pytest.mark.models] if needs_packages(name) else []) for name in PAGES]
every_page = pytest.mark.parametrize("name", SETS)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@cache
def job(name: str) -> Any:
    return read_set(name)


def figures_of(name: str) -> dict[str, Figure]:
    return {figure.name: figure for figure in job(name).figures}


def text_of(name: str) -> str:
    return (ROOT / PAGES[name]).read_text(encoding="utf-8")


def kept(name: str) -> Path:
    return ROOT / "docs" / "images" / name


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Name and command of each figure of a page."""
    for kind, names, body in _BLOCK.findall(text):
        if kind != "setup":
            (block,) = code(body, "console")
            yield from zip(names.split(), block.splitlines(), strict=True)


def assert_alike(found: bytes, other: bytes, name: str) -> None:
    """Equal byte for byte, but for pictures of activations, where the last bit of a number may move a colour."""
    assert _PICTURE.sub(b"", found) == _PICTURE.sub(b"", other), f"{name}: make docs draws it otherwise"
    for ours, theirs in zip(_PICTURE.findall(found), _PICTURE.findall(other), strict=True):
        a, b = (numpy.asarray(Image.open(io.BytesIO(base64.b64decode(x))).convert("RGB"), int) for x in (ours, theirs))
        assert a.shape == b.shape, name
        assert abs(a - b).mean() < 1, name


def test_there_are_pages() -> None:
    assert GUIDE in PAGES


@every_page
def test_a_page_is_what_its_figures_make_it(name: str) -> None:
    text = text_of(name)
    assert renewed(text, job(name), PAGES[name]) == text, "run make docs"


@every_page
def test_a_page_shows_every_figure_once(name: str) -> None:
    names = [figure for block in shown(text_of(name)) for figure in block]
    assert sorted(names) == sorted(figures_of(name))
    assert {path.name for path in kept(name).glob("*.svg")} == {f for x in figures_of(name).values() for f in x.files}


@every_page
def test_the_runner_draws_the_kept_figures(name: str, tmp_path: Path) -> None:
    timings = f"{name}.timings.json"
    if (kept(name) / timings).exists():
        shutil.copy(kept(name) / timings, tmp_path)
    assert main([f"figures={name}", "output=docs", f"out='{tmp_path}'"]) == 0
    assert {p.name for p in tmp_path.glob("*.svg")} == {p.name for p in kept(name).glob("*.svg")}
    if (kept(name) / timings).exists():
        assert (tmp_path / timings).read_bytes() == (kept(name) / timings).read_bytes()
    for figure in figures_of(name).values():
        for file in figure.files:
            assert_alike((tmp_path / file).read_bytes(), (kept(name) / file).read_bytes(), file)


@every_page
def test_the_python_of_a_page_draws_the_kept_figures(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    figures, plain, write_plainly = figures_of(name), Trace.draw, Rendered._write

    def draw(self: Trace, path: Any = None, **given: Any) -> Any:
        """As it is, but with the times that were kept where a figure shows times."""
        figure = figures.get(Path(path).stem) if path else None
        if figure is not None and b"times frozen" in (kept(name) / path).read_bytes():
            given["caption"] = FrozenTimings(kept(name), name, closed=True).apply(self.data, figure.model)
        return plain(self, path, **given)

    def write(self: Rendered, target: Path, *options: Any) -> None:
        """In a folder apart."""
        write_plainly(self, tmp_path / target, *options)

    monkeypatch.setattr(Trace, "draw", draw)
    monkeypatch.setattr(Rendered, "_write", write)
    namespace: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        for block in code(_SOURCE.sub("", text_of(name)), "python"):
            exec(block, namespace)
    for figure in figures.values():
        for file in figure.files:
            assert_alike((tmp_path / file).read_bytes(), (kept(name) / file).read_bytes(), file)


@every_page
def test_the_commands_of_a_page_mean_the_same_figures(name: str) -> None:
    figures = figures_of(name)
    for figure, line in commands(text_of(name)):
        program, *words = shlex.split(line)
        assert program == "torchlens"
        (found,) = read_set("one", words).figures
        assert _meaning(found) == _meaning(figures[figure]), figure


def _meaning(figure: Figure) -> list[object]:
    request = figure.request
    values = {name: str(getattr(request.options, name)) for name in options()}
    notes = [(str(note.select), note.data, note.image) for note in figure.notes]
    return [figure.kind, figure.recording, request.theme.name, request.view and request.view.name, values, notes]


def test_every_option_is_shown_in_the_guide_or_on_a_page_that_it_names() -> None:
    figures = list(figures_of(GUIDE).values())
    table = text_of(GUIDE).partition("## Other options")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", table, flags=re.MULTILINE))
    assert set(rows) == set(undrawn(figures))
    for name in options().keys() - set(rows):
        assert showing(figures, name), f"{name} is only shown as it is without it"
    for name, links in rows.items():
        named = re.findall(r"\]\(([\w-]+\.md)\)", links)
        assert bool(named) == (name not in NOT_SEEN), f"no page shows {name}"
        for page in named:
            other = figure_set((ROOT / "docs" / page).read_text(encoding="utf-8"))
            assert other is not None
            assert showing(list(figures_of(other).values()), name), f"{page} does not show {name}"
