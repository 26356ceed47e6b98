"""What the command line sets, as `explain=true` tells it: precedence, null, order, folders of the user."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest


def _rows(text: str) -> dict[str, list[str]]:
    """Setting -> the words of its row."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}


def test_explain_tells_who_set_what_and_over_whom(run: Any) -> None:
    result = run("explain=true", "view=speed", "encoding=bytes", "theme=paper", "draw.color_by=flops")
    assert result.code == 0
    rows = _rows(result.out)
    assert rows["color_by"] == ["flops", "explicit", "encoding:bytes=bytes,", "view:speed=time"]
    assert rows["node_style"] == ["profiling", "view:speed"]
    assert rows["theme"] == ["paper"]
    assert result.out.startswith("[main] model=demo input=auto view=speed theme=paper")
    assert list(Path.cwd().iterdir()) == []


def test_null_beats_a_view_and_missing_does_not(run: Any) -> None:
    assert _rows(run("explain=true", "view=speed", "draw.color_by=null").out)["color_by"][:2] == ["None", "explicit"]
    assert _rows(run("explain=true", "view=speed").out)["color_by"] == ["time", "view:speed"]


def test_the_order_of_the_command_line_is_of_no_matter(run: Any) -> None:
    words = ["view=speed", "encoding=bytes", "draw.direction=topdown", "theme=dark", "explain=true"]
    orders = list(itertools.permutations(words))[::7]
    assert len({run(*order).out for order in orders}) == 1


def test_figures_replace_the_runs_choice_and_the_command_line_has_the_last_word(run: Any) -> None:
    out = run("explain=true", "figures=tour", "theme=dark", "draw.depth=2").out
    parts = {part.split("]")[0].lstrip("["): part for part in out.split("\n\n")}
    assert "theme=dark" in parts["plain"]
    assert "theme=paper" in parts["speed"]
    assert _rows(parts["depth"])["depth"] == ["2", "explicit", "figure:depth=1"]
    assert "model=rnn" in parts["rolled"]


def test_single_keys_of_files_can_be_changed(run: Any) -> None:
    out = run("explain=true", "view=speed", "view.draw.color_by=flops", "theme.page.background=ivory").out
    assert _rows(out)["color_by"] == ["flops", "view:speed", "(changed)"]
    assert "theme=torchlens (changed)" in out
    out = run("explain=true", "figures=tour", "figures.speed.draw.color_by=bytes", "~figures.dark").out
    assert "figure:speed" in out
    assert "[dark]" not in out


def test_options_given_as_mappings(run: Any) -> None:
    out = run("explain=true", "draw={color_by: time, depth: 2}", "+draw.graph_attrs.splines=ortho").out
    rows = _rows(out)
    assert rows["color_by"] == ["time", "explicit"]
    assert rows["depth"] == ["2", "explicit"]
    assert rows["graph_attrs"] == ["{'splines':", "'ortho'}", "explicit"]


def test_explaining_a_multirun_tells_of_every_job(run: Any) -> None:
    out = run("-m", "theme=glob(*)", "explain=true").out
    jobs = [line for line in out.splitlines() if line.startswith("job: ")]
    assert [job.split()[1] for job in jobs] == [
        f"theme={name}" for name in ("colorblind", "dark", "high_contrast", "paper", "torchlens")
    ]


# -- folders of the user
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "views/mine.yaml": "question: Mine?\nextends: speed\ndraw: {color_by: flops}\nneeds: [flops]\n",
        "view/other.yaml": "question: Other?\ndraw: {depth: 2}\n",
        "themes/house.yaml": "# house: our look\nextends: dark\npage: {font: Courier}\n",
        "models/small.yaml": "factory: {_target_: torch.nn.ReLU}\ninput: {shape: [1, 2], dtype: float32}\n",
        "figures/two.yaml": "a: {view: mine}\nb: {view: other, theme: house}\n",
        "config.yaml": "nothing: of ours\n",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "conf"


def test_names_of_a_users_folder(folder: Path, run: Any) -> None:
    rows = _rows(run("--config-dir", str(folder), "explain=true", "view=mine", "theme=house", "model=small").out)
    assert rows["color_by"] == ["flops", "view:mine"]
    assert rows["node_style"] == ["profiling", "view:mine"]
    assert _rows(run("view=other", "explain=true", f"-cd={folder}").out)["depth"] == ["2", "view:other"]
    out = run("--config-dir", str(folder), "figures=two", "explain=true").out
    assert "view=mine" in out
    assert "theme=house" in out


def test_the_variable_names_a_folder_too(folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLENS_CONF", str(folder))
    assert _rows(run("explain=true", "view=mine").out)["color_by"] == ["flops", "view:mine"]
    assert "    house          our look" in run("--help").out


def test_a_users_file_comes_before_ours_of_the_same_name(folder: Path, run: Any) -> None:
    (folder / "views" / "speed.yaml").write_text("question: Ours?\nextends: speed\ndraw: {depth: 3}\n")
    rows = _rows(run("--config-dir", str(folder), "explain=true", "view=speed").out)
    assert rows["depth"] == ["3", "view:speed"]
    assert rows["node_style"] == ["profiling", "view:speed"]
    rows = _rows(run("--config-dir", str(folder), "explain=true", "view=speed", "view.draw.depth=4").out)
    assert rows["depth"][0] == "4"
    assert rows["node_style"][0] == "profiling"


def test_the_folder_is_forgotten_by_the_next_run(folder: Path, run: Any) -> None:
    assert run("--config-dir", str(folder), "explain=true", "view=mine").code == 0
    assert run("explain=true", "view=mine").code == 2


def test_a_primary_configuration_of_the_user(folder: Path, run: Any) -> None:
    (folder / "lab.yaml").write_text(
        "defaults: [config, _self_]\ndraw: {direction: leftright, depth: 5}\ntheme: {page: {font: Courier}}\n"
    )
    rows = _rows(run("--config-dir", str(folder), "--config-name", "lab", "explain=true", "draw.depth=6").out)
    assert rows["direction"] == ["leftright", "figure:file"]
    assert rows["depth"] == ["6", "explicit"]
    assert rows["theme"] == ["torchlens", "(changed)"]


def test_a_stray_folder_in_the_working_directory_is_not_read(run: Any) -> None:
    (Path.cwd() / "conf" / "views").mkdir(parents=True)
    (Path.cwd() / "conf" / "views" / "stray.yaml").write_text("question: q\n")
    assert run("view=stray", "explain=true").code == 2


def test_the_composed_configuration_can_be_printed(run: Any) -> None:
    result = run("--cfg", "job", "view=speed", "draw.depth=2")
    assert result.code == 0
    assert "draw:\n  depth: 2\n" in result.out
    assert "color_by: time" in result.out
    assert "???" not in result.out
    assert "provider: main" not in result.out
