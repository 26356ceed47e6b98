"""What can be refused or explained without a trace: keywords, path, format, engine, font, and who set what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import torchlens
from torchlens.base.errors import EngineError, InvalidArgumentError
from torchlens.settings.compose import resolve
from torchlens.settled import check_output, prepare, settings_text


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("path", "given", "code"),
    [
        (None, {"view": "sped"}, "draw_view_invalid"),
        (None, {"theme": "drak"}, "visualization_theme_invalid"),
        ("missing/x", {}, "output_path_invalid"),
        ("x.svg", {"file_format": "png"}, "file_format_conflict"),
        ("x.gif", {}, "file_format_invalid"),
        ("x", {"pdf_font": "missing.ttf"}, "pdf_font_invalid"),
        (None, {"depth": 0}, "draw_depth_invalid"),
    ],
)
def test_prepare_refuses_what_needs_no_trace(path: str | None, given: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        prepare(path, given)
    assert caught.value.code == code


def test_prepare_refuses_unknown_keywords() -> None:
    with pytest.raises(TypeError, match="color_by"):
        prepare(None, {"colour_by": "time"})


def test_prepare_refuses_a_missing_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError) as caught:
        prepare("x.pdf", {"engine": "system"})
    assert caught.value.code == "render_engine_unavailable"
    prepare("x.dot", {"engine": "system"})


def test_prepare_accepts_what_is_fine_and_writes_nothing() -> None:
    prepare("x.pdf", {"view": "speed", "theme": "paper", "engine": "embedded"})
    prepare(None, {})
    assert list(Path().iterdir()) == []


def test_the_file_and_its_format() -> None:
    options = prepare(None, {"file_format": "png"}).options
    assert check_output("x", options) == (Path("x.png"), "png")
    assert check_output(None, options) == (None, "png")
    assert check_output("x.y", prepare(None, {}).options) == (Path("x.y.pdf"), "pdf")


def test_the_table_names_the_winner_and_whom_it_overruled() -> None:
    layers = [("encoding:bytes", {"color_by": "bytes"}), ("figure:a", {"depth": 2})]
    text = settings_text(resolve(None, {"view": "speed", "color_by": "flops"}, layers=layers))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    assert rows["setting"] == ["value", "set", "by", "over"]
    assert rows["theme"] == ["torchlens"]
    assert rows["view"] == ["speed"]
    assert rows["depth"] == ["2", "figure:a"]
    assert rows["color_by"] == ["flops", "explicit", "encoding:bytes=bytes,", "view:speed=time"]


def test_importing_it_brings_nothing_that_draws() -> None:
    code = (
        "import sys, torchlens.settled;"
        "print([n for n in sys.modules if n.startswith(('torchlens.scene', 'torchlens.plan', 'torchlens.drawings'))"
        " or n in ('torch', 'omegaconf', 'torchlens.render.svg', 'torchlens.render.dot', 'torchlens.render.layouts')])"
    )
    folder = Path(torchlens.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
