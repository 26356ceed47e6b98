"""The command as a person types it, in a process of its own: what it imports, where it writes, how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import torchlens

ROOT = Path(torchlens.__file__).parents[1]
# What draws. Explaining does without it, which is half of what it costs.
DRAWING = (
    "torchlens.drawings",
    "torchlens.scene",
    "torchlens.plan",
    "torchlens.render.svg",
    "torchlens.render.layouts",
)
HEAVY = ("torch", "hydra", "omegaconf", "graphviz", "PIL", "reportlab", "rich", "transformers")


def _python(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    import os

    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def _imported(argv: list[str], names: tuple[str, ...], cwd: Path) -> list[str]:
    code = (
        "import sys, contextlib, io\nfrom torchlens.runner.main import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()):\n    assert main({argv!r}) == 0\n"
        f"print(*[name for name in {names!r} if name in sys.modules])"
    )
    done = _python("-c", code, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_help_and_version_import_nothing_heavy(tmp_path: Path) -> None:
    assert _imported(["--help"], HEAVY, tmp_path) == []
    assert _imported(["--version"], HEAVY, tmp_path) == []


def test_explain_and_refusals_do_without_torch(tmp_path: Path) -> None:
    words = ["explain=true", "figures=tour", "draw.color_by=null"]
    assert _imported(words, ("torch", "rich", "transformers", "torchvision", *DRAWING), tmp_path) == []


def test_completion_knows_the_names_of_a_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine" / "views").mkdir(parents=True)
    (tmp_path / "mine" / "views" / "mine.yaml").write_text("question: q\nextends: speed\n")
    for folder, names in (("mine", ["view=memory", "view=mine"]), ("nowhere", ["view=memory"])):
        monkeypatch.setenv("COMP_LINE", line := f"torchlens --config-dir {folder} view=m")
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        done = _python("-m", "torchlens.run", "-sc", "query=bash", cwd=tmp_path)
        assert done.stdout.split() == names, done.stderr


def test_the_default_run_writes_into_a_dated_folder(tmp_path: Path) -> None:
    done = _python("-m", "torchlens.run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    paths = done.stdout.splitlines()
    assert [Path(path).name for path in paths] == ["main.svg", "main.png"]
    for path in paths:
        assert (tmp_path / path).is_file()
        assert Path(path).parts[0] == "outputs"
    (manifest,) = tmp_path.glob("outputs/*/*/manifest.json")
    assert manifest.parent == (tmp_path / paths[0]).parent
    assert done.stderr.splitlines() == ["[1/2] recording demo", "[2/2] drawing main"]


def test_a_refusal_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = _python("-m", "torchlens.run", "view=speeed", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "perhaps you meant 'speed'" in done.stderr


def test_what_hydra_answers_itself(tmp_path: Path) -> None:
    done = _python("-m", "torchlens.run", "--info", "searchpath", "view=speed", cwd=tmp_path)
    assert done.returncode == 0
    assert str(ROOT / "conf") in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_lists_groups_options_and_exit_codes(tmp_path: Path) -> None:
    from torchlens.settings import catalog
    from torchlens.settings.options import options

    done = _python("-m", "torchlens.run", "--help", cwd=tmp_path)
    assert done.returncode == 0
    for group in catalog.GROUPS:
        assert f"  {group}=\n" in done.stdout
        for name in catalog.names(group):
            assert f"\n    {name} " in done.stdout
    for name, option in options().items():
        assert name in done.stdout
        assert option.doc in done.stdout
    assert "130 interrupted" in done.stdout


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    import os

    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m torchlens.run --help | true"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""


def test_the_package_itself_is_the_same_command(tmp_path: Path) -> None:
    done = _python("-m", "torchlens", "--version", cwd=tmp_path)
    assert done.stdout == f"torchlens {torchlens.__version__}\n"
    assert done.returncode == 0
