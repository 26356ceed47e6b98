"""Real jobs, run in this process: files, manifests, exit codes, and the same figure as the Python API draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import torchlens as tl
from torchlens.examples.demo import Demo
from torchlens.runner.manifest import published
from torchlens.settings import catalog

OPTIONS = {"color_by": "flops", "direction": "leftright", "show_legend": True}


def _manifest(folder: str) -> dict[str, Any]:
    return json.loads((Path(folder) / "manifest.json").read_text())


def test_a_job_writes_its_figures_and_prints_their_paths(run: Any) -> None:
    result = run("out=o", "formats=[svg,png,pdf,dot]", "model=mlp")
    assert result.code == 0
    assert result.out.split() == ["o/main.svg", "o/main.png", "o/main.pdf", "o/main.dot"]
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph"}
    for name, start in starts.items():
        assert (Path("o") / f"main.{name}").read_bytes().startswith(start)
    assert _manifest("o")["status"] == "ok"
    assert result.err.splitlines() == ["[1/2] recording mlp", "[2/2] drawing main"]


def test_the_runner_and_the_api_draw_the_same_figure(run: Any) -> None:
    words = [f"draw.{name}={value}" for name, value in OPTIONS.items()]
    assert run("out=o", "formats=[dot]", "theme=paper", *words).code == 0
    model = Demo().train()
    trace = tl.trace(model, input_shape=(1, 3, 8, 8), save="none")
    assert (Path("o") / "main.dot").read_text() == trace.draw(theme="paper", **OPTIONS).dot


def test_a_changed_theme_reaches_the_page(run: Any) -> None:
    run("out=o", "formats=[dot]", "model=mlp", "theme.page.background=ivory")
    trace = tl.trace(torch.nn.Linear(2, 2), torch.rand(1, 2))
    assert 'bgcolor="#fffff0"' in (Path("o") / "main.dot").read_text()
    assert 'bgcolor="#fffff0"' in trace.draw(theme={"page": {"background": "ivory"}}).dot


def test_the_tour_is_drawn_from_two_recordings(run: Any) -> None:
    result = run("out=o", "figures=tour", "formats=[svg]")
    assert result.code == 0
    assert len(result.out.split()) >= 5
    assert [line for line in result.err.splitlines() if "recording" in line] == [
        "[1/10] recording demo", "[8/10] recording rnn",
    ]  # fmt: skip


def test_a_failing_figure_is_exit_code_1_and_the_others_are_written(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "figures"
    folder.mkdir(parents=True)
    (folder / "mixed.yaml").write_text("bad: {model: mlp, input: {shape: [2, 5]}}\ngood: {model: mlp}\n")
    result = run("--config-dir", str(folder.parent), "figures=mixed", "out=o", "formats=[dot]")
    assert result.code == 1
    assert result.out.split() == ["o/good.dot", "o/index.html"]
    assert "figure 'bad' failed: [model_run_failed]" in result.err
    assert _manifest("o")["figures"]["bad"]["status"] == "failed"
    assert f"--config-dir {folder.parent}" in _manifest("o")["command"]


def test_a_misspelt_class_fails_the_job(run: Any) -> None:
    result = run("model.factory._target_=torch.nn.Linearr", "out=o", "formats=[dot]")
    assert result.code == 1
    assert "nothing is called 'torch.nn.Linearr'. Fix: perhaps you meant 'torch.nn.Linear'" in result.err


def test_a_model_of_the_working_directory(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    Path("ownnet.py").write_text("from torch import nn\nclass Net(nn.ReLU):\n    pass\n")
    words = ("model.factory._target_=ownnet.Net", "input.shape=[2]", "+input.dtype=float32", "out=o", "formats=[dot]")
    assert run(*words[:1], *words[1:]).code == 2
    assert run(*(word.lstrip("+") for word in words), "trust=[ownnet.*]").code == 0


def test_a_multirun_has_a_folder_per_job(run: Any) -> None:
    result = run("-m", "model=rnn,mlp", "theme=paper,dark", "out=o", "formats=[dot]")
    assert result.code == 0
    names = {f"model-{model}_theme-{theme}" for model in ("rnn", "mlp") for theme in ("paper", "dark")}
    assert {path.name for path in Path("o").iterdir() if path.is_dir()} == names
    for name in names:
        assert _manifest(f"o/{name}")["status"] == "ok"
        assert _manifest(f"o/{name}")["figures"]["main"]["chosen"]["model"] in name


def test_a_failing_job_of_a_multirun_is_exit_code_1(run: Any) -> None:
    result = run("-m", "model=mlp", "input.shape=[2,8],[2,5]", "out=o", "formats=[dot]")
    assert result.code == 1
    assert sorted(_manifest(str(path.parent))["status"] for path in Path("o").glob("*/manifest.json")) == [
        "failed",
        "ok",
    ]


def test_a_view_that_no_trace_can_serve_fails_its_job_only(run: Any) -> None:
    result = run("-m", "model=mlp", "view=interventions,overview", "out=o", "formats=[dot]")
    assert result.code == 1
    assert "o/model-mlp_view-overview/main.dot" in result.out.split()
    (line,) = [line for line in result.err.splitlines() if line.startswith("failed ")]
    assert "model-mlp_view-interventions/main: [surgery_evidence_missing] view='interventions' is about edits" in line
    assert result.err.count("recording mlp") == 1  # no model runs for a figure that cannot be
    assert _manifest("o/model-mlp_view-interventions")["status"] == "failed"


def test_documentation_figures_have_fixed_paths_and_facts(run: Any) -> None:
    assert run("output=docs", "figures=one", "model=mlp", "formats=[svg]").code == 0
    folder = Path("docs/images/one")
    assert sorted(path.name for path in folder.iterdir()) == ["main.svg", "manifest.json"]
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run("output=docs", "figures=one", "model=mlp", "formats=[svg]").code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    assert str(Path.cwd()) not in first["manifest.json"].decode()


def test_a_manifest_of_the_documentation_names_no_folder(run: Any, tmp_path: Path) -> None:
    here, outside = Path.cwd(), tmp_path / "jane doe"
    figures = outside / "conf" / "figures"
    figures.mkdir(parents=True)
    entry = f"{{model: mlp, input: {{kind: tensor, path: '{outside}/missing.pt'}}}}"
    (figures / "mixed.yaml").write_text("good: {}\n" + f"bad: {entry}\n")
    for folder in (here, outside):
        torch.save(torch.zeros(2, 8), folder / "x.pt")
    torch.save(torch.zeros(2, 5), outside / "missing.pt")
    words = ("output=docs", "model=mlp", "input=tensor", "formats=[svg]")
    for folder, out, source in ((here, here / "img", "x.pt"), (outside, outside / "img", "x.pt")):
        command = ("--config-dir", str(figures.parent), "figures=mixed", f"out='{out}'", f"input.path='{folder}/x.pt'")
        run(*command, *words)
        manifest = _manifest(str(out))
        assert manifest["figures"]["good"]["status"] == "ok"
        assert manifest["figures"]["bad"]["status"] == "failed"
        assert manifest["figures"]["good"]["model"]["input"] == {"path": source}
        assert manifest["figures"]["bad"]["model"]["input"] == {"path": "missing.pt"}
        assert "--config-dir conf figures=mixed " in manifest["command"]
        text = (out / "manifest.json").read_text()
        assert not any(word in text for word in (str(tmp_path), "jane", "/tmp", str(Path.home())))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("input.path={here}/data/x.pt", "input.path=data/x.pt"),
        ("input.path=/home/jane/x.pt", "input.path=x.pt"),
        ("out='/home/jane doe/x'", "out='x'"),
        ("path='{here}/x y.pt' is none: see /home/jane/log.txt: no", "path='x y.pt' is none: see log.txt: no"),
        ("dirs=[/home/jane/a,{here}/b]", "dirs=[a,b]"),
        ("1/2 of https://example.org/a and ../x.pt, and/or / alone", None),
    ],
)
def test_paths_in_a_published_text(
    text: str, left: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text.replace("{here}", str(tmp_path))
    assert published({"a": [text]}) == {"a": [text if left is None else left]}


def test_an_entry_that_is_null_takes_everything_from_the_run(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "figures"
    folder.mkdir(parents=True)
    (folder / "three.yaml").write_text("a: {}\nb: {model: rnn}\nc: null\n")
    words = ("--config-dir", str(folder.parent), "figures=three", "model=mlp", "out=o", "formats=[dot]")
    assert run(*words).code == 0
    assert (Path("o") / "c.dot").read_text() == (Path("o") / "a.dot").read_text()
    assert run(*words, "figures.b=null").code == 0
    assert (Path("o") / "b.dot").read_text() == (Path("o") / "a.dot").read_text()
    assert run(*words, "figures.c.model=rnn", "figures.b.model=rnn").code == 0
    assert (Path("o") / "c.dot").read_text() == (Path("o") / "b.dot").read_text()


def test_an_interrupted_run_is_exit_code_130(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("torchlens.runner.build.trace", interrupted)
    result = run("out=o", "formats=[dot]")
    assert result.code == 130
    assert result.err.splitlines()[-1] == "interrupted"
    assert _manifest("o")["status"] == "interrupted"


def test_what_was_done_before_an_interrupt_is_listed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlens.runner import execute

    real = execute.draw_trace
    drawn: list[object] = []

    def draw_trace(*arguments: Any, **keywords: Any) -> Any:
        drawn.append(arguments)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **keywords)

    monkeypatch.setattr(execute, "draw_trace", draw_trace)
    result = run("figures=tour", "out=o", "formats=[dot]")
    assert result.code == 130
    lines = result.err.splitlines()
    assert lines[-1] == "interrupted"
    assert lines[-2] == "8 figures: 2 ok, 6 not drawn"
    assert [line.split() for line in lines[-10:-7]] == [
        ["ok", "plain.dot"],
        ["ok", "speed.dot"],
        ["not", "drawn", "flops"],
    ]


@pytest.mark.parametrize("words", [("figures=one",), ("-m", "theme=paper,dark")])
def test_a_disk_that_takes_no_more_is_one_clear_line(words: tuple[str, ...], run: Any) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
    try:
        result = run("out=o", "formats=[svg]", *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "cannot be written: File too large" in result.err


def test_figures_of_a_picture_a_file_and_keywords(run: Any) -> None:
    from PIL import Image

    Image.new("RGB", (40, 20), (255, 0, 0)).save("p.png")
    torch.save(torch.zeros(1, 3, 8, 8), "x.pt")
    cases = {
        "a": ("input=image",),
        "b": ("input.path=p.png",),
        "c": ("input=tensor", "input.path=x.pt"),
        "d": ("input=kwargs", "input.kwargs={x: {shape: [1, 3, 8, 8]}}"),
        "e": ("input=kwargs", "+input.kwargs.x.path=x.pt"),
    }
    origins = {}
    for name, words in cases.items():
        result = run(*words, f"out={name}", "formats=[svg]")
        assert result.code == 0, result.err
        entry = _manifest(name)["figures"]["main"]
        origins[name] = entry["provenance"]["origin"]
        picture = "<image" in (Path(name) / "main.svg").read_text()
        assert picture == (name in "ab")
    assert origins == {"a": "declared", "b": "user", "c": "user", "d": "declared", "e": "user"}
    assert "a generated picture, resized to 8 x 8" in (Path("a") / "main.svg").read_text()


def test_a_text_needs_a_tokenizer(run: Any) -> None:
    result = run("input.text=hello", "out=o", "formats=[dot]")
    assert result.code == 1
    assert "[tokenizer_unavailable] model 'demo' has no tokenizer" in result.err


def test_weights_of_a_checkpoint(run: Any) -> None:
    from torchlens.examples.mlp import Mlp

    torch.save(Mlp(8, 16, 4).state_dict(), "w.pt")
    assert run("model=mlp", "model.checkpoint=w.pt", "out=o", "formats=[dot]").code == 0
    assert _manifest("o")["figures"]["main"]["model"]["checkpoint"] == "w.pt"
    result = run("model=demo", "model.checkpoint=w.pt", "out=o", "formats=[dot]")
    assert result.code == 1
    assert "[model_checkpoint_invalid]" in result.err


def test_the_manifest_repeats_the_run(run: Any) -> None:
    import shlex

    assert run("model=mlp", "theme=dark", "draw.depth=2", "formats=[svg]", "out=o").code == 0
    manifest = _manifest("o")
    first = (Path("o") / "main.svg").read_bytes()
    assert manifest["overrides"] == ["model=mlp", "theme=dark", "draw.depth=2", "formats=[svg]", "out=o"]
    assert manifest["config"]["draw"] == {"depth": 2}
    assert manifest["figures"]["main"]["model"]["seed"] == 0
    assert manifest["figures"]["main"]["provenance"]["origin"] == "declared"
    (Path("o") / "main.svg").unlink()
    assert run(*shlex.split(manifest["command"])[3:]).code == 0
    assert (Path("o") / "main.svg").read_bytes() == first


def test_a_launcher_without_multirun_is_noted(run: Any) -> None:
    result = run("hydra/launcher=basic", "out=o", "formats=[dot]", "model=mlp")
    assert result.code == 0
    assert "hydra/launcher has no effect without --multirun" in result.err


@pytest.mark.models
@pytest.mark.parametrize("name", catalog.names("model"))
def test_every_shipped_model_can_be_drawn(name: str, run: Any) -> None:
    assert run(f"model={name}", "view=speed", "theme=paper", "out=o", "formats=[dot]").code == 0
    assert _manifest("o")["figures"]["main"]["status"] == "ok"
