"""What a drawing tells about its folding: plan, schedule, refusals, the manifest, and the default of `draw`."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests import builders
from torchlens.base.errors import TorchLensWarning, UnavailableError
from torchlens.drawings import draw_trace
from torchlens.examples.decoder import Decoder
from torchlens.records.trace_data import TraceData
from torchlens.settings.limits import Limits, load_limits


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.fc2(torch.relu(self.fc1(self.norm(x)))) * 2


def _stack(count: int) -> nn.Module:
    return nn.Sequential(*[Block() for _ in range(count)])


@pytest.fixture(scope="module")
def trace() -> tl.Trace:
    return tl.trace(_stack(30), torch.randn(1, 4), save="none")


def test_a_drawing_has_the_plan_of_its_own_mode(trace: tl.Trace) -> None:
    auto, level = trace.draw(collapse="auto"), trace.draw(collapse=0.5, rolled=True, theme="dark")
    assert auto.collapse_plan.mode == "auto"
    assert auto.collapse_plan.nodes <= 25
    assert (level.collapse_plan.mode, level.collapse_plan.context["rolled"]) == (0.5, True)
    assert level.collapse_plan.context["theme"] == "dark"
    assert level.collapse_plan.nodes == level.collapse_schedule.at(0.5).visible_count


def test_the_schedule_is_there_in_every_mode(trace: tl.Trace) -> None:
    schedules = [trace.draw(collapse=mode).collapse_schedule for mode in ("none", "auto", 1)]
    assert schedules[0] == schedules[1] == schedules[2]
    steps = schedules[0].steps
    assert (steps[0].t, steps[-1].t) == (0.0, 1.0)
    assert steps[0].visible_count == 30 * 6 + 2
    assert all(len(a.collapsed_addresses) <= len(b.collapsed_addresses) for a, b in pairwise(steps))


def test_level_0_is_a_plan_that_folds_nothing(trace: tl.Trace) -> None:
    plan = trace.draw(collapse=0).collapse_plan
    assert (plan.mode, plan.planner, plan.nodes, plan.total, plan.level) == (0.0, "none", 182, 182, 0.0)
    assert (plan.collapsed, plan.band) == ((), trace.draw(collapse="auto").collapse_plan.band)
    assert trace.draw(collapse=0, module="0").collapse_plan.band == 50


@pytest.mark.parametrize("options", [{"depth": 1}, {"collapse_rules": [{"address": "body", "do": "fold"}]}])
def test_the_schedule_counts_outputs_that_are_bundled_from_the_start(options: dict[str, Any]) -> None:
    trace = tl.trace(Decoder(width=4, heads=2, blocks=3).eval(), torch.zeros(1, 4, dtype=torch.long), save="none")
    schedule = trace.draw(**options).collapse_schedule
    for t in (0.0, 0.01, 0.5, 1.0):
        drawing = trace.draw(collapse=t, **options)
        assert len(drawing._scene.nodes) == drawing.collapse_plan.nodes == schedule.at(t).visible_count
        assert bool(drawing.collapse_plan.bundles) == (t > 0)


def test_no_plan_without_collapse(trace: tl.Trace) -> None:
    with pytest.raises(UnavailableError, match=r'\[collapse_plan_unavailable\].*collapse="none"') as caught:
        _ = trace.draw().collapse_plan
    assert caught.value.fields["reason"] == "collapse_none"


def test_no_plan_once_the_trace_is_gone() -> None:
    drawing = tl.trace(_stack(3), torch.randn(1, 4)).draw(collapse="max")
    gc.collect()
    for name in ("collapse_plan", "collapse_schedule"):
        with pytest.raises(UnavailableError, match=r"\[collapse_plan_unavailable\].*released"):
            getattr(drawing, name)


def test_values_kept_make_no_difference_to_the_plan() -> None:
    kept = tl.trace(_stack(3), torch.randn(1, 4))
    assert kept.draw(collapse="max").collapse_plan.mode == "max"


def test_draw_folds_to_a_page_unless_told_otherwise(tmp_path: Path) -> None:
    model, x = _stack(30), torch.randn(1, 4)
    given: list[dict[str, Any]] = [
        {},
        {"collapse": "none"},
        {"view": {"question": "all?", "draw": {"collapse": "none"}}},
    ]
    page, full, view = (tl.draw(model, x, path=tmp_path / f"{k}.dot", **kw) for k, kw in enumerate(given))
    assert page.settings["collapse"] == ("auto", "verb:torchlens.draw")
    assert len(page._scene.nodes) <= 25
    assert len(full._scene.nodes) == len(view._scene.nodes) == 182
    assert view.settings["collapse"][1].startswith("view:")


def _wide() -> TraceData:
    """A model whose 60 modules of the first level are all that there is."""
    b = builders.Builder("Wide")
    x = b.input()
    ends = []
    for k in range(60):
        with b.module(f"arm{k}", f"Arm{k}") as arm:
            arm.returns = [b.op("exp", [b.op("tanh", [b.linear(f"arm{k}.fc", x, 8 + k)])], (2, 8 + k))]
        ends.append(arm.returns[0])
    b.output(b.op("cat", {(0, k): end for k, end in enumerate(ends)}))
    return b.build()


def test_a_page_above_the_band_comes_with_a_list_of_what_can_be_opened(tmp_path: Path) -> None:
    data = _wide()
    with pytest.warns(TorchLensWarning, match="collapse_expansion_manifest") as told:
        drawing = draw_trace(data, tmp_path / "page.svg", {"collapse": "auto"})
    written = json.loads((tmp_path / "page.svg.expansion.json").read_text())
    assert written["schema"] == "torchlens_expansion_manifest_v1"
    assert len(written["units"]) == 60
    first = written["units"][0]
    assert first == {
        "expansion_id": "module:arm0:1", "address": "arm0", "kind": "module", "hidden_ops": 3,
        "draw": {"module": "arm0"},
    }  # fmt: skip
    assert str(tmp_path / "page.svg.expansion.json") in str(told[0].message)
    for unit in written["units"][:2]:
        opened = draw_trace(data, None, unit["draw"])
        assert len(opened._scene.nodes) >= unit["hidden_ops"]
    assert {unit["expansion_id"] for unit in written["units"]} <= {node.name for node in drawing._scene.nodes}


def test_without_a_path_the_list_is_in_the_plan_and_no_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = _wide()
    with pytest.warns(TorchLensWarning, match="collapse_expansion_manifest.*collapse_plan.manifest"):
        drawing = draw_trace(data, None, {"collapse": "auto"})
    assert len(drawing.collapse_plan.manifest) == 60
    assert list(tmp_path.iterdir()) == []


def test_a_readable_page_has_no_list(trace: tl.Trace, tmp_path: Path) -> None:
    drawing = trace.draw(tmp_path / "page.dot", collapse="auto")
    assert drawing.collapse_plan.manifest == ()
    assert [path.name for path in tmp_path.iterdir()] == ["page.dot"]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Put other numbers in the place of the packaged limits."""

    def change(**values: float) -> None:
        known = {name: getattr(load_limits(), name) for name in Limits.__dataclass_fields__}
        (tmp_path / "conf" / "collapse").mkdir(parents=True)
        text = "".join(f"{name}: {value}\n" for name, value in {**known, **values}.items())
        (tmp_path / "conf" / "collapse" / "limits.yaml").write_text(text)
        monkeypatch.setenv("TORCHLENS_CONF", str(tmp_path / "conf"))

    return change


def test_a_trace_too_large_to_plan_refuses_its_plan(limits: Callable[..., None], tmp_path: Path) -> None:
    limits(max_units=5, pathological_factor=2)
    data = builders.residual(60)
    with pytest.warns(TorchLensWarning) as told:
        drawing = draw_trace(data, tmp_path / "page.dot", {"collapse": "auto"})
    assert [getattr(w.message, "code", "") for w in told] == [
        "collapse_pathological_skip",
        "collapse_expansion_manifest",
    ]
    with pytest.raises(UnavailableError, match=r"\[collapse_plan_unavailable\]") as caught:
        _ = drawing.collapse_plan
    assert caught.value.fields["reason"] == "collapse_ops_ceiling"
    assert [step.visible_count for step in drawing.collapse_schedule.steps] == [304]
    written = json.loads((tmp_path / "page.dot.expansion.json").read_text())["units"]
    assert [unit["address"] for unit in written] == [f"blocks.{k}" for k in range(60)]
    assert {unit["hidden_ops"] for unit in written} == {5}
    opened = draw_trace(data, None, written[0]["draw"])
    assert len([node for node in opened._scene.nodes if node.name.startswith(("linear", "relu", "add"))]) >= 4


def test_without_a_path_no_refused_plan_is_pointed_to(limits: Callable[..., None]) -> None:
    limits(max_units=5, pathological_factor=2)
    with pytest.warns(TorchLensWarning, match="collapse_expansion_manifest.*drawn with a path") as told:
        drawing = draw_trace(builders.residual(60), None, {"collapse": "auto"})
    assert not any("collapse_plan" in str(warning.message) for warning in told)
    with pytest.raises(UnavailableError, match="collapse_plan_unavailable"):
        _ = drawing.collapse_plan


def test_a_fallback_above_the_band_comes_with_a_list_of_what_can_be_opened(
    limits: Callable[..., None], tmp_path: Path
) -> None:
    limits(max_units=50)
    with pytest.warns(TorchLensWarning) as told:
        drawing = draw_trace(_wide(), tmp_path / "page.dot", {"collapse": "max"})
    assert {getattr(w.message, "code", "") for w in told} >= {"collapse_budget_fallback", "collapse_expansion_manifest"}
    assert drawing.collapse_plan.planner == "linear_fallback"
    assert len(json.loads((tmp_path / "page.dot.expansion.json").read_text())["units"]) == 60
    lines = [getattr(line, "text", "") for line in drawing._scene.root]
    assert "collapse: folded by the simple planner" in lines


class _Ending(nn.Module):
    """A module that ends in an op of its own, which is drawn beside the box of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.inner(x)))


class _Between(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Ending() for _ in range(14))
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for k, block in enumerate(self.blocks):
            x = block(x) if k % 2 else block(x).tanh().sin()
        return self.head(self.drop(x))


def test_a_row_of_boxes_and_ops_that_ran_once_has_no_arrow_to_itself() -> None:
    trace = tl.trace(_Between(), torch.randn(1, 4), save="none")
    plain, rolled = (trace.draw(collapse="max", rolled=rolled)._scene for rolled in (False, True))
    assert any(node.kind == "segment" for node in rolled.nodes)
    assert [(edge.source, edge.target) for edge in rolled.edges] == [(edge.source, edge.target) for edge in plain.edges]
    assert all(edge.source != edge.target for edge in rolled.edges)
