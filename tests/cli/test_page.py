"""The page over the figures, used in a browser as a person would: with the mouse, with the keys, from a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.browser import Browser, browser
from torchlens.runner.main import main

HOSTILE = """</script><img src=x onerror="window.sprung=1"><!--'"&amp;"""
NET = f"""
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module({HOSTILE!r}.replace(".", ""), nn.Linear(8, 4))
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(next(self.children())(x))
"""
RECT = (
    "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top, r.width, r.height]"
)
FRAMES = """return [...document.querySelectorAll(".pane")].map((pane) => {
  const [f, s] = [".frame", ".stage"].map((name) => pane.querySelector(name).getBoundingClientRect());
  return [f.left - s.left, f.top - s.top, f.width, f.height];
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of a sweep in `sweep`, of a set in `set`, and of hostile labels in `<hostile>`."""
    top, before = tmp_path_factory.mktemp("pages"), Path.cwd()
    (top / "hostile.py").write_text(NET)
    os.chdir(top)
    try:
        words = ("draw.direction=topdown,leftright", "out=sweep", "formats=[svg]")
        assert main(["-m", "model=demo,mlp", "theme=paper,dark", *words]) == 0
        assert main(["figures=tour", "out=set", "formats=[svg,png]", "~figures.unrolled", "~figures.rolled"]) == 0
        target = ("model.factory._target_=hostile.Net", "trust=[hostile.*]", "input.shape=[2,8]")
        text = "draw.caption='</script><b>x</b>','<!--'"
        assert main(["-m", *target, text, "out=hostile", "formats=[svg]"]) == 0
    finally:
        os.chdir(before)
    return top


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def _count(window: Browser, selector: str) -> int:
    return int(window.read("return document.querySelectorAll(arguments[0]).length", selector))


def _text(window: Browser, selector: str) -> str:
    return str(window.read("return document.querySelector(arguments[0]).textContent", selector))


def test_a_page_asks_for_nothing_but_the_figures_beside_it(folder: Path) -> None:
    for name in ("sweep", "set", "hostile"):
        text = (folder / name / "index.html").read_text()
        assert not re.findall(r"<(?:link|iframe|object|embed)\b", text)
        assert not re.findall(r"<script[^>]*\bsrc", text)
        assert not re.findall(r"https?://", text)
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
        for figure in data["figures"]:
            assert (folder / name / figure["shown"]).is_file()
            assert not figure["shown"].startswith(("/", ".", "file:"))


def test_the_grid_has_a_row_and_a_column_for_every_value(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    assert _count(window, "main figure") == 8
    assert _text(window, "#count") == "8 of 8 figures"
    assert window.read("return document.querySelector('#columns').selectedOptions[0].text") == "theme + draw.direction"
    assert _count(window, "thead th[scope=col]") == 4
    assert _count(window, "tbody tr") == 2
    shown = "return [...document.images].every((image) => image.complete && image.naturalWidth > 0)"
    assert window.read(shown)
    window.read("const s = document.querySelector('#columns'); s.value = '[0]'; s.dispatchEvent(new Event('change'))")
    assert (_count(window, "thead th[scope=col]"), _count(window, "tbody tr")) == (2, 4)
    window.click("#filters fieldset:nth-child(2) button:nth-of-type(2)")
    assert _text(window, "#count") == "4 of 8 figures"
    assert window.read("return [...document.querySelectorAll('main img')].every((i) => i.alt.includes('theme=dark'))")
    assert window.log() == []


def test_a_search_marks_ops_and_modules_where_they_are(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    window.press("/")
    window.press(*"batchnorm")
    assert _text(window, "#hits") == "8 found in 4 figures, Enter goes on"
    assert _count(window, "figure.miss") == 4
    assert _count(window, ".mark") == 8
    # The mark lies on the node, as the file itself places it.
    svg = (folder / "sweep" / "model-demo_theme-paper_draw.direction-topdown" / "main.svg").read_text()
    group = re.search(r'<g id="batchnorm_1_3" class="node[^"]*">.*?</g>', svg, re.DOTALL)[0]
    points = [pair.split(",") for points in re.findall(r'points="([^"]+)"', group) for pair in points.split()]
    xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
    move_x, move_y = map(float, re.search(r"translate\(([\d.-]+) ([\d.-]+)\)", svg).groups())
    width, height = map(float, re.search(r'viewBox="0.00 0.00 ([\d.]+) ([\d.]+)"', svg).groups())
    box = window.read(RECT, "figure .mark")
    frame = window.read(RECT, "figure .frame")
    found = [(box[0] - frame[0]) / frame[2], (box[1] - frame[1]) / frame[3], box[2] / frame[2], box[3] / frame[3]]
    expected = [
        (min(xs) + move_x) / width, (min(ys) + move_y) / height, (max(xs) - min(xs)) / width,
        (max(ys) - min(ys)) / height,
    ]  # fmt: skip
    assert found == pytest.approx(expected, abs=0.02)
    window.read(
        "const s = document.querySelector('#search'); s.value = '@features.1'; s.dispatchEvent(new Event('input'))"
    )
    assert _count(window, "figure:first-child .mark") >= 5  # the frame and what is in it
    window.read("const s = document.querySelector('#search'); s.value = 'nowhere'; s.dispatchEvent(new Event('input'))")
    assert _text(window, "#hits") == "nothing found"
    assert window.log() == []


def test_a_figure_opens_by_key_and_zooms_moves_and_closes(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    window.read("document.querySelector('figure .show').focus()")
    window.press("Enter")
    assert window.read("return document.querySelector('#viewer').open")
    ((left, top, width, height),) = window.read(FRAMES)
    window.press("+", "+")
    assert _text(window, "#zoom") == "156 %"
    ((left_2, _, width_2, _),) = window.read(FRAMES)
    assert width_2 == pytest.approx(width * 1.5625, rel=0.01)
    window.press("ArrowRight")
    assert window.read(FRAMES)[0][0] == pytest.approx(left_2 - 80, abs=1)
    window.press("0")
    assert window.read(FRAMES)[0] == pytest.approx([left, top, width, height], abs=1)
    first = _text(window, ".pane h2")
    window.press("n")
    assert _text(window, ".pane h2") != first
    window.press("p")
    assert _text(window, ".pane h2") == first
    link = window.read("return document.querySelector('.pane h2 a').href")
    assert link.startswith("file://")
    assert link.endswith("main.svg")
    window.press("Escape")
    assert not window.read("return document.querySelector('#viewer').open")
    assert window.read("return document.activeElement.className") == "show"


def test_enter_goes_from_hit_to_hit(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    window.type("#search", "relu_")
    window.click("figure .show")
    window.press("Enter")
    assert _text(window, "#found") == "1 of 2: relu_1_4"
    window.press("Enter")
    assert _text(window, "#found") == "2 of 2: relu_2_8"
    stage, mark = window.read(RECT, ".stage"), window.read(RECT, ".mark.now")
    for axis in (0, 1):  # it is in the middle, and large enough to read
        assert mark[axis] + mark[axis + 2] / 2 == pytest.approx(stage[axis] + stage[axis + 2] / 2, abs=3)
    assert mark[2] > 150


def test_enter_in_the_search_goes_from_figure_to_figure(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    window.type("#search", "dropout")
    at = (
        "const f = document.querySelector('figure.at'); const r = f.getBoundingClientRect();"
        "return [f.dataset.index, r.top >= 0 && r.bottom <= innerHeight]"
    )
    for index in ("4", "5", "6", "7", "4"):
        window.press("Enter")
        assert window.read(at) == [index, True]


def test_two_figures_move_together(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    window.click("figure input[type=checkbox]")
    assert window.read("return document.querySelector('#compare').disabled")
    window.click("td:nth-child(4) input[type=checkbox]")
    window.click("#compare")
    before = window.read(FRAMES)
    assert len(before) == 2
    window.press("+", "+", "+")
    window.drag(".stage", 60, 40)
    after = window.read(FRAMES)
    for old, new in zip(before, after, strict=True):
        assert new[2] / old[2] == pytest.approx(1.25**3, rel=0.01)
    # The same part of both figures is in the middle of its pane.
    middles = "return [...document.querySelectorAll('.stage')].map((s) => [s.clientWidth / 2, s.clientHeight / 2])"
    at = [
        [(middle[axis] - frame[axis]) / frame[axis + 2] for axis in (0, 1)]
        for middle, frame in zip(window.read(middles), after, strict=True)
    ]
    assert at[0] == pytest.approx(at[1], abs=0.005)
    assert at[0] != pytest.approx([0.5, 0.5], abs=0.005)
    assert window.log() == []


def test_a_set_is_a_gallery_by_name(folder: Path, window: Browser) -> None:
    window.open(folder / "set" / "index.html")
    assert _count(window, "table") == 0
    names = window.read("return [...document.querySelectorAll('figcaption .name')].map((e) => e.textContent)")
    assert names == [f"figure={name}" for name in ("plain", "speed", "flops", "depth", "leftright", "dark")]
    assert _count(window, "figcaption a") == 12


def test_hostile_labels_stay_text(folder: Path, window: Browser) -> None:
    window.open(folder / "hostile" / "index.html")
    assert _count(window, "main figure") == 2
    assert window.read("return window.sprung") is None
    window.type("#search", "onerror=")
    assert "found in 2 figures" in _text(window, "#hits")
    window.click("figure .show")
    window.press("Enter")
    assert _text(window, "#found") == "1 of 1: linear_1_1"
    assert _count(window, "img") == 3
    assert _count(window, "body b") == 0
    assert "onerror=" in window.read("return JSON.parse(document.querySelector('#data').textContent).texts.join()")
    assert window.read("return [...document.images].every((image) => image.naturalWidth > 0)")
    assert window.read("return window.sprung") is None
    assert window.log() == []


def test_dark_and_light(folder: Path, window: Browser, tmp_path: Path) -> None:
    back = "return getComputedStyle(document.body).backgroundColor"
    window.open(folder / "sweep" / "index.html")
    light = window.read(back)
    window.click("#scheme")
    assert window.read(back) == light
    window.click("#scheme")
    assert _text(window, "#scheme") == "Dark"
    assert window.read(back) != light
    with browser(tmp_path, dark=True) as dark:
        dark.open(folder / "sweep" / "index.html")
        assert dark.read(back) == window.read(back)


def test_what_failed_is_on_the_page_too(tmp_path: Path, window: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", "model=mlp", "input.shape=[2,8],[2,5]", "out=o", "formats=[svg]"]) == 1
    window.open(tmp_path / "o" / "index.html")
    assert _text(window, "figcaption .status") == "failed"
    assert "[model_run_failed]" in _text(window, "figure .none")


@pytest.mark.parametrize("words", [("figures=one",), ("-m", "theme=paper")])
def test_one_figure_needs_no_page(words: tuple[str, ...], run: Any) -> None:
    assert run(*words, "model=mlp", "out=o", "formats=[svg]").code == 0
    assert not Path("o/index.html").exists()


def test_the_heads_of_rows_and_columns_stay_in_sight(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    assert window.read("return document.activeElement.id") == "figures"
    window.read("const s = document.querySelector('#size'); s.value = 640; s.dispatchEvent(new Event('input'))")
    before = window.read(RECT, "thead th[scope=col]")
    window.read("const m = document.querySelector('main'); m.scrollTop = 300; m.scrollLeft = 0")
    after, main = window.read(RECT, "thead th[scope=col]"), window.read(RECT, "main")
    assert window.read("return document.querySelector('main').scrollTop") == 300
    assert main[1] <= after[1] <= before[1]
    window.read("document.querySelector('main').scrollLeft = 200")
    assert window.read(RECT, "tbody th")[0] >= main[0]
    assert window.read("return document.documentElement.scrollHeight <= innerHeight")


def test_a_figure_fills_its_frame(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    ratios = window.read(
        "const frames = [...document.querySelectorAll('figure .frame')];"
        # Pictures out of sight are loaded when somebody comes near.
        "const imgs = frames.map((frame) => frame.querySelector('img'));"
        "const loaded = imgs.map((i) => { i.loading = 'eager'; return i.decode(); });"
        "return Promise.all(loaded).then(() => frames.map((frame) => {"
        "const r = frame.getBoundingClientRect(), i = frame.querySelector('img');"
        "return [r.width / r.height, i.naturalWidth / i.naturalHeight]; }))"
    )
    assert ratios
    for shown, natural in ratios:
        assert shown == pytest.approx(natural, rel=0.005)


def test_as_many_columns_as_a_window_holds(folder: Path, window: Browser) -> None:
    window.open(folder / "sweep" / "index.html")
    assert window.read(
        "return document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth"
    )
