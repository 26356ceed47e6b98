"""Rules of `collapse_rules=` on recorded models, from the API, the command line, views, collapse and figure files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.bridged import check_arrows, check_rules
from tests.honesty import make
from torchlens.base.errors import TorchLensWarning
from torchlens.drawings import Drawing
from torchlens.examples.mlp import Mlp
from torchlens.runner.main import main
from torchlens.scene.model import TextLine
from torchlens.settings.layers import load_draw

FOLD_LINEAR = [{"class": "Linear", "do": "keep"}, {"op": "relu", "do": "hide"}]


class Attention(nn.Module):
    """Self-attention written with views and transposes."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        parts = self.qkv(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(*parts)
        return self.drop(self.out(y.transpose(1, 2).contiguous().reshape(n, length, width)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(8), Attention()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


@pytest.fixture(scope="module")
def trace() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(nn.Sequential(*[Block() for _ in range(4)]).eval(), torch.randn(1, 5, 8), save="none")


def _names(drawing: Drawing) -> list[str]:
    return [node.name for node in drawing._scene.nodes]


def _texts(drawing: Drawing) -> list[str]:
    return [line.text for line in drawing._scene.root if isinstance(line, TextLine)]


def test_every_attention_is_one_box_and_all_else_is_open(trace: tl.Trace) -> None:
    drawing = trace.draw(collapse_rules=[{"class": "Attention", "do": "fold"}])
    boxes = [node for node in drawing._scene.nodes if node.kind == "module"]
    assert [box.name for box in boxes] == [f"module:{k}.attn:1" for k in range(4)]
    ops = {name for name in trace.data.nodes.label if name.startswith("scaleddot")}
    assert ops.isdisjoint(_names(drawing))
    qualified = [{"class": "*test_collapse_rules.Attention", "do": "fold"}]
    assert trace.draw(collapse_rules=qualified).dot == drawing.dot


def test_a_fold_around_a_fold_is_the_box(trace: tl.Trace) -> None:
    drawing = trace.draw(collapse_rules=[{"class": "Attention", "do": "fold"}, {"class": "Block", "do": "fold"}])
    assert _names(drawing) == ["input_1", *(f"module:{k}:1" for k in range(4)), "output_1"]


@pytest.mark.parametrize("mode", ["auto", "max", 0.5])
def test_what_is_kept_is_open_in_every_mode(trace: tl.Trace, mode: Any) -> None:
    rules = [{"address": "2.mlp", "do": "keep"}]
    drawing = trace.draw(collapse=mode, collapse_rules=rules)
    assert {"cluster:2.mlp:1", "cluster:2:1"} <= {box.name for box in drawing._scene.boxes}
    assert "gelu_3_46" in _names(drawing)
    assert drawing.collapse_plan.context["collapse_rules"] == tuple(rules)
    assert [box.name for box in trace.draw(depth=1, collapse_rules=rules)._scene.boxes] == [
        "cluster:2:1",
        "cluster:2.mlp:1",
    ]


@pytest.mark.filterwarnings("ignore:.*collapse_rule_unused")
def test_plumbing_leaves_the_page_and_the_header_counts_on(trace: tl.Trace) -> None:
    rules: Any = load_draw("collapse", "plumbing")["collapse_rules"]
    hidden, plain = trace.draw(collapse_rules=rules[:-1]), trace.draw()
    assert _texts(hidden)[:3] == _texts(plain)[:3]
    count = len(plain._scene.nodes) - len(hidden._scene.nodes)
    assert _texts(hidden)[3] == f"{count} ops hidden by collapse_rules"
    middles = [line for edge in hidden._scene.edges for line in edge.middle]
    assert middles.count("via 2 hidden") == 4
    assert all(edge.dashed for edge in hidden._scene.edges if any("hidden" in line for line in edge.middle))
    boxed = trace.draw(collapse_rules=[*rules, {"class": "Attention", "do": "fold"}])
    assert not any("hidden by" in text for text in _texts(boxed))


def test_on_a_real_model_arrows_and_counts_are_those_of_the_trace(trace: tl.Trace) -> None:
    rules = [{"op": name, "do": "hide"} for name in ("permute", "contiguous", "unbind", "layer_norm", "dropout")]
    rules.append({"address": "1.mlp", "do": "keep"})
    for mode in ("none", 0.4, "auto", "max"):
        ruled = make(trace.data, collapse=mode, collapse_rules=rules)
        check_rules(trace.data, make(trace.data), ruled, rules)
        check_arrows(trace.data, make(trace.data), ruled)


def test_the_key_of_a_channel_says_that_hidden_ops_are_on_no_node(trace: tl.Trace) -> None:
    rules = [{"op": "permute", "do": "hide"}]
    state = trace.draw(collapse_rules=rules, color_by="bytes").encoding
    assert state is not None
    assert state.color is not None
    assert state.color.notes[0] == "4 ops hidden by collapse_rules: on no node"
    assert state.color.eligible - state.color.encoded == 4


def test_the_key_explains_the_arrows_around(trace: tl.Trace) -> None:
    line = "dashed arrow: leads over operations that are not drawn"
    rules = [{"op": "permute", "do": "hide"}]
    assert line in _texts(trace.draw(collapse_rules=rules, show_legend=True))
    assert line not in _texts(trace.draw(collapse_rules=rules))
    assert line not in _texts(trace.draw(show_legend=True))


# -- where rules come from
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.chdir(tmp_path)
    assert main(["model=mlp", "out=o", "formats=[dot]", "output=docs", *words]) == 0
    (path,) = (tmp_path / "o").glob("*.dot")
    return path.read_text()


def _api(**given: Any) -> str:
    torch.manual_seed(0)
    trace = tl.trace(Mlp().eval(), input_shape=(2, 8), save="none")
    trace.data.outcome.advisories.clear()
    return trace.draw(**given).dot


def test_the_command_line_draws_the_bytes_of_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "draw.collapse_rules=[{class: Linear, do: keep}, {op: relu, do: hide}]"
    drawn = _run(tmp_path, monkeypatch, "model.mode=eval", words)
    assert drawn == _api(collapse_rules=FOLD_LINEAR)
    assert "via 1 hidden" in drawn


def test_rules_in_files_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "draw: {collapse_rules: [{class: Linear, do: keep}, {op: relu, do: hide}]}"
    for group, text in (
        ("collapse", rules),
        ("views", f"question: which layers\n{rules}"),
        ("figures", f"main: {{{rules}}}"),
    ):
        (tmp_path / group).mkdir()
        (tmp_path / group / "mine.yaml").write_text(text)
    monkeypatch.setenv("TORCHLENS_CONF", str(tmp_path))
    for word in ("collapse=mine", "view=mine", "figures=mine"):
        drawn = _run(tmp_path, monkeypatch, "model.mode=eval", word)
        assert "1 op hidden by collapse_rules" in drawn
        (tmp_path / "o" / "main.dot").unlink()
    drawn = _run(tmp_path, monkeypatch, "model.mode=eval", "collapse=mine", "draw.collapse_rules=null")
    assert "hidden" not in drawn


def test_a_preset_that_finds_nothing_says_nothing_and_a_rule_of_the_users_own_does() -> None:
    layer = ("collapse:plumbing", load_draw("collapse", "plumbing"))
    trace = tl.trace(Mlp().train(), input_shape=(2, 8), save="none")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TorchLensWarning)
        assert not any("hidden" in text for text in _texts(trace._draw(None, {}, [layer])))
    with pytest.warns(TorchLensWarning, match=r"collapse_rule_unused\] collapse_rules\[0\] \(op: permute, do: hide\)"):
        trace.draw(collapse_rules=[{"op": "permute", "do": "hide"}])
