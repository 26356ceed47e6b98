"""The documents tell the truth: their examples run, their links and paths lead somewhere, no option is invented."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def command_lines() -> list[str]:
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    return [line for line in lines if line.split()[0] in ("torchlens", "python")]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_readme_has_what_it_promises():
    assert len(command_lines()) == 10
    assert len(blocks(README, "python")) == 1
    assert [line for block in blocks(README, "console") for line in block.splitlines() if line.startswith("make")]


@pytest.mark.parametrize("line", command_lines())
def test_command_lines_are_understood(line, tmp_path):
    words = shlex.split(line)[1:]
    # Settled but not run: every name, key and value is checked, and no model is built.
    extra = [] if "--help" in words or "explain=true" in words else ["explain=true"]
    done = run(["-m", "torchlens.run", *words, *extra], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


PYTHON = [
    pytest.param(text, id=f"{path.stem}-{k}")
    for path in DOCUMENTS
    if "<!-- setup: " not in path.read_text(encoding="utf-8")  # one long run each: test_pages.py
    for k, text in enumerate(blocks(path.read_text(encoding="utf-8"), "python"))
]


@pytest.mark.parametrize("text", PYTHON)
def test_python_blocks_run(text, tmp_path):
    done = run(["-c", text], tmp_path)
    assert done.returncode == 0, done.stderr
    for name in re.findall(r'(?:draw\(|path=)"([^"]+)"', text):
        assert (tmp_path / name).stat().st_size > 500


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text)
    for target in targets:
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_files_exist(path):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:torchlens|conf|docs|tests|benchmarks)/[\w./]*\w)`", text):
        assert (ROOT / name).exists(), name
    if path.name == "architecture.md":
        for name in re.findall(
            r"`((?:base|records|settings|ops|inputs|capture|analysis|proof|plan|scene|render|runner)/[\w./]*)`", text
        ):
            assert (ROOT / "torchlens" / name).exists(), name


def test_the_makefile_has_every_target_that_is_named():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        named = set(re.findall(r"`make ([a-z]+)", text)) | set(
            re.findall(r"^\s*make ([a-z]+)", text, flags=re.MULTILINE)
        )
        assert named <= targets, path.name


def test_the_pictures_are_what_make_docs_draws(tmp_path):
    recipe = re.search(r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    # The first command draws the figure of the README; the others are those of test_pages.py.
    words = shlex.split(recipe.group(1).replace("\\\n", " ").splitlines()[0])
    done = run(words[1:], tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "docs" / "images").glob("*.svg")}
    kept = {path.name: path.read_bytes() for path in (ROOT / "docs" / "images").glob("*.svg")}
    assert drawn
    assert drawn == kept, "make docs draws other pictures; look at them and keep them if they are meant"


def test_anchors_of_the_costs_page_that_code_names_exist():
    titles = re.findall(r"^## (.+)$", (ROOT / "docs" / "costs.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}
    for path in (ROOT / "torchlens").rglob("*.py"):
        for anchor in re.findall(r"docs/costs\.md#([\w-]+)", path.read_text(encoding="utf-8")):
            assert anchor in anchors, f"{path.name}: {anchor}"


BENCHMARKS = [
    path
    for path in sorted((ROOT / "benchmarks").glob("*.py"))
    if "argparse.ArgumentParser" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_start_from_anywhere(path, tmp_path):
    done = subprocess.run(
        [sys.executable, str(path), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
