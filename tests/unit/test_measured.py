"""What a trace says about its values: by kept values, by statistics, and after loading."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.base.errors import InvalidArgumentError
from torchlens.records.nonfinite import Start


class Log(nn.Module):
    """A logarithm of what may be negative, three times over."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        for _ in range(3):
            y = torch.log(y * 1.0)
        return y


@pytest.fixture
def model() -> nn.Module:
    made = Log().eval()
    with torch.no_grad():
        made.fc.weight.fill_(1.0)
        made.fc.bias.zero_()
    return made


def test_an_op_says_what_it_holds_and_a_layer_where_its_passes_agree(model: nn.Module) -> None:
    trace = tl.trace(model, torch.full((1, 2), 0.5))
    assert [op.nonfinite for op in trace.ops if op.type == "log"] == ["finite", "neginf", "nan"]
    assert trace["linear_1_1"].nonfinite == "finite"
    with pytest.raises(InvalidArgumentError, match="layer_pass_ambiguous"):
        _ = trace["log_1_3"].nonfinite
    assert trace.first_nonfinite == (Start("log_1_3:2", ("neginf",), "op"), Start("log_1_3:3", ("nan",), "op"))


def test_it_comes_back_after_loading(model: nn.Module, tmp_path: Path) -> None:
    with torch.no_grad():
        model.fc.weight[0, 0] = torch.nan
    for save, capture in (("all", None), ("none", {"out_stats": True})):
        trace = tl.trace(model, torch.ones(1, 2), save=save, capture=capture)
        before = trace.first_nonfinite
        assert [(start.label, start.cause, start.sources) for start in before] == [
            ("linear_1_1", "parameter", ("fc.weight",)), ("log_1_3:2", "op", ()),
        ][: len(before)]  # fmt: skip
        trace.save(tmp_path / "log.tlt")
        back = tl.load(tmp_path / "log.tlt")
        assert back.first_nonfinite == before
        assert [op.nonfinite for op in back.nodes] == [op.nonfinite for op in trace.nodes]
        given = {"view": "debug", "file_format": "dot"}
        assert back.draw(**given).dot == trace.draw(**given).dot


def test_without_values_nothing_is_claimed(model: nn.Module) -> None:
    trace = tl.trace(model, -torch.ones(1, 2), save="none")
    assert {op.nonfinite for op in trace.nodes} == {"unchecked"}
    assert trace.first_nonfinite == ()


def test_the_facts_of_a_trace_are_as_they_were(model: nn.Module) -> None:
    """The exported schema has no word on it."""
    trace = tl.trace(model, -torch.ones(1, 2), capture={"out_stats": True})
    trace.check()
    assert "nonfinite" not in str(trace.to_dict())
