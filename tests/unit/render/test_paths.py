"""Which file a path means, what is refused before any work, and writing whole files only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchlens.base.errors import InvalidArgumentError
from torchlens.render.paths import free_path, plan_output


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("path", "file_format", "name", "chosen"),
    [
        ("my_model", None, "my_model.pdf", "pdf"),
        ("my_model", "png", "my_model.png", "png"),
        ("my_model.svg", None, "my_model.svg", "svg"),
        ("my_model.SVG", "svg", "my_model.SVG", "svg"),
        ("my_model.dot", None, "my_model.dot", "dot"),
        ("my_model.gv", None, "my_model.gv", "dot"),
        ("my_model.gv", "dot", "my_model.gv", "dot"),
        ("my_model.v2", None, "my_model.v2.pdf", "pdf"),
        ("my_model.v2", "svg", "my_model.v2.svg", "svg"),
        ("resnet.layer1.0", None, "resnet.layer1.0.pdf", "pdf"),
        (".hidden", None, ".hidden.pdf", "pdf"),
        ("a b é 漢.png", None, "a b é 漢.png", "png"),
        ("my_model", ".PDF", "my_model.pdf", "pdf"),
    ],
)
def test_extension_or_format_decides(path: str, file_format: str | None, name: str, chosen: str) -> None:
    assert plan_output(path, file_format) == (Path(name), chosen)
    assert plan_output(Path(path), file_format) == (Path(name), chosen)


def test_without_a_path_nothing_is_written() -> None:
    assert plan_output(None) == (None, "svg")
    assert plan_output(None, "png") == (None, "png")


@pytest.mark.parametrize("engine", [None, "embedded", "system"])
def test_both_engines_write_the_same_formats(engine: str | None) -> None:
    for name in ("pdf", "svg", "png", "dot"):
        assert plan_output(f"x.{name}", None, engine)[1] == name


def test_extension_and_format_must_agree() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'\.svg'.*'png'") as caught:
        plan_output("x.svg", "png")
    assert caught.value.code == "file_format_conflict"


@pytest.mark.parametrize(
    ("path", "file_format"),
    [("x", "bmp"), ("x.tiff", None), ("x.eps", None), (None, "gif"), ("x.html", "pdf"), ("x", "")],
)
def test_unknown_formats_are_refused_with_the_list(path: str | None, file_format: str | None) -> None:
    with pytest.raises(InvalidArgumentError, match="Allowed: pdf, svg, png, jpg, dot") as caught:
        plan_output(path, file_format)
    assert caught.value.code == "file_format_invalid"


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match="use 'png'"):
        plan_output("x", "pngg")


@pytest.mark.parametrize("path", ["missing/x.pdf", "missing/deep/x", "", "folder", "folder/", ".", "x\0.pdf", 3, ["x"]])
def test_impossible_paths_are_refused(path: str) -> None:
    Path("folder").mkdir()
    with pytest.raises(InvalidArgumentError) as caught:
        plan_output(path)
    assert caught.value.code == "output_path_invalid"


def test_a_folder_that_bears_the_final_name_is_refused() -> None:
    Path("x.pdf").mkdir()
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        plan_output("x")


def test_a_folder_without_permission_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        plan_output("x")


def test_nothing_is_created_by_planning(tmp_path: Path) -> None:
    plan_output("x.pdf")
    assert list(tmp_path.iterdir()) == []


def test_free_paths_never_collide() -> None:
    names = []
    for _ in range(3):
        path = free_path("Net-graph", "pdf")
        path.touch()
        names.append(path.name)
    assert names == ["Net-graph.pdf", "Net-graph-2.pdf", "Net-graph-3.pdf"]
