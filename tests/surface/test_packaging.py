"""What is installed: every package folder, every YAML file, the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def folders(top: Path, name: str, suffix: str) -> set[str]:
    """Dotted names of a folder and all below it that hold such a file."""
    found = set()
    for path in top.rglob(f"*{suffix}"):
        parts = path.relative_to(top).parent.parts
        if "__pycache__" not in parts:
            found.add(".".join((name, *parts)))
    return found


def test_the_packages_are_the_folders():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    code = folders(ROOT / "torchlens", "torchlens", ".py")
    data = folders(ROOT / "conf", "torchlens.conf", ".yaml")
    assert set(listed) == code | data


def test_versions_agree():
    import torchlens

    assert torchlens.__version__ == PROJECT["project"]["version"]
    assert f"[{torchlens.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    # A copy, so that no build folder appears in the repository.
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("torchlens", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_has_every_module_and_yaml_file(wheel):
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {"torchlens/py.typed"}
    for path in (ROOT / "torchlens").rglob("*.py"):
        wanted.add(path.relative_to(ROOT).as_posix())
    for path in (ROOT / "conf").rglob("*"):
        if path.suffix in (".yaml", ".py"):
            wanted.add("torchlens/" + path.relative_to(ROOT).as_posix())
    page = ROOT / "torchlens" / "runner" / "page"
    wanted |= {path.relative_to(ROOT).as_posix() for path in page.iterdir()}
    assert inside == wanted
    assert sum(name.endswith(".yaml") for name in inside) > 20


def test_the_wheel_names_its_command_and_licence(wheel):
    info = {name.split(".dist-info/")[1]: name for name in wheel.namelist() if ".dist-info/" in name}
    assert b"torchlens = torchlens.runner.main:main" in wheel.read(info["entry_points.txt"])
    assert b"Apache License" in wheel.read(info["licenses/LICENSE"])


def test_the_wheel_runs_away_from_the_repository(wheel, tmp_path):
    wheel.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "torchlens.run", "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("speed", "colorblind", "resnet18"):
        assert word in done.stdout
