"""Every case holds in plain PyTorch, and in a trace."""

from __future__ import annotations

import builtins
import importlib
import pkgutil

import pytest
import torch

import torchlens as tl
from tests.cases import models
from tests.cases.adapter import record
from tests.cases.facts import FACTS, plain_problems, problems

NAMES = sorted(info.name for info in pkgutil.iter_modules(models.__path__))
# These import a large package.
HEAVY = {"bert_style_batch_encoding", "compiled_child"}
CASES = [pytest.param(name, marks=[pytest.mark.models] if name in HEAVY else [], id=name) for name in NAMES]


def load(name):
    case = importlib.import_module(f"tests.cases.models.{name}")
    assert case.EXPECT.keys() <= FACTS.keys()
    return case


@pytest.mark.parametrize("name", CASES)
def test_plain_pytorch_agrees_with_the_facts(name):
    assert list(plain_problems(load(name))) == []


@pytest.mark.parametrize("name", CASES)
def test_a_trace_agrees_with_the_facts(name):
    assert list(problems(load(name), record)) == []


@pytest.mark.parametrize("name", CASES)
def test_a_trace_replays(name):
    case = load(name)
    torch.manual_seed(0)
    model, args, kwargs = case.case()
    if "raises" in case.EXPECT:
        with pytest.raises(getattr(builtins, case.EXPECT["raises"])):
            tl.validation.validate_forward_pass(model, args, input_kwargs=kwargs)
        return
    report = tl.validation.validate_forward_pass(model, args, input_kwargs=kwargs, perturb=name not in HEAVY, budget=3)
    assert report.ok, report


def test_all_cases_are_here():
    assert len(NAMES) == 34
