"""Every view on every kind of model: drawn, or refused by its own code; its captions against counts made here.

Independent of the code under test are the facts of `tests/oracle` (plain hooks), hooks set here, and the DOT text.
"""

from __future__ import annotations

import json
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests import builders
from tests.contract.test_drawing import draw
from tests.oracle.facts import RECORDS, trace_second_forward
from torchlens.base.colors import luminance
from torchlens.base.errors import EvidenceError, TorchLensWarning
from torchlens.drawings import Drawing
from torchlens.examples.rnn import Rnn
from torchlens.render import dot
from torchlens.render.graphviz import EMBEDDED
from torchlens.runner.main import main
from torchlens.scene.model import Scene
from torchlens.scene.values import SOURCES
from torchlens.settings import catalog, evidence
from torchlens.settings.channel_checks import measures
from torchlens.settings.compose import resolve
from torchlens.settings.deferred import Band, FromTrace
from torchlens.settings.options import options
from torchlens.settings.view import load_view, view_names
from torchlens.settled import settings_text
from torchlens.trace_view import Trace

VIEWS = view_names()
REFUSALS = {
    "interventions": "surgery_evidence_missing",
    "transformer": "view_attention_subject_absent",
    "sequence": "view_single_pass_no_sequence",
    "compute": "view_headline_evidence_missing",
    "speed": "view_headline_evidence_missing",
    "memory": "view_headline_evidence_missing",
    "dims": "view_headline_evidence_missing",
}
LARGE = ("hf_gpt2_lm", "hf_bert_mlm_masked", "hf_albert", "hf_llama", "hf_whisper", "hf_clip", "tv_squeezenet1_1")
ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward", "_native_multi_head_attention")


def _records() -> list[Any]:
    small = [pytest.param(r, id=r["key"]) for r in RECORDS if r["family"] == "zoo"]
    large = [pytest.param(r, id=r["key"], marks=pytest.mark.models) for r in RECORDS if r["key"] in LARGE]
    return small + large


def drawn(trace: Trace, view: str, **given: Any) -> Drawing | None:
    """The drawing of a view, None if the view refuses by its own code and says what else helps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        try:
            return trace.draw(view=view, **given)
        except EvidenceError as refused:
            _check_refusal(view, refused)
            return None


def _check_refusal(view: str, refused: EvidenceError) -> None:
    assert refused.code == REFUSALS.get(view), refused
    assert refused.remedy
    if view in ("transformer", "sequence", "interventions"):
        assert 'leave view= unset, or pass view="overview"' in refused.remedy


def captions(drawing: Drawing) -> list[str]:
    return [text for kind, text in _root(drawing._scene) if kind == "caption"]


def _root(scene: Scene) -> list[tuple[str, str]]:
    return [(getattr(line, "kind", ""), getattr(line, "text", "")) for line in scene.root]


def nodes_of(document: str) -> list[str]:
    """Ids of the drawn nodes, from the DOT text alone."""
    ids = re.findall(r'^\s*(?:n\d+|"[^"]+") \[.*?\bid="?([^",\s\]]+)', document, re.MULTILINE)
    return [name for name in ids if not name.startswith(("edge:", "cluster:"))]


@cache
def _traced(key: str) -> Trace:
    (record,) = (r for r in RECORDS if r["key"] == key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trace_second_forward(record)


# -- every view, every model
@pytest.mark.parametrize("record", _records())
def test_every_view_draws_or_refuses_by_its_own_code(record: dict[str, Any]) -> None:
    trace, calls = _traced(record["key"]), record["plain"]["calls"]["list"]
    found = {view: drawn(trace, view) for view in VIEWS}
    # What the facts say each view must do.
    assert found["interventions"] is None
    assert all(found[view] is not None for view in ("overview", "debug"))
    assert (found["speed"] is not None) == bool(calls)
    names = {name for name, *_ in calls} | {kind for _, kind, _ in record["plain"]["module_calls"]}
    if found["transformer"] is not None:
        assert any("attention" in name.lower() for name in names)
    repeats = any(count > 1 for _, _, count in record["plain"]["module_calls"])
    if found["sequence"] is None:
        assert not repeats or not _runs_ops(record)
    else:
        assert re.search(r"\w:2\b", found["sequence"].dot)
    for view, drawing in found.items():
        if drawing is not None and len(drawing._scene.nodes) < 60:
            assert EMBEDDED.run(drawing.dot, "svg").rstrip().endswith(b"</svg>"), view


def _runs_ops(record: dict[str, Any]) -> bool:
    """Whether a module that is called several times runs an op itself."""
    modules = record["plain"]["module_calls"]
    return any(modules[module][2] > 1 for _, _, _, module, *_ in record["plain"]["calls"]["list"])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", catalog.names("theme"))
def test_every_view_draws_in_every_theme(view: str, theme: str) -> None:
    made = 0
    for make in builders.SAMPLES.values():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TorchLensWarning)
                _, scene, _ = draw(make(), view=view, theme=theme)
        except EvidenceError as refused:
            _check_refusal(view, refused)
            continue
        made += 1
        assert EMBEDDED.run(dot.write(scene), "svg").rstrip().endswith(b"</svg>")
    assert made or view in ("transformer", "interventions")


# -- a view is its settings
def _spelled_out(drawing: Drawing) -> dict[str, Any]:
    """The keywords that draw the same; a band is the level that it picked."""
    request = drawing._request
    assert request.view is not None
    given = {name: getattr(request.options, name) for name in request.view.draw}
    if isinstance(given.get("collapse"), Band):
        given["collapse"] = drawing._collapse.level if drawing._collapse else "none"
    return given


def _without_captions(drawing: Drawing) -> tuple[object, ...]:
    scene = drawing._scene
    root = [line for line in scene.root if getattr(line, "kind", "") != "caption"]
    return scene.nodes and [(n.name, n.rows, n.style, n.box) for n in scene.nodes], scene.edges, scene.boxes, root


class _Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for _ in range(3):
            x = torch.relu(self.fc(x))
        return {"state": x, "mean": x.mean()}


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.attn(x, x, x, need_weights=False)[0])


class _Former(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(_Block() for _ in range(blocks))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return {"hidden": x, "pooled": x.mean(1)}


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "sequence": lambda: (_Cell(), torch.randn(2, 4)),
    "transformer": lambda: (_Former().train(), torch.randn(1, 5, 8)),
}


@cache
def _trace(view: str) -> Trace:
    """A trace that a view can draw."""
    torch.manual_seed(0)
    make = MODELS.get(view, lambda: (nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.randn(2, 4)))
    return tl.trace(*make(), capture={"saved_for_backward": True})


DRAWN = [view for view in VIEWS if view != "interventions"]


@pytest.mark.parametrize("view", DRAWN)
def test_a_view_is_its_settings_spelled_out_but_for_the_caption(view: str) -> None:
    drawing = _trace(view).draw(view=view)
    spelled = _trace(view).draw(**_spelled_out(drawing))
    assert _without_captions(spelled) == _without_captions(drawing)
    own = set(captions(drawing))
    assert not any(re.search(rf"\bview\b|^{view}\b", line) for line in own), "no line names the view"


# A value that differs from what any view sets, by option.
OTHERS: Mapping[str, Any] = {
    "rolled": True, "fold_repeats": False, "collapse": "max", "show_buffers": "never", "show_legend": False,
    "node_style": "default", "color_by": "step", "color_scale": "log", "show_saved_for_backward": False,
    "size_by": "bytes", "size_scale": "linear", "size_cap": 3.0, "module": "blocks.1", "direction": "topdown",
    "show_containers": False, "stack_by": "num_passes", "show_redundant_args": False, "show_orphans": False,
    "show_exceptions": False, "show_nonfinite": False,
}  # fmt: skip


def _settings() -> list[tuple[str, str]]:
    return [(view, option) for view in DRAWN for option in load_view(view).draw]


@pytest.mark.parametrize(("view", "option"), _settings())
def test_a_keyword_beats_each_setting_of_a_view_null_included(view: str, option: str) -> None:
    values = [OTHERS[option], *([None] if options()[option].nullable else [])]
    for value in values:
        given = {option: value}
        if option == "rolled" and value:
            given["stack_by"] = None
        drawing = _trace(view).draw(view=view, **given)
        assert drawing.settings[option] == (value, "explicit")
        kept = [name for name in load_view(view).draw if name not in given]
        assert all(drawing.settings[name][1].startswith(f"view:{view}") for name in kept)


def test_before_there_is_a_trace_what_it_answers_stays_open() -> None:
    request = resolve(None, {"view": "overview"})
    assert request.trail["rolled"] == (("view:overview", FromTrace("several_passes")),)
    assert request.options.rolled is False
    assert "by the trace: several_passes" in settings_text(request)
    with_trace = _trace("sequence").draw(view="overview")
    assert with_trace.settings["rolled"] == (True, "view:overview")
    assert "view:overview" in with_trace.explain()


# -- captions against counts made here
def _hooked_calls(model: nn.Module, x: torch.Tensor, kind: type[nn.Module]) -> Counter[str]:
    """How often each module of a class is called, by hooks."""
    seen: Counter[str] = Counter()
    for name, module in model.named_modules():
        if isinstance(module, kind):
            module.register_forward_hook(lambda *_, name=name: seen.update([name]))
    model(x)
    return seen


def test_the_transformer_caption_counts_blocks_as_hooks_do() -> None:
    model, x = MODELS["transformer"]()
    blocks = _hooked_calls(model, x, _Block)
    drawing = tl.trace(model, x).draw(view="transformer")
    first = next(iter(blocks))
    assert captions(drawing) == [f"showing {first} (1 of {len(blocks)} _Block)"]
    assert drawing.settings["module"] == (first, "view:transformer")
    other = tl.trace(model, x).draw(view="transformer", module="blocks.2")
    assert captions(other) == [f"showing blocks.2 (3 of {len(blocks)} _Block)"]
    assert captions(tl.trace(model, x).draw(view="transformer", module="stem")) == ["showing stem (Linear)"]
    assert captions(tl.trace(model, x).draw(view="transformer", module="@blocks.2")) == captions(other)
    assert captions(tl.trace(model, x).draw(view="transformer", module=None)) == []


def test_attention_is_outlined_below_the_users_hook_and_above_the_channels() -> None:
    trace = _trace("transformer")
    (core,) = [op.label for op in trace.ops if op.func_name in ATTENTION and op.modules[0].startswith("blocks.0")]
    explained = str(trace.draw(view="transformer", color_by="bytes").explain(core))
    assert re.search(r"stroke_width +3 +node_style attention", explained)
    assert re.search(r"fill +#\w+ +color_by bytes", explained)

    def thin(record: object, spec: Any) -> None:
        spec.penwidth = 0.5

    explained = str(trace.draw(view="transformer", node_spec_fn=thin).explain(core))
    assert re.search(r"stroke_width +0.5 +node_spec_fn \S*thin +node_style attention = 3", explained)
    assert "thick border: attention" in trace.draw(view="transformer").dot
    assert "thick border" not in trace.draw(view="transformer", node_style="default").dot


@pytest.mark.parametrize(("view", "fact"), [("speed", "time_s"), ("memory", "nbytes"), ("compute", "flops")])
def test_coverage_counts_ops_and_ranks_follow_the_value(view: str, fact: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2**k, 2 ** (k + 1)) for k in range(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = torch.tanh(layer(x))
                time.sleep(0.0002)
            return x

    calls: list[str] = []

    class Counting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func.__name__)
            return func(*args, **(kwargs or {}))

    torch.manual_seed(0)
    net, x = Net(), torch.randn(3, 1)
    with Counting():
        net(x)
    ops = [name for name in calls if name in ("linear", "tanh")]
    trace = tl.trace(net, x, capture={"saved_for_backward": True})
    drawing = trace.draw(view=view)
    assert f"encoded {len(ops)} of {len(ops)} ops" in captions(drawing)
    data, by_value = trace.data, {}
    for node in drawing._scene.nodes:
        if node.kind == "op":
            index = data.index_of[node.name]
            value = data.nbytes[index] if fact == "nbytes" else getattr(data.nodes, fact)[index]
            by_value.setdefault(value, set()).add(node.style.fill)
    assert all(len(fills) == 1 for fills in by_value.values()), "equal values share a colour"
    shades = [luminance(next(iter(by_value[value]))) for value in sorted(by_value)]
    assert shades == sorted(shades, reverse=True), "a larger value is never lighter"
    assert len(set(shades)) == len(shades)


def test_rolled_captions_say_that_passes_are_summed() -> None:
    lines = captions(_trace("sequence").draw(view="memory", rolled=True))
    assert "output bytes, not live, allocator or peak memory; sum over passes" in lines
    assert captions(_trace("sequence").draw(view="speed", rolled=True))[1] == "wall-clock time, sum over passes"


def test_the_columns_of_a_sequence_and_why_there_may_be_none() -> None:
    drawing = _trace("sequence").draw(view="sequence")
    assert captions(drawing) == ["columns: same pass, not parallel work"]
    groups = re.findall(r"rank=same", drawing.dot)
    assert len(groups) == 3, "one column per pass"

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            for _ in range(2):
                x = self.a(x)
            for _ in range(2):
                x = self.b(x)
            return x, x + 1

    trace = tl.trace(Two(), torch.randn(2, 4))
    with pytest.warns(TorchLensWarning, match=r"\[view_secondary_degraded\] passes not aligned"):
        drawing = trace.draw(view="sequence")
    assert captions(drawing) == ["passes not aligned: they do not run in lockstep"]
    assert "rank=same" not in drawing.dot


def test_dims_says_what_area_is_and_equal_counts_are_equal_areas() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (4, 4, 4)), nn.Flatten(2), nn.Linear(16, 2))
    x = torch.randn(2, 64, 1)
    drawing = tl.trace(model, x).draw(view="dims")
    assert captions(drawing) == [
        "box area shows element count per batch item, not shape (512x7x7 and 128x14x14 draw the same size)"
    ]
    assert 512 * 7 * 7 == 128 * 14 * 14
    assert not captions(tl.trace(model, x).draw(view="dims", size_by=None))
    areas = {node.name: (node.style.width or 0) * (node.style.height or 0) for node in drawing._scene.nodes}
    by_count: dict[int, set[float]] = {}
    for op in tl.trace(model, x).ops:
        by_count.setdefault(math.prod(op.shape[1:]), set()).add(areas[op.label])
    assert len(by_count) == 2
    small, large = (by_count[count] for count in sorted(by_count))
    assert max(small) < min(large)
    assert len(large) == 1, "other shapes of as many elements draw the same size"


# -- overview
def _plain(sizes: Iterable[int]) -> nn.Module:
    """Blocks of different lengths, so that none is like another; each op is a module's one op."""
    return nn.Sequential(*(nn.Sequential(*(nn.Tanh() for _ in range(n))) for n in sizes))


@pytest.mark.parametrize("count", [3, 18, 20, 40])
def test_the_overview_says_how_many_nodes_it_draws(count: int) -> None:
    trace = tl.trace(_plain(range(3, 3 + count)), torch.randn(2))
    full, drawing = trace.draw(fold_repeats=True), trace.draw(view="overview")
    total, shown = len(nodes_of(trace.draw().dot)), len(nodes_of(drawing.dot))
    assert total == sum(range(3, 3 + count)) + 2, "every op is drawn, and input and output"
    if total <= 220:
        assert captions(drawing) == []
        assert drawing.dot == full.dot
        return
    (line,) = captions(drawing)
    level, nodes, of = re.fullmatch(r"collapse level (\S+): (\d+) of (\d+) nodes", line).groups()  # type: ignore[union-attr]
    assert (int(nodes), int(of)) == (shown, total)
    assert 100 <= shown <= 220
    plan = drawing.collapse_plan
    assert (plan.mode, plan.nodes, plan.total) == ("budget", shown, total)
    assert plan.level == float(level), "what the caption prints draws the same page"
    inside = [step.visible_count for step in full.collapse_schedule.steps if 100 <= step.visible_count <= 220]
    assert shown == min(inside)
    assert trace.draw(collapse=plan.level, fold_repeats=True)._scene.nodes == drawing._scene.nodes


def test_an_overview_counts_the_repeats_it_folds() -> None:
    model, x = _Former(6), torch.randn(1, 5, 8)
    drawing = tl.trace(model, x).draw(view="overview")
    total, shown = len(nodes_of(tl.trace(model, x).draw().dot)), len(nodes_of(drawing.dot))
    assert captions(drawing) == [f"repeats folded: {shown} of {total} nodes"]
    assert "... +5 more _Block" in drawing.dot


def test_a_coloured_overview_keeps_the_values_on_the_page() -> None:
    model, x = _Former(20), torch.randn(1, 5, 8)
    trace = tl.trace(model, x)
    drawing = trace.draw(view="overview", color_by="time")
    assert drawing.encoding is not None
    state = drawing.encoding.color
    assert state is not None
    assert state.encoded >= 0.8 * state.eligible
    # Asked for in person, folds stay although they hide what is coloured.
    folded = trace.draw(view="overview", color_by="time", fold_repeats=True)
    assert "... +19 more _Block" in folded.dot


def test_an_overview_of_very_much_is_by_depth() -> None:
    trace = tl.trace(_plain(range(20, 80)), torch.randn(2))
    total = len(trace.ops) + 2
    assert total > 2000
    with pytest.warns(TorchLensWarning, match=r"\[view_budget_band_missed\].*100 to 220"):
        drawing = trace.draw(view="overview")
    by_depth = trace.draw(depth=drawing._collapse.depth)  # type: ignore[union-attr]
    assert captions(drawing) == [f"depth 1: {len(nodes_of(by_depth.dot))} of {total} nodes"]
    assert nodes_of(drawing.dot) == nodes_of(by_depth.dot)


def test_boxes_keep_the_values_that_they_can_sum() -> None:
    assert {name for name in evidence.SOURCES if SOURCES.get(name).additive} == set(evidence.ADDITIVE)


def test_any_view_says_how_far_it_is_folded() -> None:
    trace = tl.trace(_Former(6), torch.randn(1, 5, 8))
    drawing = trace.draw(view="compute", collapse="max")
    total, shown = len(nodes_of(trace.draw().dot)), len(nodes_of(drawing.dot))
    assert f"collapse level 1: {shown} of {total} nodes" in captions(drawing)
    assert trace.draw(collapse="max").settings["collapse"] == ("max", "explicit")
    assert not captions(trace.draw(collapse="max")), "only views have captions"


# -- too much, and too little
@pytest.mark.parametrize("view", ["debug", "dims"])
def test_detail_has_a_limit_unless_a_part_or_a_fold_is_asked_for(view: str) -> None:
    trace = tl.trace(_plain([1100, 1000]), torch.randn(2))
    with pytest.raises(EvidenceError, match=r"\[view_above_detail_budget\].*2,100.*2,000.*module=.*collapse") as caught:
        trace.draw(view=view)
    assert caught.value.fields["view"] == view
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        assert trace.draw(view=view, collapse="auto").settings["collapse"] == ("auto", "explicit")
        assert trace.draw(view=view, module="1")
    with pytest.raises(EvidenceError, match="view_above_detail_budget"):
        trace.draw(view=view, collapse="none")


def test_interventions_refuses_before_the_model_runs() -> None:
    ran: list[bool] = []

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ran.append(True)
            return x + 1

    with pytest.raises(EvidenceError, match=r"\[surgery_evidence_missing\].*overview"):
        tl.draw(Net(), torch.randn(2), view="interventions")
    assert not ran


def test_memory_without_gradients_says_what_is_missing() -> None:
    with torch.no_grad():
        trace = tl.trace(nn.Linear(4, 4), torch.randn(2, 4), capture={"saved_for_backward": True})
    with pytest.warns(TorchLensWarning, match=r"\[view_secondary_degraded\] saved for backward: recorded without"):
        drawing = trace.draw(view="memory")
    assert captions(drawing)[-1] == "saved for backward: recorded without gradients"
    assert drawing.settings["show_saved_for_backward"] == (False, "view:memory, left out")
    assert "saved for backward: 2 tensors" in _trace("memory").draw(view="memory").dot


def test_drawing_a_model_warns_of_a_lack_once() -> None:
    with pytest.warns(TorchLensWarning) as heard:
        drawing = tl.draw(*MODELS["sequence"](), view="sequence", rolled=True, file_format="dot")
    texts = [str(warning.message) for warning in heard]
    assert texts == [str(warning) for warning in drawing.warnings]
    assert sum("passes not aligned" in text for text in texts) == 1


def test_what_the_view_and_a_row_both_lack_is_said_once() -> None:
    trace = tl.trace(nn.Linear(4, 4), torch.randn(2, 4), save="none")
    with pytest.warns(TorchLensWarning) as heard:
        drawing = trace.draw(view="memory", node_label_fields=["name", "saved"])
    assert captions(drawing).count("saved for backward: not measured") == 1
    assert [str(warning.message) for warning in heard] == [str(warning) for warning in drawing.warnings]
    assert [warning.code for warning in drawing.warnings] == ["view_secondary_degraded"]


# -- the command line
@pytest.mark.parametrize("view", ["overview", "sequence", "memory", "debug"])
def test_the_runner_draws_the_bytes_of_the_api(view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["model=rnn", f"view={view}", "out=o", "formats=[dot]"]) == 0
    request = resolve(None, {"view": view})
    saved, stats = measures([request.options])
    torch.manual_seed(0)
    capture = {"save": "none", "saved_for_backward": saved, "out_stats": stats}
    trace = tl.trace(Rnn(width=8, steps=3).eval(), input_shape=(2, 8), capture=capture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchLensWarning)
        by_api = trace.draw(view=view).dot
    written = (tmp_path / "o" / "main.dot").read_text()
    timed = re.compile(r"t=[\d.]+ [mu]?s")
    assert timed.sub("t", written) == timed.sub("t", by_api)
    options_drawn = json.loads((tmp_path / "o" / "manifest.json").read_text())["figures"]["main"]["options"]
    if view == "overview":
        assert options_drawn["rolled"] == {"value": True, "set_by": "view:overview"}
        assert options_drawn["collapse"] == {"value": "100 to 220 nodes, near 160", "set_by": "view:overview"}


def test_a_file_of_the_user_may_use_every_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "mine.yaml").write_text(
        "question: What loops here?\nextends: overview\n"
        "draw:\n  color_by: flops\n  stack_by: auto\n  collapse: {band: [2, 300], target: 5}\n"
        "needs: [flops, several_passes]\ncaption: [coverage, quantity]\nfallback: {stack_by: drop}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["--config-dir", ".", "model=rnn", "view=mine", "out=o", "formats=[dot]"]) == 0
    written = (tmp_path / "o" / "main.dot").read_text()
    assert "passes not aligned: they are drawn as one" in written
    monkeypatch.setenv("TORCHLENS_CONF", str(tmp_path))
    torch.manual_seed(0)
    trace = tl.trace(Rnn(width=8, steps=3).eval(), input_shape=(2, 8), save="none")
    with pytest.warns(TorchLensWarning, match="view_secondary_degraded"):
        assert trace.draw(view="mine").dot == written
    assert main(["--config-dir", ".", "--help"]) == 0
    assert re.search(r"mine +What loops here\?", capsys.readouterr().out)
    assert main(["--config-dir", ".", "model=mlp", "view=mine", "out=p", "formats=[dot]"]) == 1
    assert "[view_single_pass_no_sequence]" in capsys.readouterr().err
