"""A drawing depends on facts, never on whether values were kept."""

from __future__ import annotations

import copy

import pytest
import torch

import torchlens as tl
from tests.models import recording as zoo
from torchlens.settings.options import options

MODELS = [(zoo.Conv, (2, 3, 8, 8)), (zoo.Loop, (2, 4)), (zoo.Several, (3, 4)), (zoo.Branch, (2, 4))]
SETTINGS = [
    {},
    {"depth": 1},
    {"rolled": True},
    {"show_buffers": "always"},
    {"color_by": "flops", "color_scale": "rank"},
]


@pytest.mark.parametrize(("factory", "shape"), MODELS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_same_dot_with_and_without_values(factory, shape, settings):
    assert set(settings) <= set(options())
    torch.manual_seed(0)
    model, x = factory().train(), torch.ones(shape)
    kept = tl.trace(copy.deepcopy(model), x, save="all").draw(file_format="dot", **settings).dot
    facts = tl.trace(model, x, save="none").draw(file_format="dot", **settings).dot
    assert kept == facts
