"""Colours by values: the same from kept values, from statistics, from `tl.draw` and from the command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.base.errors import EvidenceError
from torchlens.drawings import Drawing
from torchlens.examples.mlp import Mlp
from torchlens.runner.main import main


def fills(drawing: Drawing) -> dict[str, str | None]:
    return {node.name: node.style.fill for node in drawing._scene.nodes}


def test_kept_values_and_statistics_tell_the_same_and_so_do_independent_means() -> None:
    torch.manual_seed(0)
    model, x = Mlp().eval(), torch.randn(2, 8)
    with torch.no_grad():
        kept = tl.trace(model, x)
        taken = tl.trace(model, x, save="none", capture={"out_stats": True})
        drawn = tl.draw(model, x, color_by="magnitude", collapse="none", file_format="dot")
    expected = kept.draw(color_by="magnitude", size_by="magnitude")
    assert taken.draw(color_by="magnitude", size_by="magnitude").dot == expected.dot
    assert fills(drawn) == fills(expected)
    means = [op.out.abs().mean().item() for op in kept.ops]
    assert expected.encoding is not None
    assert expected.encoding.color is not None
    low, high = expected.encoding.color.domain or (0, 0)
    means.append(x.abs().mean().item())
    assert (low, high) == pytest.approx((min(means), max(means)))
    # Nothing of it stays in the trace.
    assert kept.data.nodes.stats == [None] * len(kept.data.nodes)
    assert kept.data.record(1).stats is None


def test_without_values_or_statistics_it_is_refused() -> None:
    trace = tl.trace(nn.Linear(2, 2), torch.ones(1, 2), save="none")
    with pytest.raises(EvidenceError, match=r"\[encoding_evidence_missing\].*out_stats=True"):
        trace.draw(color_by="magnitude")


def test_an_op_whose_value_is_gone_is_left_out_and_told() -> None:
    trace = tl.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), torch.ones(1, 4), save=["tanh_1_2"])
    drawing = trace.draw(color_by="magnitude")
    assert drawing.encoding is not None
    assert drawing.encoding.color is not None
    assert "2 nodes have no magnitude" in drawing.encoding.color.notes


def test_a_function_is_told_the_ops_of_the_trace_with_their_values() -> None:
    trace = tl.trace(Mlp().eval(), torch.randn(2, 8))
    told: list[tl.Trace] = []

    def peak(op: object) -> float:
        told.append(op)  # type: ignore[arg-type]
        return float(op.out.max())  # type: ignore[attr-defined]

    drawing = trace.draw(color_by=peak)
    assert [op.label for op in told] == [node.name for node in drawing._scene.nodes]  # type: ignore[attr-defined]
    assert drawing.explain("linear_1_1").count("color_by peak") == 1


def test_the_command_records_what_the_encoding_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["model=mlp", "encoding=magnitude", "out=o", "formats=[dot]"]) == 0
    text = (tmp_path / "o" / "main.dot").read_text()
    assert "magnitude: " in text
    assert "no values" not in text
