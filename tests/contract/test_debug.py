"""The view `debug` marks exactly what a plain run finds: own function mode, own hooks, `isnan` and `isinf` of torch."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn
from torch.overrides import TorchFunctionMode

import torchlens as tl
from tests.contract.test_encodings import SVG, texts
from tests.oracle import facts, zoo
from torchlens.base.colors import contrast, parse
from torchlens.base.errors import EvidenceError, TorchLensWarning
from torchlens.drawings import Drawing
from torchlens.runner.main import main
from torchlens.settings import catalog

NAN, INF = float("nan"), float("inf")
WORDS = {"NaN": "nan", "+Inf": "posinf", "-Inf": "neginf"}
_NODE = re.compile(r'\[id="([^"]*)" class="(\w+)" label=<(.*?)>(?: \w+=| ?\])', re.DOTALL)
_ROW = re.compile(r"nonfinite: (.*?)</TD>")


# -- an independent run
def held(tensor: torch.Tensor) -> frozenset[str]:
    """What one tensor holds beside finite numbers; a complex number with an infinite part counts as +Inf."""
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return frozenset()
    tensor = tensor.detach()
    nan = torch.isnan(tensor)
    found = {"nan"} if nan.any() else set[str]()
    if tensor.is_complex():
        return frozenset(found | ({"posinf"} if (torch.isinf(tensor) & ~nan).any() else set()))
    wide = tensor.double()
    found |= {"posinf"} if (wide == INF).any() else set()
    return frozenset(found | ({"neginf"} if (wide == -INF).any() else set()))


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


def held_in(value: object) -> frozenset[str]:
    return frozenset().union(*map(held, tensors_in(value)))


@dataclass
class Watch(TorchFunctionMode):
    """What each call of torch returned or wrote, in order, and what it was given."""

    calls: list[tuple[str, frozenset[str], frozenset[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = held_in((args, kwargs or {}))
        out = func(*args, **(kwargs or {}))
        made = args[0] if getattr(func, "__name__", "") == "__setitem__" else out
        if any(True for _ in tensors_in(made)):
            self.calls.append((getattr(func, "__name__", "?"), held_in(made), given))
        return out


def watched(model: nn.Module, args: tuple[object, ...]) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    with torch.no_grad(), Watch() as watch:
        model(*args)
    return watch.calls


# -- what the figure says
def rows_of(drawing: Drawing) -> dict[tuple[str, str], str]:
    """(kind, id) of each node of the DOT text -> what its row says, "" without one."""
    return {
        (kind, name): "".join(_ROW.findall(label)[:1]).replace("<BR/>", " ")
        for name, kind, label in _NODE.findall(drawing.dot)
        if not name.startswith("cluster:")
    }


def kinds_said(row: str) -> frozenset[str]:
    return frozenset(kind for word, kind in WORDS.items() if word in row.split(",")[0])


def marked_ops(drawing: Drawing, trace: tl.Trace) -> list[frozenset[str]]:
    """The kinds at each op, in order of execution; every op is on the page."""
    rows = rows_of(drawing)
    return [kinds_said(rows["op", op.label]) for op in trace.ops]


def captions(drawing: Drawing) -> list[str]:
    return [line.text for line in drawing._scene.root if getattr(line, "kind", "") == "caption"]


def counted(states: list[frozenset[str]]) -> str:
    """The caption's words for these ops."""
    counts = {word: sum(kind in one for one in states) for word, kind in WORDS.items()}
    found = ", ".join(f"{word} in {count}" for word, count in counts.items() if count) or "none"
    return f"nonfinite: checked {len(states)} of {len(states)} ops; found {found}"


# -- models
class Calls(nn.Module):
    """A model that is one function."""

    def __init__(self, run: Callable[..., object]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *args: torch.Tensor) -> object:
        return self.run(*args)


def repaired(x: torch.Tensor) -> torch.Tensor:
    y = torch.log(x)
    y.nan_to_num_(0.0)
    return y + 1


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y + 1
    y.div_(0.0)
    return y - y + z


def looped(x: torch.Tensor) -> torch.Tensor:
    for k in range(4):
        x = torch.sqrt(x - (2.0 if k == 2 else 0.0))
        x = x * 1.0
    return x


def masked(x: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(x, x.t())
    hidden = torch.masked_fill(scores, torch.ones_like(scores).triu(1).bool(), -INF)
    hidden[0] = -INF
    return torch.matmul(torch.softmax(hidden, -1), x)


ONES = torch.ones(3, 3)
HALF = torch.full((3, 3), 300.0).half()
MODELS: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "log of a negative number": (lambda x: torch.log(x - 2) + 1, (ONES,)),
    "nothing by nothing": (lambda x: (x - x) / (x - x), (ONES,)),
    "overflow in float16": (lambda x: x * x - 1, (HALF,)),
    "overflow in bfloat16": (lambda x: -torch.exp(x), (torch.full((2,), 100.0).bfloat16(),)),
    "inf minus inf": (lambda x: torch.exp(x * 1000) - torch.exp(x * 900), (ONES,)),
    "several kinds at once": (lambda x: torch.tensor([1.0, -1.0, 0.0]) / x, (torch.zeros(3),)),
    "masked softmax": (masked, (ONES,)),
    "nan in the input": (lambda x: torch.relu(x).sum(), (torch.tensor([1.0, NAN]),)),
    "one of several outputs": (lambda x: [part * 2 for part in torch.split(x / x, 1)], (torch.tensor([1.0, 0.0]),)),
    "in place, repaired": (repaired, (torch.tensor([1.0, -1.0]),)),
    "in place, broken": (broken, (torch.tensor([1.0, -1.0]),)),
    "one pass of a loop": (looped, (torch.full((2,), 0.5),)),
    "whole numbers": (lambda x: (x / 0).to(torch.int64).bitwise_and(1) > 0, (ONES,)),
    "complex": (lambda x: torch.complex(x, x / 0) * 2, (ONES,)),
    "complex nan": (lambda x: torch.complex(x, x * NAN).abs(), (ONES,)),
    "nothing wrong": (lambda x: torch.tanh(x) * 2, (ONES,)),
    "no elements": (lambda x: x[:0] / 0, (ONES,)),
}


@pytest.mark.parametrize("name", MODELS)
def test_marks_are_what_a_plain_run_finds(name: str) -> None:
    run, args = MODELS[name]
    model = Calls(run)
    plain = watched(model, tuple(arg.clone() for arg in args))
    for capture, save in ((None, "all"), ({"out_stats": True}, "none")):
        with torch.no_grad():
            trace = tl.trace(model, tuple(arg.clone() for arg in args), save=save, capture=capture)
        assert [op.func_name for op in trace.ops] == [name for name, _, _ in plain]
        drawing = trace.draw(view="debug", file_format="dot")
        assert not drawing.warnings
        states = [made for _, made, _ in plain]
        assert marked_ops(drawing, trace) == states
        assert counted(states) in captions(drawing)
        words = [op.nonfinite for op in trace.ops]
        assert words == [next(iter(one), "finite") if len(one) < 2 else "mixed" for one in states]
        # An op is called a start by what it was given and what it made.
        begun = [made and not (given if made != {"nan"} else "nan" in given) for _, made, given in plain]
        starts = {start.label for start in trace.first_nonfinite if start.cause == "op"}
        wanted = {op.label for op, flag in zip(trace.ops, begun, strict=True) if flag}
        assert starts == wanted, name
        said = {key[1] for key, row in rows_of(drawing).items() if key[0] == "op" and "starts here" in row}
        assert said == wanted


# -- where it comes from
class Owner(nn.Module):
    """Reads a parameter and a buffer, one after the other."""

    def __init__(self, weight: float = 1.0, offset: float = 0.0) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("offset", torch.full((3,), offset))
        self.norm = nn.BatchNorm1d(3)
        with torch.no_grad():
            self.fc.weight[1, 2] = weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.fc(x)) + self.offset)


def debug(model: nn.Module, x: object, **options: Any) -> tuple[tl.Trace, Drawing]:
    with torch.no_grad():
        trace = tl.trace(model.eval(), x)
    return trace, trace.draw(view="debug", file_format="dot", **options)


def test_a_parameter_is_named_as_the_source_and_no_op_is() -> None:
    model = Owner(weight=NAN).eval()
    for capture, save in ((None, "all"), ({"out_stats": True}, "none")):
        with torch.no_grad():
            trace = tl.trace(model, ONES, save=save, capture=capture)
        drawing = trace.draw(view="debug", file_format="dot")
        rows = rows_of(drawing)
        assert rows["op", "linear_1_1"] == "NaN, comes from @fc.weight"
        assert rows["op", "relu_1_2"] == "NaN"
        assert "first: @fc.weight read by linear_1_1 (NaN)" in captions(drawing)
        assert "parameters: @fc.weight (NaN)" in captions(drawing)
        (start,) = trace.first_nonfinite
        assert (start.label, start.cause, start.sources) == ("linear_1_1", "parameter", ("fc.weight",))
        assert not any("starts here" in row for row in rows.values())


def test_a_parameter_that_went_away_or_changed_is_not_known() -> None:
    model = Owner(weight=NAN).eval()
    with torch.no_grad():
        trace = tl.trace(model, ONES)
        model.fc.weight.nan_to_num_()
        rows = rows_of(trace.draw(view="debug", file_format="dot"))
        assert rows["op", "linear_1_1"] == "NaN, start not known"
        gone = tl.trace(Owner(weight=NAN).eval(), ONES)
    rows = rows_of(gone.draw(view="debug", file_format="dot"))
    assert rows["op", "linear_1_1"] == "NaN, start not known"
    assert [start.cause for start in gone.first_nonfinite] == ["unknown"]


def test_a_buffer_is_named_as_the_source_drawn_or_not() -> None:
    trace, drawing = debug(Owner(offset=INF), ONES)
    rows = rows_of(drawing)
    assert rows["buffer", "buffer:offset:1"] == "+Inf, starts here"
    assert rows["op", "add_1_3"] == "+Inf"
    assert "first: @offset (+Inf)" in captions(drawing)
    assert [start.cause for start in trace.first_nonfinite] == ["buffer"]
    hidden = Owner()
    hidden.norm.running_mean[0] = NAN
    trace, drawing = debug(hidden, ONES, show_buffers="meaningful")
    assert rows_of(drawing)["op", "batchnorm_1_4"] == "NaN, comes from @norm.running_mean"
    assert "first: @norm.running_mean (NaN)" in captions(drawing)


def test_what_a_norm_writes_into_its_buffers_in_training_is_checked_too() -> None:
    """One item per channel: the variance that is kept is divided by nothing, the output is not."""
    norm = nn.BatchNorm1d(2)
    norm.running_mean[1] = INF
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = tl.trace(norm.train(), torch.randn(4, 2))
        drawing = trace.draw(view="debug", file_format="dot")
    rows = rows_of(drawing)
    assert {name: row for (kind, name), row in rows.items() if kind == "buffer" and row} == {
        "buffer:running_mean:1": "+Inf, starts here", "buffer:running_mean:2": "+Inf",
    }  # fmt: skip
    assert [start.label for start in trace.first_nonfinite] == [trace["running_mean:1"].label]


def test_an_input_and_a_constant_are_starts_themselves() -> None:
    wrong = torch.tensor([INF, 1.0])
    _, drawing = debug(Calls(lambda x: x + wrong), torch.tensor([NAN, 1.0]))
    rows = rows_of(drawing)
    assert rows["input", "input_1"] == "NaN, starts here"
    assert rows["constant", "constant_1"] == "+Inf, starts here"
    assert rows["op", "add_1_1"] == "NaN"
    assert rows["output", "output_1"] == "NaN"


def test_memory_that_was_never_written_is_not_checked() -> None:
    def fill(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y.copy_(x)
        return y / 0

    trace, drawing = debug(Calls(fill), ONES)
    assert [op.nonfinite for op in trace.ops] == ["unchecked", "finite", "posinf"]
    assert rows_of(drawing)["op", "emptylike_1_1"] == "not checked"
    assert "nonfinite: checked 2 of 3 ops; found +Inf in 1" in captions(drawing)
    assert rows_of(drawing)["op", "div_1_3"] == "+Inf, starts here"


def test_what_was_not_kept_is_not_checked_and_never_finite() -> None:
    trace = tl.trace(Calls(lambda x: torch.log(x - 2) + 1), ONES, save=["log_1_2"])
    drawing = trace.draw(view="debug", file_format="dot")
    rows = rows_of(drawing)
    assert rows["op", "log_1_2"] == "NaN, start not known"
    assert rows["op", "sub_1_1"] == rows["op", "add_1_3"] == "not checked"
    assert "nonfinite: checked 1 of 3 ops; found NaN in 1" in captions(drawing)
    assert "first: log_1_2 (NaN, start not known)" in captions(drawing)
    assert not drawing.warnings


def test_with_nothing_checked_there_is_no_mark_but_a_warning_and_a_line() -> None:
    trace = tl.trace(Calls(lambda x: torch.log(x - 2)), ONES, save="none")
    for given in ({"view": "debug"}, {"show_nonfinite": True}, {"node_label_fields": ["name", "nonfinite"]}):
        with pytest.warns(TorchLensWarning, match="view_nonfinite_not_checked"):
            drawing = trace.draw(file_format="dot", **given)
        assert [warning.code for warning in drawing.warnings] == ["view_nonfinite_not_checked"]
        assert "nonfinite status not checked: no saved activations" in captions(drawing)
        assert not any(rows_of(drawing).values())
        assert "wedged" not in drawing.dot
    assert trace.first_nonfinite == ()


# -- several ops in one node
def test_rolled_nodes_tell_the_passes() -> None:
    trace, drawing = debug(Calls(looped), torch.full((2,), 0.5), rolled=True)
    rows = rows_of(drawing)
    plain = [made for name, made, _ in watched(Calls(looped), (torch.full((2,), 0.5),)) if name == "sqrt"]
    assert plain == [frozenset(), frozenset(), {"nan"}, {"nan"}]
    assert rows["op", "sqrt_1_2"] == "NaN in passes 3-4, starts in pass 3"
    assert counted([made for _, made, _ in watched(Calls(looped), (torch.full((2,), 0.5),))]) in captions(drawing)
    unrolled = rows_of(trace.draw(view="debug", file_format="dot"))
    assert [unrolled["op", f"sqrt_1_2:{k}"] for k in range(1, 5)] == ["", "", "NaN, starts here", "NaN"]


class Block(nn.Module):
    """Four ops, one of which may go wrong."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.fc, self.wrong = nn.Linear(3, 3), wrong

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.fc(x))
        return torch.log(y - 2.0) if self.wrong else torch.exp(y - 2.0)


def test_boxes_count_their_ops() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(k == 1) for k in range(4)])
    _, drawing = debug(model, ONES, depth=1)
    rows = rows_of(drawing)
    boxes = [rows["module", f"module:{k}:1"] for k in range(4)]
    assert boxes == ["", "NaN in 1 of 4 ops, starts at log_1_8", "NaN in 4 of 4 ops", "NaN in 4 of 4 ops"]
    _, drawing = debug(model, ONES, collapse="max", fold_repeats=True)
    said = " ".join(row for row in rows_of(drawing).values() if row)
    assert "NaN in 9 of 16 ops, starts at log_1_8" in said or sum(map(int, re.findall(r"in (\d+) of", said))) == 9
    _, drawing = debug(model, ONES, module="2")
    assert "nonfinite: checked 4 of 4 ops; found NaN in 4" in captions(drawing)
    assert "first: log_1_8 (NaN) outside this module" in captions(drawing)


# -- real models
def _plant(model: nn.Module) -> str:
    """A NaN in the middle parameter; its address."""
    floats = [(name, p) for name, p in model.named_parameters() if p.is_floating_point() and p.numel()]
    name, param = floats[len(floats) // 2]
    with torch.no_grad():
        param.view(-1)[0] = NAN
    return name


def _hooked(model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> list[tuple[str, frozenset[str]]]:
    """What each call of a module without children returned, in the order in which they returned."""
    names = {module: name for name, module in model.named_modules()}
    seen: list[tuple[str, frozenset[str]]] = []

    def hook(module: nn.Module, given: object, out: object) -> None:
        seen.append((names[module], held_in(out)))

    handles = [m.register_forward_hook(hook) for m in model.modules() if not list(m.children())]
    try:
        torch.manual_seed(2)
        with torch.no_grad():
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


_REAL = [
    record
    for record in facts.RECORDS
    if record["key"]
    in (
        "tv_resnet18", "tv_mobilenet_v3_small", "tv_squeezenet1_1", "tv_vit_b_16", "tv_efficientnet_b0",
        "tv_swin_t", "hf_gpt2_lm", "hf_bert_mlm_masked", "hf_llama", "timm_edgenext_xx_small", "timm_poolformer_s12",
        "zoo_rnn_loop", "zoo_rnn_cell_sequence", "zoo_shared_weights", "zoo_nested_loops", "zoo_lstm_module",
        "zoo_gru_bidirectional", "zoo_frozen_parameters", "zoo_mha_functional", "zoo_mixed_dtypes",
    )
]  # fmt: skip


@pytest.mark.models
@pytest.mark.parametrize("record", _REAL, ids=lambda record: record["key"])
def test_a_nan_planted_in_a_real_model_is_found_where_hooks_find_it(record: dict[str, Any]) -> None:
    model = zoo.build_model(record)
    if not any(p.is_floating_point() for p in model.parameters()):
        pytest.skip("no parameters")
    planted = _plant(model)
    args, kwargs = zoo.make_inputs(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = _hooked(model, args, kwargs)
        torch.manual_seed(2)
        with torch.no_grad():
            trace = tl.trace(model, args, input_kwargs=kwargs, save="none", capture={"out_stats": True})
            drawing = trace.draw(view="debug", file_format="dot")
    rows, data = rows_of(drawing), trace.data
    leaves = {name for name, module in model.named_modules() if not list(module.children())}
    calls = [call for call in data.calls if data.modules[call.module].address in leaves]
    told: dict[str, list[frozenset[str]]] = {}
    for call in calls:
        labels = [(data.nodes.kind[node], data.nodes.label[node]) for node, _ in call.outputs]
        told.setdefault(data.modules[call.module].address, []).append(
            frozenset().union(*(kinds_said(rows.get(key, "")) for key in labels))
        )
    wanted: dict[str, list[frozenset[str]]] = {}
    for name, kinds in plain:
        wanted.setdefault(name, []).append(kinds)
    assert any(kinds for found in wanted.values() for kinds in found), "the NaN must do something"
    assert told == wanted
    starts = trace.first_nonfinite
    assert next(start.sources for start in starts if "nan" in start.kinds and start.cause == "parameter") == (planted,)
    assert f"parameters: @{planted} (NaN)" in captions(drawing)
    ops = [op for op in trace.ops if not op.synthetic]
    watch = watched(model, args) if not kwargs else []
    if len(watch) == len(ops):  # else functions that torch writes in Python ran several ops
        assert [kinds_said(rows["op", op.label]) for op in ops] == [made for _, made, _ in watch]


# -- the view and its figure
def test_the_view_is_its_settings_spelled_out_and_a_keyword_wins() -> None:
    trace, drawing = debug(Owner(weight=NAN), ONES)
    spelled = trace.draw(
        file_format="dot", collapse="none", show_buffers="always", show_redundant_args=True, show_orphans=True,
        show_exceptions=True, show_nonfinite=True, show_legend=True,
    )  # fmt: skip
    body = drawing.dot.partition("input_1")
    assert body[2] == spelled.dot.partition("input_1")[2]
    quiet = trace.draw(view="debug", file_format="dot", show_nonfinite=False)
    assert not any(rows_of(quiet).values())
    assert not [line for line in captions(quiet) if "nonfinite" in line or "first" in line]
    assert captions(quiet) == ["usual dtype float32, device cpu"]


def test_only_what_is_unusual_has_a_row_for_its_dtype() -> None:
    def mixed(x: torch.Tensor) -> object:
        for k in range(2):
            x = torch.relu(x.half() if k else x) * 1.0
        return (x.float() > 0), torch.tanh(x.float()).neg()

    trace, drawing = debug(Calls(mixed), ONES)
    assert "usual dtype float32, device cpu" in captions(drawing)
    said = dict(re.findall(r'\[id="([^"]*)" class="op" label=<[^\n]*?dtype ([^<]*)<', drawing.dot))
    assert said == {op.label: op.dtype for op in trace.ops if op.dtype != "float32"}
    assert len(said) >= 3


def test_a_rolled_layer_whose_passes_differ_says_so() -> None:
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.Sigmoid()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for k in range(2):
                x = self.act(x + 1).half() if k == 0 else self.act(x + 1)
            return x

    _, drawing = debug(Halves(), ONES, rolled=True)
    text = drawing.dot
    assert "dtype float32 or float16" in text or "dtype float16" in text


def test_more_ops_than_a_page_can_show_are_refused() -> None:
    trace = tl.trace(Calls(lambda x: [x + k for k in range(2001)][-1]), torch.ones(1), save="none")
    with pytest.raises(EvidenceError, match="view_above_detail_budget"):
        trace.draw(view="debug", file_format="dot")


def test_draw_and_the_command_measure_what_the_view_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Owner(weight=NAN).eval()
    drawing = tl.draw(model, ONES, view="debug", file_format="dot", show_buffers="always")
    assert not [warning for warning in drawing.warnings if warning.code == "view_nonfinite_not_checked"]
    assert counted([frozenset({"nan"})] * 4) in captions(drawing)
    monkeypatch.chdir(tmp_path)
    assert main(["model=mlp", "view=debug", "out=o", "formats=[dot]"]) == 0
    text = (tmp_path / "o" / "main.dot").read_text()
    assert "nonfinite: checked" in text
    assert "found none" in text


def everything() -> tuple[tl.Trace, dict[str, Any]]:
    """A trace with every motif, kept in part so that some of it is not checked."""

    def run(x: torch.Tensor) -> object:
        a, b = torch.log(x - 2), torch.exp(x * 1000)
        return torch.relu(a), b, -b, torch.tensor([1.0, -1.0, 0.0]) / (x - x), torch.tanh(x)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), Calls(run))
    with torch.no_grad():
        trace = tl.trace(model.eval(), ONES, save=lambda op: op.type != "tanh")
    return trace, {"view": "debug"}


@pytest.mark.parametrize("engine", ["embedded", "system"])
@pytest.mark.parametrize("theme", catalog.names("theme"))
def test_every_text_reads_well_on_every_half(theme: str, engine: str) -> None:
    if engine == "system" and shutil.which("dot") is None:
        pytest.skip("no Graphviz program")
    trace, given = everything()
    svg = trace.draw(theme=theme, file_format="svg", engine=engine, **given).data
    # Node by node: in the box around a half there is room for what is beside the node.
    groups = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if "node" in (g.get("class") or "")]
    found = [text for group in groups for text in texts(ET.tostring(group))]
    assert len(groups) == len(rows_of(trace.draw(file_format="dot", **given)))
    on_motifs = [fill for _, _, behind in found for fill in behind if fill in ("#d55e00", "#e69f00", "#cc79a7")]
    assert set(on_motifs) == {"#d55e00", "#e69f00", "#cc79a7"}
    for text, color, behind in found:
        for fill in behind:
            assert contrast(color, fill) >= 4.5, (text, color, fill)


@pytest.mark.parametrize("file_format", ["png", "pdf"])
def test_the_halves_are_in_the_picture(file_format: str, tmp_path: Path) -> None:
    trace, given = everything()
    path = tmp_path / f"all.{file_format}"
    trace.draw(path, dpi=50, **given)
    if file_format == "pdf":
        if shutil.which("pdftoppm") is None:
            pytest.skip("no reader of PDF")
        subprocess.run(["pdftoppm", "-r", "50", "-png", str(path), str(tmp_path / "page")], check=True)
        path = next(tmp_path.glob("page*.png"))
    with Image.open(path) as image:
        count = {rgb: number for number, rgb in image.convert("RGB").getcolors(1 << 24) or ()}
    for color in ("#d55e00", "#e69f00", "#cc79a7"):
        red, green, blue = parse(color)
        near = sum(n for (r, g, b), n in count.items() if max(abs(r - red), abs(g - green), abs(b - blue)) < 8)
        assert near > 200, (color, near)


def test_the_caption_lists_starts_in_order_and_of_many_those_of_nan() -> None:
    def many(x: torch.Tensor) -> object:
        masks = [x.masked_fill(x > k, -INF) for k in range(-7, 0)]
        return masks, torch.log(x - 2), torch.exp(x * 1000)

    trace, drawing = debug(Calls(many), ONES)
    assert len(trace.first_nonfinite) == 9
    found = [f"maskedfill_{k + 1}_{2 * k + 2} (-Inf)" for k in range(4)]
    assert " ".join(captions(drawing)[2:]) == f"first: {', '.join(found)}, log_1_16 (NaN), +4 more"
    _, drawing = debug(Calls(lambda x: (torch.exp(x * 1000), torch.log(x - 2))), ONES)
    assert captions(drawing)[-1] == "first: exp_1_2 (+Inf), log_1_4 (NaN)"
