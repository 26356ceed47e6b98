"""From DOT text to bytes: formats, engines, checks before any work, and the same bytes everywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchlens.base.errors import EngineError, InvalidArgumentError
from torchlens.render import engine as engines
from torchlens.render.engine import check_format, formats, get_engine, make_artifact, require_engine
from torchlens.render.graphviz import SYSTEM, GraphvizEngine

ENGINES = ["embedded", *(["system"] if SYSTEM.locate() else [])]
SIGNATURES = {
    "svg": b"<?xml",
    "jpg": b"\xff\xd8\xff",
    "png": b"\x89PNG\r\n\x1a\n",
    "pdf": b"%PDF-1.",
    "dot": b"\ndigraph",
}
FOLDER = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("file_format", sorted(SIGNATURES))
def test_every_engine_writes_every_format(document: str, name: str, file_format: str) -> None:
    data = make_artifact(document, file_format, engine=name).data
    assert data.startswith(SIGNATURES[file_format])
    assert make_artifact(document, file_format, engine=name).data == data


def test_dot_is_the_document_itself_and_needs_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.ENGINES, "embedded", GraphvizEngine("embedded", "x", "", lambda: None))
    monkeypatch.setattr(engines, "EMBEDDED", engines.ENGINES["embedded"])
    assert make_artifact("digraph { é }", "dot").data == "digraph { é }".encode()
    require_engine(None, "dot")
    with pytest.raises(EngineError):
        require_engine(None, "svg")


@pytest.mark.parametrize("file_format", ["svg", "png", "pdf", "jpg"])
def test_nothing_depends_on_locale_time_zone_or_folder(document: str, tmp_path: Path, file_format: str) -> None:
    script = tmp_path / "draw.py"
    script.write_text(
        "import hashlib, sys\n"
        "from torchlens.render.engine import make_artifact\n"
        f"data = make_artifact(open(sys.argv[1], encoding='utf-8').read(), {file_format!r}).data\n"
        "print(hashlib.sha256(data).hexdigest())\n"
    )
    source = tmp_path / "figure.dot"
    source.write_text(document, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "LC_ALL": "C", "TZ": "Asia/Kolkata", "PYTHONHASHSEED": "7"}
    command = [sys.executable, str(script), str(source)]
    other = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == hashlib.sha256(make_artifact(document, file_format).data).hexdigest()


def test_formats_and_their_names() -> None:
    assert formats() == formats("system") == ("pdf", "svg", "png", "jpg", "dot")
    assert check_format(".PNG") == "png"
    assert check_format("jpeg") == "jpg"


def test_an_unknown_format_is_refused_before_the_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphvizEngine, "run", lambda *args, **kwargs: pytest.fail("the engine ran"))
    with pytest.raises(InvalidArgumentError, match="Allowed: pdf, svg, png, jpg, dot") as caught:
        make_artifact("digraph {}", "gif")
    assert caught.value.code == "file_format_invalid"


def test_an_unfit_font_is_refused_before_the_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphvizEngine, "run", lambda *args, **kwargs: pytest.fail("the engine ran"))
    with pytest.raises(InvalidArgumentError) as caught:
        make_artifact("digraph {}", "pdf", pdf_font="missing.ttf")
    assert caught.value.code == "pdf_font_invalid"


def test_engines_by_name() -> None:
    assert get_engine().name == get_engine("embedded").name == "embedded"
    assert get_engine("system").name == "system"
    with pytest.raises(InvalidArgumentError, match="Allowed: embedded, system") as caught:
        get_engine("neato")
    assert caught.value.code == "draw_engine_invalid"


def test_a_missing_system_engine_is_refused_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="brew install graphviz") as caught:
        require_engine("system")
    assert caught.value.code == "render_engine_unavailable"
    require_engine("system", "dot")


def test_title_reaches_svg_and_pdf(document: str) -> None:
    assert b"<title>Given</title>" in make_artifact(document, "svg", title="Given").data
    assert b"Given" in make_artifact(document, "pdf", title="Given").data


@pytest.mark.parametrize("file_format", ["svg", "pdf"])
def test_dpi_changes_only_rasters(document: str, file_format: str) -> None:
    assert make_artifact(document, file_format, dpi=300).data == make_artifact(document, file_format).data


def test_page_facts(document: str) -> None:
    assert make_artifact(document, "dot").page is None
    page = make_artifact(document, "svg").page
    assert page == make_artifact(document, "pdf").page
    assert page is not None
    assert page.unit == "pt"


def test_importing_the_package_of_writers_loads_nothing_heavy() -> None:
    code = (
        "import sys, torchlens.render.engine, torchlens.render.paths;"
        "print([n for n in ('torch', 'reportlab', 'PIL', 'graphviz', 'numpy', 'omegaconf') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
