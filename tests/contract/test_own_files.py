"""A view and a theme of one's own are one YAML file each: the ones that CONTRIBUTING.md prints, put where it says.

The files are cut out of the page, so that what it says is what is tested; and it has to name every key and word that a
file may hold.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import torchlens
from tests import dot_reading
from torchlens.base.errors import ConfigError, InvalidArgumentError
from torchlens.drawings import Drawing
from torchlens.examples.mlp import Mlp
from torchlens.runner.main import main
from torchlens.settings import catalog, evidence, resolvers, theme, view
from torchlens.settings.theme import load_theme
from torchlens.settings.view import view_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A view or a theme in one file")[2].partition("\n## ")[0]
# Name of the file, as its first line says -> its text.
FILES: dict[str, str] = dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", SECTION, flags=re.DOTALL))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing but the two files of the page in the folder `mine`, and a figure that names them."""
    files = {
        **FILES,
        "mine/figures/own.yaml": "a: {view: wide, theme: sepia}\nb: {view: wide, theme: {extends: sepia}}\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(catalog.VARIABLE, raising=False)
    return tmp_path


def api(**given: Any) -> Drawing:
    """What Python draws of the model and the input that `model=mlp` stands for."""
    import torch

    torch.manual_seed(0)
    return torchlens.trace(Mlp(), input_shape=(2, 8)).draw(**given)


def run(out: str, *words: str) -> dict[str, str]:
    """Files of a run, by path without ending -> DOT."""
    assert main(["model=mlp", "formats=[dot]", f"out={out}", *words]) == 0
    return {str(path.relative_to(out))[:-4]: path.read_text() for path in sorted(Path(out).rglob("*.dot"))}


def test_the_page_prints_a_view_and_a_theme() -> None:
    assert list(FILES) == ["mine/views/wide.yaml", "mine/themes/sepia.yaml"]


def test_python_finds_them_by_the_variable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match="draw_view_invalid"):
        api(view="wide")
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    assert {"wide", "speed"} <= set(view_names())
    drawing = api(view="wide", theme="sepia")
    assert (drawing.view, drawing.theme) == ("wide", "sepia")
    graph, nodes = dot_reading.graph(drawing.dot), dot_reading.nodes(drawing.dot)
    assert (graph["rankdir"], graph["bgcolor"]) == ("LR", "#fbf3e4")
    assert nodes["input_1"]["color"] == "#cfe3b4"  # the fill as a ring, because the fill shows bytes
    assert nodes["relu_1_2"]["fontsize"] == "12"
    assert "encoded 4 of 4 ops" in drawing.dot
    assert "2x16" in drawing.dot
    told = str(drawing.explain())
    for line in (
        r"direction +leftright +view:wide",
        r"node_style +default +view:wide",
        r"font_size +12 +theme:sepia",
    ):
        assert re.search(line, told), told


def test_the_command_draws_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_folder = run("a", "--config-dir", "mine", "view=wide", "theme=sepia")
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    assert run("b", "view=wide", "theme=sepia") == by_folder
    drawing = api(view="wide", theme="sepia")
    assert by_folder == {"main": drawing.dot}
    manifest = json.loads(Path("a/manifest.json").read_text())
    assert "sepia" in json.dumps(manifest)


def test_a_figure_names_them(place: Path) -> None:
    drawn = run("a", "--config-dir", "mine", "figures=own")
    plain = run("b", "--config-dir", "mine", "view=wide", "theme=sepia")["main"]
    assert drawn == {"a": plain, "b": plain}


def test_a_sweep_goes_over_them_and_ours(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = run("a", "--config-dir", "mine", "-m", "view=wide,speed", "theme=sepia,dark")
    assert len(drawn) == 4
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    expected = {api(view="wide", theme=name).dot for name in ("sepia", "dark")}
    assert expected < set(drawn.values())


def test_help_lists_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config-dir", "mine", "--help"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^    wide +Which tensors are large\?$", text, flags=re.MULTILINE)
    assert re.search(r"^    sepia +brown on old paper$", text, flags=re.MULTILINE)


def test_parts_of_them_are_changed_on_the_command_line_and_in_python(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    words = ["theme.page.background=ivory", "theme.roles.input.fill=khaki", "theme.roles.frozen.fill=tan"]
    changed = run("a", "view=wide", "theme=sepia", *words, "view.draw.color_by=null")["main"]
    roles = {"input": {"fill": "khaki"}, "frozen": {"fill": "tan"}}
    own = {"extends": "sepia", "page": {"background": "ivory"}, "roles": roles}
    drawing = api(view={"extends": "wide", "draw": {"color_by": None}}, theme=own)
    assert changed == drawing.dot
    assert dot_reading.graph(changed)["bgcolor"] == "#fffff0"
    assert dot_reading.nodes(changed)["input_1"]["fillcolor"] == "#f0e68c"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "views/wide.yaml",
            "question: x?\ndrawn: {depth: 1}\n",
            ["drawn is not a known key", "perhaps you meant 'draw'"],
        ),
        ("views/wide.yaml", "draw: {depth: 1}\n", ["question is missing"]),
        ("views/wide.yaml", "question: x?\nneeds: [time]\n", ["needs does not know 'time'", "timings"]),
        ("themes/sepia.yaml", "roles: {inputs: {fill: red}}\n", ["roles.inputs is not a known key", "'input'"]),
        ("themes/sepia.yaml", "page: {background: sepia}\n", ["page.background is not a colour but 'sepia'"]),
        ("themes/sepia.yaml", "extends: sepia\n", ["leads back to 'sepia' in a circle"]),
    ],
)
def test_a_slip_in_them_is_refused_alike_by_both(
    name: str,
    text: str,
    words: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = place / "mine" / name
    path.write_text(text)
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    with pytest.raises(ConfigError) as caught:
        api(view="wide", theme="sepia")
    assert main(["model=mlp", "view=wide", "theme=sepia", "out=a"]) == 2
    told = capsys.readouterr().err
    for message in (str(caught.value), told):
        assert str(path) in message
        assert all(word in message for word in words), message
    assert not Path("a").exists()


def test_in_the_packaged_folder_they_need_nothing_else(place: Path) -> None:
    """A copy of the package with the two files among its own, and no folder named anywhere."""
    shutil.copytree(ROOT / "torchlens", place / "torchlens", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "conf", place / "conf")
    for name in FILES:
        shutil.copy(place / name, place / "conf" / Path(name).relative_to("mine"))
    shutil.rmtree(place / "mine")
    done = subprocess.run(
        [sys.executable, "-m", "torchlens.run", "model=mlp", "view=wide", "theme=sepia", "formats=[dot]", "out=a"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert dot_reading.graph((place / "a" / "main.dot").read_text())["bgcolor"] == "#fbf3e4"


def test_a_ramp_that_the_file_does_not_name_is_added_with_a_plus(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["theme=dark", "theme.ramps.sequential=ylorbr", "explain=true"]) == 2
    assert "write +theme.ramps.sequential=..." in capsys.readouterr().err
    changed = run("a", "theme=dark", "+theme.ramps.sequential=ylorbr", "draw.color_by=bytes")["main"]
    drawing = api(theme={"extends": "dark", "ramps": {"sequential": "ylorbr"}}, color_by="bytes")
    assert changed == drawing.dot != api(theme="dark", color_by="bytes").dot


def test_a_file_with_the_name_of_ours_extends_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mine" / "themes" / "paper.yaml").write_text("extends: paper\npage: {font: Times}\n")
    monkeypatch.setenv(catalog.VARIABLE, "mine")
    assert load_theme("paper").page.font == "Times"
    assert load_theme("sepia").page.font == "Times"
    assert load_theme("sepia").page.cluster_margin == 12


# -- the page
def test_the_page_names_every_key_and_word() -> None:
    named = set(re.findall(r"`([A-Za-z_]+)`", SECTION)) | set(re.findall(r"resolve: (\w+)", SECTION))
    words = {
        "keys of a view": {*view.KEYS},
        "needs": {*evidence.NEEDS},
        "caption lines": {*view.CAPTION_LINES},
        "fallbacks": {*evidence.WISHES},
        "resolvers": {*resolvers.RESOLVERS},
        "keys of a theme": {*theme.KEYS},
        "roles": {*theme.ROLES},
        "edges": {*theme.EDGES},
        "dashes": {*theme.DASHES},
        "page": {item.name for item in fields(theme.PageStyle)},
        "role": {item.name for item in fields(theme.RoleStyle)},
        "edge": {item.name for item in fields(theme.EdgeStyle)},
        "fonts": {item.name for item in fields(theme.FontSizes)},
        "ramps": {*load_theme().ramps},
    }
    assert {what: missing for what, known in words.items() if (missing := known - named)} == {}
    assert all(f"`{action}`" in SECTION or f": {action}`" in SECTION for action in view.FALLBACKS)


def test_the_comment_of_a_packaged_view_lists_every_key_and_word() -> None:
    text = (catalog.packaged() / "views" / "speed.yaml").read_text(encoding="utf-8").partition("\nquestion:")[0]
    named = set(re.findall(r"\w+", text))
    known = {*view.KEYS, *evidence.NEEDS, *evidence.WISHES, *view.CAPTION_LINES, *view.FALLBACKS, *resolvers.RESOLVERS}
    assert known - named == set()
