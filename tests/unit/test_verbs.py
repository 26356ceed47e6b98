"""The verbs refuse before running, keep the caller's mode, and pin it where they say so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


class Counting(nn.Module):
    """Counts its runs, to prove that a refusal came first."""

    def __init__(self):
        super().__init__()
        self.linear, self.runs = nn.Linear(4, 2), 0

    def forward(self, x, scale=1.0):
        self.runs += 1
        return self.linear(x) * scale


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("trace_model_invalid", lambda m: tl.trace(lambda x: x, torch.ones(1))),
        ("trace_input_missing", tl.trace),
        ("trace_save_invalid", lambda m: tl.trace(m, torch.ones(1, 4), save="some")),
        ("input_rung_conflict", lambda m: tl.trace(m, torch.ones(1, 4), input_shape=(1, 4))),
        ("input_shape_invalid", lambda m: tl.trace(m, input_shape=(0, 4))),
        ("visualization_theme_invalid", lambda m: tl.draw(m, torch.ones(1, 4), theme="neon", file_format="dot")),
        ("draw_view_invalid", lambda m: tl.draw(m, torch.ones(1, 4), view="sped", file_format="dot")),
        ("output_path_invalid", lambda m: tl.draw(m, torch.ones(1, 4), path="no/such/folder/x.svg")),
    ],
)
def test_refusals_come_before_any_run(code, call):
    model = Counting()
    with pytest.raises(tl.TorchLensError) as caught:
        call(model)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"[{code}] ")
    assert "Fix: " in str(caught.value)
    assert model.runs == 0


def test_unknown_keywords_are_type_errors_before_any_run():
    model = Counting()
    with pytest.raises(TypeError, match="color_by"):
        tl.draw(model, torch.ones(1, 4), colour_by="time", file_format="dot")
    with pytest.raises(TypeError):
        tl.trace(model, torch.ones(1, 4), shape=(1, 4))
    assert model.runs == 0


def test_inputs_are_bound_as_documented():
    model = Counting()
    assert tl.trace(model, torch.ones(1, 4), input_kwargs={"scale": torch.tensor(2.0)}).nodes[1].path == "scale"
    assert tl.trace(model, (torch.ones(1, 4), 3.0)).outcome.completed
    assert tl.trace(model, input_kwargs={"x": torch.ones(1, 4)}).nodes[0].path == "x"
    declared = tl.trace(model, input_shape=(5, 4))
    assert declared.nodes[0].shape == (5, 4)
    assert declared.provenance.origin == "declared"
    assert model.runs == 4


def test_a_list_is_one_argument():
    class Sum(nn.Module):
        def forward(self, xs):
            return xs[0] + xs[1]

    trace = tl.trace(Sum(), [torch.ones(1), torch.ones(1)])
    assert [node.path for node in trace.nodes if node.kind == "input"] == ["xs.0", "xs.1"]


def test_draw_pins_and_restores():
    model = zoo.Conv().train()
    drawing = tl.draw(model, torch.randn(2, 3, 8, 8), file_format="dot")
    assert model.training
    assert drawing.receipt.state_verified
    assert drawing.receipt.policy == "eval_no_grad_restored"
    assert model.features[1].num_batches_tracked == 0
    assert "batchnorm_1_2" in drawing.dot


def test_draw_in_a_script_writes_a_free_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        tl.draw(nn.Linear(4, 2), torch.ones(1, 4))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["Linear-graph-2.pdf", "Linear-graph.pdf"]
    assert capsys.readouterr().out.split() == ["Linear-graph.pdf", "Linear-graph-2.pdf"]
