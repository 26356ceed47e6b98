"""What a reader of a trace has to know comes as coded rows."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo
from torchlens.capture import advisories

X = torch.randn(2, 3, 8, 8)


def rows(trace: tl.Trace) -> dict[str, str]:
    return {row["code"]: row["text"] for row in trace.annotations["capture_advisories"]}


def quiet(model, *args, **options) -> tl.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tl.TorchLensWarning)
        return tl.trace(model, args, save="none", **options)


@pytest.fixture
def untold(monkeypatch):
    monkeypatch.setattr(advisories, "_told", set())


def test_an_ordinary_run_has_none():
    trace = quiet(zoo.Conv().eval(), X)
    assert trace.annotations["capture_advisories"] == []
    assert trace.outcome.advisories == []
    assert (trace.outcome.completed, trace.outcome.error, trace.outcome.values_kept) == (True, "", False)


@pytest.mark.usefixtures("untold")
def test_updated_statistics_are_told_once_per_process():
    with pytest.warns(tl.TorchLensWarning, match="batchnorm_train_stats_mutated") as caught:
        trace = tl.trace(zoo.Conv().train(), X)
    assert caught[0].filename == __file__
    assert "features.1" in rows(trace)["batchnorm_train_stats_mutated"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", tl.TorchLensWarning)
        again = tl.trace(zoo.Conv().train(), X)
    assert "batchnorm_train_stats_mutated" in rows(again)


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize(
    "model",
    [zoo.Conv().eval(), nn.BatchNorm2d(3, track_running_stats=False), nn.InstanceNorm2d(3)],
    ids=["eval", "untracked", "instance"],
)
def test_statistics_that_stay_are_not_told(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", tl.TorchLensWarning)
        trace = tl.trace(model, X)
    assert rows(trace) == {}


@pytest.mark.usefixtures("untold")
def test_drawing_updates_no_statistics():
    with warnings.catch_warnings():
        warnings.simplefilter("error", tl.TorchLensWarning)
        tl.draw(zoo.Conv().train(), X, file_format="dot")


def test_a_norm_of_its_own_name_is_told_by_its_address():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.InstanceNorm1d(4, track_running_stats=True), nn.BatchNorm1d(4))
    model[2].eval()
    text = rows(quiet(model, torch.randn(2, 4, 5)))["batchnorm_train_stats_mutated"]
    assert text.endswith("of 0, 1")


def test_long_lists_of_names_are_cut():
    model = nn.Sequential(*[nn.BatchNorm1d(4) for _ in range(5)])
    assert rows(quiet(model, torch.randn(2, 4)))["batchnorm_train_stats_mutated"].endswith("0, 1, 2 and 2 more")


def test_a_parameter_made_in_the_forward_is_told():
    class Late(nn.Module):
        def forward(self, x):
            self.lazy = nn.LazyLinear(4)
            return self.lazy(x)

    trace = quiet(Late(), torch.randn(2, 3))
    assert "lazy.weight, lazy.bias" in rows(trace)["parameter_created_in_forward"]
    assert {param.address for param in trace.params} == {"lazy.weight", "lazy.bias"}


def test_lazy_parameters_that_the_model_had_are_not_told():
    assert rows(quiet(nn.LazyLinear(4), torch.randn(2, 3))) == {}


class Threaded(nn.Module):
    def __init__(self, target=None):
        super().__init__()
        self.fc, self.other = nn.Linear(4, 4), target

    def forward(self, x):
        done = []
        worker = threading.Thread(target=lambda: done.append((self.other or self.fc)(x)))
        worker.start()
        worker.join()
        return self.fc(x) + 1


def test_modules_that_run_in_other_threads_are_told():
    trace = quiet(Threaded(), torch.randn(2, 4))
    assert "ops_in_other_threads" in rows(trace)
    assert trace.outcome.advisories == [rows(trace)["ops_in_other_threads"]]
    assert [op.func_name for op in trace.ops] == ["linear", "add"]


def test_other_models_in_other_threads_are_nobodys_business():
    stranger = nn.Linear(4, 4)

    def call(x):
        return stranger(x)

    trace = quiet(Threaded(call), torch.randn(2, 4))
    assert "ops_in_other_threads" not in rows(trace)


def test_rows_are_plain_data():
    for code, text in advisories.ADVISORIES.items():
        row = advisories.advisory(code, names="a", calls="b")
        assert row == {"code": code, "text": text.replace("{names}", "a").replace("{calls}", "b")}
    assert set(advisories.ADVISORIES) >= advisories.SHOWN
