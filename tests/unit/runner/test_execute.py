"""One job: recordings are shared, one failure stops nothing else, the manifest is always there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlens.runner import build, execute
from torchlens.runner.figures import Choice, Run, plan_figures
from torchlens.runner.job import Job
from torchlens.runner.spec import ModelSpec

RUN = Run(
    model=Choice("mlp"),
    input=Choice("auto"),
    view=Choice("plain"),
    theme=Choice("torchlens"),
    collapse=Choice("unset"),
    encoding=Choice("unset"),
    explicit={},
    base={},
    formats=("dot",),
)
BROKEN = {"factory": {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": 2}, "input": {"shape": [1, 5]}}
Counted = list[tuple[str, bool]]


def _job(entries: dict[str, Any], **run: Any) -> Job:
    return Job(plan_figures(replace(RUN, **run), entries), "out", ("a=b c",), (), None, False)


def _manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted: Counted = []
    real: Callable[..., Any] = build.record_trace

    def record(spec: ModelSpec, *, warm: bool = False, **measured: bool) -> Any:
        counted.append((spec.name, warm))
        return real(spec, warm=warm, **measured)

    monkeypatch.setattr(build, "record_trace", record)
    return counted


def test_figures_of_one_model_and_input_share_a_recording(tmp_path: Path, recordings: Counted) -> None:
    entries = {"a": {}, "b": {"theme": "dark"}, "c": {"model": "rnn"}, "d": {"draw": {"depth": 1}}}
    entries["e"] = {"input": {"shape": [4, 8]}}
    assert execute.execute(_job(entries), tmp_path)
    assert recordings == [("mlp", False), ("rnn", False), ("mlp", False)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.dot", "b.dot", "c.dot", "d.dot", "e.dot", "manifest.json"]


def test_times_are_taken_after_a_warm_up(tmp_path: Path, recordings: Counted) -> None:
    execute.execute(_job({"a": {}, "b": {"view": "speed"}}), tmp_path)
    execute.execute(_job({"a": {"encoding": "flops"}}), tmp_path)
    assert recordings == [("mlp", True), ("mlp", False)]


def test_what_autograd_kept_is_measured_for_the_figures_that_show_it(tmp_path: Path) -> None:
    entries = {"a": {"draw": {"show_saved_for_backward": True}}, "b": {"model": "rnn"}}
    assert execute.execute(_job(entries), tmp_path)
    assert "saved for backward: 2 tensors" in (tmp_path / "a.dot").read_text()
    assert _manifest(tmp_path)["figures"]["a"]["warnings"] == []


def test_one_failing_model_leaves_the_other_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not execute.execute(_job({"good": {}, "bad": {"model": BROKEN}, "also": {"theme": "dark"}}), tmp_path)
    figures = _manifest(tmp_path)["figures"]
    assert {name: entry["status"] for name, entry in figures.items()} == {"good": "ok", "bad": "failed", "also": "ok"}
    assert figures["bad"]["error"]["code"] == "model_run_failed"
    assert _manifest(tmp_path)["status"] == "failed"
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert "figure 'bad' failed: [model_run_failed]" in err


def test_one_failing_figure_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = execute.draw_trace

    def draw_trace(data: Any, path: Any, given: Any, **keywords: Any) -> Any:
        if given["theme"].name == "dark":
            raise ZeroDivisionError("a mistake\nof ours")
        return real(data, path, given, **keywords)

    monkeypatch.setattr(execute, "draw_trace", draw_trace)
    assert not execute.execute(_job({"a": {}, "b": {"theme": "dark"}, "c": {}}), tmp_path)
    figures = _manifest(tmp_path)["figures"]
    assert [entry["status"] for entry in figures.values()] == ["ok", "failed", "ok"]
    assert figures["b"]["error"] == {"code": "ZeroDivisionError", "text": "a mistake of ours"}


def test_missing_evidence_fails_one_figure_only(tmp_path: Path) -> None:
    uncounted = {
        "factory": {"_target_": "torch.nn.CosineSimilarity"},
        "input": {"shape": [[2, 3], [2, 3]], "dtype": "float32"},
    }
    view = {"question": "q", "needs": ["flops"], "draw": {"color_by": "flops"}}
    assert not execute.execute(_job({"a": {"model": uncounted}, "b": {"model": uncounted, "view": view}}), tmp_path)
    figures = _manifest(tmp_path)["figures"]
    assert figures["a"]["status"] == "ok"
    assert figures["b"]["error"]["code"] == "view_headline_evidence_missing"


def test_a_page_above_the_band_comes_with_a_list_of_what_can_be_opened(tmp_path: Path) -> None:
    large = {"model": "decoder", "collapse": "auto", "draw": {"rolled": True}, "path": "deep/er"}
    assert execute.execute(_job({"a": large, "b": {}}, formats=("dot", "svg")), tmp_path)
    written = json.loads((tmp_path / "deep" / "er.dot.expansion.json").read_text())
    assert written["schema"] == "torchlens_expansion_manifest_v1"
    assert [unit["draw"] for unit in written["units"]] == [{"module": "body"}]
    (warning,) = _manifest(tmp_path)["figures"]["a"]["warnings"]
    assert warning["code"] == "collapse_expansion_manifest"
    assert "; er.dot.expansion.json lists" in warning["text"]
    assert [path.name for path in tmp_path.rglob("*.expansion.json")] == ["er.dot.expansion.json"]


def test_the_manifest_tells_what_was_drawn(tmp_path: Path) -> None:
    execute.execute(
        _job({"a": {"view": "speed", "path": "deep/er"}}, explicit={"color_by": None}, theme=Choice("paper")), tmp_path
    )
    manifest = _manifest(tmp_path)
    entry = manifest["figures"]["a"]
    assert (manifest["schema"], manifest["status"]) == ("torchlens_manifest_v1", "ok")
    assert manifest["command"] == "python -m torchlens.run 'a=b c'"
    assert {"torchlens", "python", "torch", "graphviz-pure"} <= set(manifest["versions"])
    assert entry["chosen"]["view"] == "speed"
    assert entry["options"]["color_by"] == {"value": None, "set_by": "explicit"}
    assert entry["options"]["node_style"] == {"value": "profiling", "set_by": "view:speed"}
    assert entry["model"]["input"] == {"shape": [2, 8]}
    (file,) = entry["files"]
    content = (tmp_path / "deep" / "er.dot").read_bytes()
    assert (file["file"], file["bytes"], file["sha256"]) == (
        "deep/er.dot",
        len(content),
        hashlib.sha256(content).hexdigest(),
    )


def test_equal_jobs_leave_equal_files(tmp_path: Path) -> None:
    entries = {"a": {}, "b": {"encoding": "flops"}, "c": {"model": "demo", "draw": {"show_buffers": "always"}}}
    for folder in ("one", "two"):
        execute.execute(_job(entries, formats=("dot", "svg")), tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(names) == 7
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_an_interrupt_still_leaves_a_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(spec: ModelSpec, **measured: bool) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "record_trace", record)
    with pytest.raises(KeyboardInterrupt):
        execute.execute(_job({"a": {}}), tmp_path)
    assert _manifest(tmp_path)["status"] == "interrupted"
    assert _manifest(tmp_path)["figures"]["a"]["status"] == "not drawn"


def test_a_huge_page_goes_without_png_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torchlens.render.png.SIDE_LIMIT_PX", 100)
    assert execute.execute(_job({"a": {}}, formats=("svg", "png"), optional=("png",)), tmp_path / "auto")
    assert [file["format"] for file in _manifest(tmp_path / "auto")["figures"]["a"]["files"]] == ["svg"]
    assert "pixels" in _manifest(tmp_path / "auto")["figures"]["a"]["left_out"]["png"]
    assert "a: no png: it would have" in capsys.readouterr().err
    assert execute.execute(_job({"a": {}}, formats=("svg", "png")), tmp_path / "asked")
    figure = _manifest(tmp_path / "asked")["figures"]["a"]
    assert [file["format"] for file in figure["files"]] == ["svg", "png"]
    assert [warning["code"] for warning in figure["warnings"]] == ["figure_unreadable"]


def test_a_viewer_opens_the_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    execute.execute(_job({"a": {}}, explicit={"open_viewer": True}), tmp_path)
    assert opened == [(tmp_path / "a.dot").resolve().as_uri()]


def test_each_kind_is_drawn_and_a_legend_records_nothing(tmp_path: Path, recordings: Counted) -> None:
    entries = {"key": {"kind": "legend", "theme": "dark"}, "steps": {"kind": "schedule"}, "graph": {}}
    job = _job(entries, formats=("svg",), collapse=Choice("max"))
    assert execute.execute(job, tmp_path)
    assert recordings == [("mlp", False)]
    figures = _manifest(tmp_path)["figures"]
    assert [figures[name].get("kind") for name in entries] == ["legend", "schedule", None]
    assert [name for name in entries if "model" in figures[name]] == ["steps", "graph"]
    texts = {name: (tmp_path / f"{name}.svg").read_text() for name in entries}
    assert "trainable parameters" in texts["key"]
    assert "nodes in the full drawing" in texts["steps"]
    assert all(figures[name]["files"][0]["bytes"] == len(texts[name].encode()) for name in entries)
    assert execute.execute(_job({"key": {"kind": "legend"}}), tmp_path / "alone")
    assert recordings == [("mlp", False)]
