"""The guard: estimate, budget, fallback, the pathological path, the watchdog and who switches it off."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests import builders
from tests.honesty import make
from torchlens.base.errors import ConfigError, TorchLensWarning
from torchlens.plan import make_plan
from torchlens.plan.collapse import guard
from torchlens.plan.collapse.report import CEILING
from torchlens.plan.collapse.units import Units
from torchlens.plan.graph import Plan
from torchlens.plan.pipeline import plan_schedule
from torchlens.records.trace_data import TraceData
from torchlens.scene.build import build
from torchlens.settings.compose import resolve
from torchlens.settings.limits import Limits, load_limits

QUIET = {"CI": "", "TORCHLENS_DETERMINISTIC": "", "TORCHLENS_COLLAPSE_WATCHDOG": "1"}


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put other numbers in the place of the packaged ones, and let the watchdog bark."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)

    def change(**values: float) -> None:
        known = {name: getattr(load_limits(), name) for name in Limits.__dataclass_fields__}
        folder = tmp_path / "collapse"
        folder.mkdir(exist_ok=True)
        text = "".join(f"{name}: {value}\n" for name, value in {**known, **values}.items())
        (folder / "limits.yaml").write_text(text)
        monkeypatch.setenv("TORCHLENS_CONF", str(tmp_path))

    return change


@contextmanager
def _told() -> Iterator[list[TorchLensWarning]]:
    found: list[TorchLensWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [w.message for w in caught if isinstance(w.message, TorchLensWarning)]


def _plan(data: TraceData, **options: object) -> tuple[Plan, list[TorchLensWarning]]:
    with _told() as told:
        plan = make_plan(data, resolve(data, {"collapse": "auto", **options}))
    return plan, told


def test_the_load_is_units_and_the_widest_group(units: Callable[..., Units]) -> None:
    load = guard.measure(units(builders.residual(8)))
    assert load == (44, 10)
    packaged = load_limits()
    assert load.predicted_s(packaged) == pytest.approx(packaged.coefficient_ms * 44**packaged.units_exponent / 1000)
    wide = replace(packaged, coefficient_ms=0.0095, units_exponent=1.43, width_exponent=1.02)
    assert load.predicted_s(wide) == pytest.approx(0.0095 * 44**1.43 * 10**1.02 / 1000)


def test_the_packaged_limits_admit_what_they_promise() -> None:
    packaged = load_limits()
    assert packaged.max_units == 50_000
    assert guard.admits(guard.Load(50_000, 50_000), packaged)
    assert guard.Load(50_000, 50_000).predicted_s(packaged) < 2
    assert not guard.admits(guard.Load(50_001, 1), packaged)
    assert not guard.admits(guard.Load(50, 1), replace(packaged, budget_s=0))


def test_within_the_limits_the_quality_planner_runs(limits: Callable[..., None]) -> None:
    limits()
    plan, told = _plan(builders.residual(40))
    assert plan.collapse is not None
    assert plan.collapse.planner == guard.QUALITY
    assert told == []


@pytest.mark.parametrize("changed", [{"max_units": 50}, {"budget_s": 0}])
def test_over_budget_the_simple_planner_folds_and_says_so(
    limits: Callable[..., None], changed: dict[str, float]
) -> None:
    limits(**changed)
    plan, told = _plan(builders.residual(40))
    assert plan.collapse is not None
    assert plan.collapse.planner == guard.FALLBACK == "linear_fallback"
    assert [w.code for w in told] == ["collapse_budget_fallback"]
    assert told[0].fields["units"] == 204
    assert "204 units" in str(told[0])
    assert len(plan.nodes) == plan.collapse.nodes < 204
    with pytest.warns(TorchLensWarning, match=r"\[collapse_budget_fallback\].*simple planner"):
        make(builders.residual(40), collapse="max")


def test_the_fallback_is_deterministic_and_has_levels(limits: Callable[..., None]) -> None:
    data = builders.residual(40)
    limits(max_units=50)
    first, again = (_plan(data, collapse=0.5)[0] for _ in range(2))
    assert first == again
    schedule = plan_schedule(data, resolve(data, {}))
    assert len(first.nodes) == schedule.at(0.5).visible_count


@pytest.mark.parametrize("options", [{"module": "blocks.1"}, {"depth": 1}, {"rolled": True}], ids=str)
def test_focus_depth_and_rolled_admit_the_quality_planner_again(
    limits: Callable[..., None], options: dict[str, object]
) -> None:
    data = builders.loop(40) if "rolled" in options else builders.residual(40)
    limits(max_units=50 if "depth" not in options else 100)
    over, told = _plan(data)
    assert over.collapse is not None
    assert over.collapse.planner == guard.FALLBACK
    assert "collapse_budget_fallback" in [w.code for w in told]
    plan, told = _plan(data, **options)
    assert plan.collapse is not None
    assert plan.collapse.planner == guard.QUALITY
    assert told == []


def test_far_too_many_ops_draw_the_outermost_modules(limits: Callable[..., None]) -> None:
    limits(max_units=10, pathological_factor=2)
    data = builders.residual(40)
    plan, told = _plan(data)
    assert [w.code for w in told] == ["collapse_pathological_skip"]
    assert plan.collapse is not None
    assert plan.collapse.reason == CEILING
    assert plan.collapse.planner == "none"
    assert len(plan.nodes) == 44
    assert len(plan_schedule(data, resolve(data, {})).steps) == 1
    assert [row["draw"] for row in plan.collapse.manifest][:2] == [{"module": "blocks.0"}, {"module": "blocks.1"}]
    assert {row["hidden_ops"] for row in plan.collapse.manifest} == {5}


def test_what_a_rule_keeps_is_open_among_far_too_many_ops(limits: Callable[..., None]) -> None:
    limits(max_units=10, pathological_factor=2)
    data = builders.residual(40)
    rules = [{"address": "blocks.7", "do": "keep"}]
    plan, told = _plan(data, collapse_rules=rules)
    assert [w.code for w in told] == ["collapse_pathological_skip"]
    open_ = [node.name for node in plan.nodes if node.kind == "op"]
    inside = {data.nodes.label[i] for i, call in enumerate(data.nodes.call) if 7 in _blocks(data, call)}
    assert inside & set(open_)
    assert not any(node.kind == "module" and node.name == "module:blocks.7:1" for node in plan.nodes)
    header = [getattr(line, "text", "") for line in build(plan, data, resolve(data, {"collapse": "auto"})).root]
    assert "collapse: too large to plan, outermost modules only" in header


def _blocks(data: TraceData, call: int) -> set[int]:
    """Numbers of the blocks around a call."""
    found = (data.modules[data.calls[c].module].address for c in data.call_chain(call))
    return {int(address.split(".")[1]) for address in found if address.startswith("blocks.")}


def test_a_root_without_modules_stays_uncollapsed(limits: Callable[..., None]) -> None:
    limits(max_units=1, pathological_factor=1)
    data = builders.loop(40)
    full = make_plan(data, resolve(data, {}))
    assert _plan(data)[0].nodes == full.nodes


def test_the_watchdog_hands_over_to_the_simple_planner(limits: Callable[..., None]) -> None:
    limits(watchdog_s=0, watchdog_factor=0)
    plan, told = _plan(builders.residual(40))
    assert [w.code for w in told] == ["collapse_watchdog_fallback"]
    assert plan.collapse is not None
    assert plan.collapse.planner == guard.FALLBACK
    assert set(told[0].fields) == {"units", "widest", "predicted_s", "actual_s"}
    with pytest.warns(TorchLensWarning, match=r"\[collapse_watchdog_fallback\].*204 units"):
        make(builders.residual(40), collapse=0.5)
    assert len(plan_schedule(builders.residual(40), resolve(None, {})).steps) > 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("CI", "true"), ("TORCHLENS_DETERMINISTIC", "1"), ("TORCHLENS_COLLAPSE_WATCHDOG", "0")],
)
def test_the_watchdog_is_off(
    limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    limits(watchdog_s=0, watchdog_factor=0)
    monkeypatch.setenv(name, value)
    plan, told = _plan(builders.residual(40))
    assert plan.collapse is not None
    assert plan.collapse.planner == guard.QUALITY
    assert told == []


@pytest.mark.parametrize("name", QUIET)
def test_an_empty_variable_is_as_good_as_none(
    limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    limits(watchdog_s=0, watchdog_factor=0)
    monkeypatch.setenv(name, "")
    assert [w.code for w in _plan(builders.residual(40))[1]] == ["collapse_watchdog_fallback"]


@pytest.mark.parametrize("value", ["many", -1, None, True])
def test_a_wrong_limit_names_file_and_key(limits: Callable[..., None], value: object) -> None:
    limits(max_units=value)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"limits\.yaml: max_units is not a number"):
        load_limits()


def test_the_fallback_is_evened_to_a_page(limits: Callable[..., None]) -> None:
    limits(max_units=100)
    with pytest.warns(TorchLensWarning, match=r"\[collapse_budget_fallback\]"):
        plan = make(builders.residual(40), collapse="auto")
    assert plan.collapse is not None
    assert (plan.collapse.planner, plan.collapse.total) == ("linear_fallback", 204)
    assert plan.collapse.nodes <= 25
    assert plan.collapse.manifest == ()
