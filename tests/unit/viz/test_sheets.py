"""Keys and schedules as files: themes, formats, what is refused, and what is kept alive."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import torchlens as tl
from torchlens.base.errors import InvalidArgumentError, TorchLensWarning, UnavailableError
from torchlens.trace_view import Trace


def _stack() -> nn.Module:
    block = [nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()) for _ in range(9)]
    return nn.Sequential(*block)


@pytest.fixture(scope="module")
def stack() -> Trace:
    return tl.trace(_stack().eval(), input_shape=(2, 4), save="none")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8")]
)
def test_both_are_written_in_every_format(stack: Trace, name: str, start: bytes) -> None:
    for draw in (tl.viz.legend, lambda path: tl.viz.schedule(stack, path)):
        figure = draw(name)
        assert figure.path == Path(name)
        assert Path(name).read_bytes() == figure.data
        assert figure.data.startswith(start)
        assert figure.warnings == []


def test_without_a_path_nothing_is_written_and_a_notebook_shows_it(stack: Trace) -> None:
    for figure in (tl.viz.legend(), tl.viz.schedule(stack)):
        assert figure.path is None
        assert figure._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
        assert figure.page is not None
        assert figure.page.smallest_text == 10
        assert figure.save("x.dot").read_text(encoding="utf-8") == figure.dot
    assert [path.name for path in Path.cwd().iterdir()] == ["x.dot"]


def test_themes_apply_to_both(stack: Trace) -> None:
    for draw in (tl.viz.legend, lambda **given: tl.viz.schedule(stack, **given)):
        plain, dark = draw(), draw(theme="dark")
        assert (plain.theme, dark.theme) == ("torchlens", "dark")
        assert "#111827" in dark.dot
        assert "#111827" not in plain.dot
        assert (
            "ivory" in draw(theme={"extends": "dark", "page": {"background": "ivory"}}).dot
            or "#fffff0" in draw(theme={"extends": "dark", "page": {"background": "ivory"}}).dot
        )


def test_a_schedule_follows_the_options_of_the_drawing(stack: Trace) -> None:
    full, part = tl.viz.schedule(stack), tl.viz.schedule(stack, module=stack.modules["0"], caption="of one block")
    assert f"{stack.draw().collapse_schedule.steps[0].visible_count} nodes in the full drawing" in full.dot
    assert f"{stack.draw(module='0').collapse_schedule.steps[0].visible_count} nodes in the full drawing" in part.dot
    assert "of one block" in part.dot


@pytest.mark.parametrize("given", [{"collapse": "auto"}, {"collapse": 0.5}, {"collapse": "none"}])
def test_a_schedule_takes_no_collapse(stack: Trace, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[collapse_mode_invalid\] collapse=.*shows all of them"):
        tl.viz.schedule(stack, **given)


def test_what_is_wrong_is_refused_before_anything_is_written(stack: Trace) -> None:
    with pytest.raises(InvalidArgumentError, match="visualization_theme_invalid"):
        tl.viz.legend("a.svg", theme="no")
    with pytest.raises(InvalidArgumentError, match="file_format_invalid"):
        tl.viz.legend("a.gif")
    with pytest.raises(InvalidArgumentError, match="output_path_invalid"):
        tl.viz.schedule(stack, "no/a.svg")
    with pytest.raises(TypeError, match="Did you mean 'depth'"):
        tl.viz.schedule(stack, deph=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        tl.viz.legend("a.svg", depth=1)  # type: ignore[call-arg]
    assert not list(Path.cwd().iterdir())


def test_a_trace_that_cannot_be_planned_has_no_schedule(stack: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlens.plan.collapse import planner
    from torchlens.settings.limits import load_limits

    low = load_limits()
    monkeypatch.setattr(
        planner, "load_limits", lambda: low.__class__(**{**_fields(low), "max_units": 1, "pathological_factor": 1})
    )
    with pytest.warns(TorchLensWarning), pytest.raises(UnavailableError, match="collapse_plan_unavailable"):
        tl.viz.schedule(stack)


def _fields(limits: Any) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in limits.__dataclass_fields__}


def test_a_schedule_keeps_no_trace_alive() -> None:
    trace = tl.trace(_stack().eval(), input_shape=(2, 4), save="none")
    figure, gone = tl.viz.schedule(trace), weakref.ref(trace.data)
    del trace
    gc.collect()
    assert gone() is None
    assert figure.data
