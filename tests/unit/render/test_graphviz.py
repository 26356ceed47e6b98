"""Running a Graphviz program: what it is fed, and every way in which it can fail."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from importlib import metadata
from pathlib import Path

import pytest

from torchlens.base.errors import EngineError, TorchLensWarning
from torchlens.render import graphviz
from torchlens.render.graphviz import EMBEDDED, SYSTEM, GraphvizEngine


def fake(tmp_path: Path, body: str) -> GraphvizEngine:
    """An engine whose program is a small Python script."""
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\nimport sys, os\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return GraphvizEngine("fake", "program", "install it", lambda: str(script))


def test_the_embedded_program_comes_with_the_wheel() -> None:
    path = graphviz.find_embedded()
    assert path is not None
    assert Path(path).is_file()
    assert os.access(path, os.X_OK)


def test_the_embedded_program_is_found_without_installed_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert graphviz.find_embedded() is not None


def test_the_embedded_program_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    monkeypatch.setattr(graphviz.sysconfig, "get_path", lambda name: str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert graphviz.find_embedded() is None
    program = tmp_path / "graphviz-pure"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert graphviz.find_embedded() == str(program)


@pytest.mark.parametrize(
    ("engine", "words"), [(EMBEDDED, "pip install graphviz-pure"), (SYSTEM, "apt install graphviz")]
)
def test_a_missing_program_is_refused_with_its_remedy(engine: GraphvizEngine, words: str) -> None:
    gone = GraphvizEngine(engine.name, engine.program, engine.hint, lambda: None)
    with pytest.raises(EngineError, match=words) as caught:
        gone.run("digraph { a }", "svg")
    assert caught.value.code == "render_engine_unavailable"


def test_the_document_goes_through_stdin_and_the_options_through_arguments(tmp_path: Path) -> None:
    engine = fake(tmp_path, "print(sys.argv[1:], sys.stdin.buffer.read().decode())")
    assert engine.run("digraph { é }", "png", dpi=110).decode().strip() == "['-Tpng', '-Gdpi=110'] digraph { é }"
    assert engine.run("x", "svg").decode().strip() == "['-Tsvg'] x"


def test_a_lone_surrogate_does_not_stop_the_writer(tmp_path: Path) -> None:
    assert fake(tmp_path, "print(sys.stdin.read())").run("a\udc80b", "svg") == b"a?b\n"


@pytest.mark.parametrize(
    "text", ["digraph {", "graph { a -> b }", "digraph { a [label=<<b>x>] }", "digraph { a [label=<a & b>] }", ""]
)
def test_a_refused_document_raises_with_the_engines_words(text: str) -> None:
    with pytest.raises(EngineError) as caught:
        EMBEDDED.run(text, "svg")
    assert caught.value.code == "render_engine_failed"
    assert ("Error" if text else "returned nothing") in str(caught.value)


def test_output_beside_an_error_line_is_not_trusted(tmp_path: Path) -> None:
    engine = fake(tmp_path, "print('<svg/>'); print('Error: bad label', file=sys.stderr)")
    with pytest.raises(EngineError, match="bad label") as caught:
        engine.run("x", "svg")
    assert caught.value.fields["returncode"] == 0


def test_a_failing_exit_code_raises_even_with_output(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="exit code 3"):
        fake(tmp_path, "print('<svg/>'); sys.exit(3)").run("x", "svg")


def test_a_program_that_cannot_start_is_a_coded_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"not a program")
    broken.chmod(0o755)
    with pytest.raises(EngineError, match="could not be started") as caught:
        GraphvizEngine("fake", "broken", "", lambda: str(broken)).run("x", "svg")
    assert caught.value.code == "render_engine_failed"


def test_the_time_limit_names_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz, "TIME_LIMIT_S", 0.2)
    with pytest.raises(EngineError, match="depth=") as caught:
        fake(tmp_path, "import time; time.sleep(30)").run("x", "svg")
    assert caught.value.code == "render_engine_timeout"
    assert 'collapse="auto"' in str(caught.value)
    assert 'layout="rank"' in str(caught.value)


def test_a_complaint_becomes_a_warning() -> None:
    with pytest.warns(TorchLensWarning, match="unknown shape foo") as caught:
        EMBEDDED.run("digraph { a [shape=foo] b [shape=foo] }", "svg")
    assert [warning.message.code for warning in caught] == ["render_engine_warning"]  # type: ignore[union-attr]


def test_the_width_of_other_alphabets_is_no_complaint() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EMBEDDED.run('digraph { a [label="漢字 é"] }', "svg")


def test_messages_are_joined_and_listed_once(tmp_path: Path) -> None:
    lines = [
        "Error: bad",
        "... x</HTML> ...",
        "in label of node a",
        "Error: bad",
        "... x</HTML> ...",
        "in label of node a",
    ]
    engine = fake(tmp_path, f"print('\\n'.join({lines!r}), file=sys.stderr); sys.exit(1)")
    with pytest.raises(EngineError) as caught:
        engine.run("x", "svg")
    assert caught.value.fields["messages"] == ("Error: bad ... x</HTML> ... in label of node a",)


@pytest.mark.skipif(SYSTEM.locate() is None, reason="Graphviz is not installed on this machine")
def test_the_system_program_draws_the_same_nodes(document: str, raw_svg: bytes) -> None:
    other = SYSTEM.run(document, "svg")
    assert other != raw_svg
    assert other.count(b'class="node') == raw_svg.count(b'class="node') == 6
    assert other.count(b'class="edge') == raw_svg.count(b'class="edge') == 5
