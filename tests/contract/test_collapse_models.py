"""Folding of real networks: the counts of the reference, over all levels; and of every model that we have facts of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.honesty import check_rolled, check_unrolled, is_coarser, make
from tests.oracle import facts, zoo
from torchlens.plan.collapse.quality import readable_band
from torchlens.plan.graph import Plan
from torchlens.plan.pipeline import plan_schedule
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve

LEVELS = [k / 100 for k in range(101)]


def _vision(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        from torchvision import models

        return getattr(models, name)(weights=None, **options)

    return build


def _convnext() -> nn.Module:
    import timm

    return timm.create_model("convnext_tiny", pretrained=False)


def _gpt2() -> nn.Module:
    import transformers

    sizes: dict[str, Any] = {"n_layer": 12, "n_embd": 16, "n_head": 2, "vocab_size": 100, "n_positions": 64}
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends, use_cache=False))


def _bert() -> nn.Module:
    import transformers

    sizes: dict[str, Any] = {
        "num_hidden_layers": 12,
        "hidden_size": 48,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    return transformers.BertModel(transformers.BertConfig(**sizes, vocab_size=100, max_position_embeddings=64))


# Name -> (how to build it, nodes of auto, nodes of max).
REFERENCE: dict[str, tuple[Callable[[], nn.Module], int, int]] = {
    "resnet18": (_vision("resnet18"), 13, 11),
    "resnet50": (_vision("resnet50"), 13, 12),
    "vit_b_16": (_vision("vit_b_16"), 13, 6),
    "alexnet": (_vision("alexnet"), 24, 4),
    "vgg16": (_vision("vgg16"), 42, 4),
    "googlenet": (_vision("googlenet", init_weights=False), 22, 22),
    "mobilenet_v3_small": (_vision("mobilenet_v3_small"), 24, 20),
    "convnext_tiny": (_convnext, 10, 9),
    "gpt2_tiny": (_gpt2, 25, 17),
    "bert_tiny": (_bert, 21, 7),
}
TEXT = ("gpt2_tiny", "bert_tiny")


@cache
def _record(name: str) -> TraceData:
    model = REFERENCE[name][0]().eval()
    x = torch.randint(0, 100, (1, 8)) if name in TEXT else torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        return tl.trace(model, x, save="none").data


@pytest.mark.models
@pytest.mark.parametrize("name", REFERENCE)
def test_the_counts_of_the_reference(name: str) -> None:
    _, auto, most = REFERENCE[name]
    data = _record(name)
    plans = {mode: make(data, collapse=mode) for mode in ("auto", "max")}
    assert {mode: plan.collapse.nodes for mode, plan in plans.items() if plan.collapse} == {"auto": auto, "max": most}
    for plan in plans.values():
        check_unrolled(data, make(data), plan)


@pytest.mark.models
def test_what_the_reference_draws() -> None:
    def report(name: str) -> Any:
        return make(_record(name), collapse="auto").collapse

    assert report("resnet18").collapsed == ("layer1", "layer2", "layer3", "layer4")
    (fold,) = report("gpt2_tiny").folds
    assert (fold.name, len(fold.members)) == ("fold:transformer.h.0", 11)
    (fold,) = report("bert_tiny").folds
    assert (fold.name, len(fold.members)) == ("fold:encoder.layer.0", 11)
    assert "embeddings" not in report("bert_tiny").collapsed
    (segment,) = report("convnext_tiny").segments
    assert (segment.name, len(segment.members)) == ("segment:stages.2.blocks.0-8", 9)
    assert {"stem", "stages.2.downsample"} <= set(report("convnext_tiny").collapsed)
    assert "evened from 24 nodes" in report("convnext_tiny").reason


@pytest.mark.models
@pytest.mark.parametrize("name", ["resnet18", *TEXT])
def test_a_higher_level_never_shows_more(name: str) -> None:
    data = _record(name)
    schedule = plan_schedule(data, resolve(data, {}))
    places = [schedule.place(level) for level in LEVELS]
    counts = [schedule.at(level).visible_count for level in LEVELS]
    hidden = [set(schedule.at(level).collapsed_addresses) for level in LEVELS]
    assert places == sorted(places)
    assert counts == sorted(counts, reverse=True)
    assert all(a <= b for a, b in pairwise(hidden))
    plans = [make(data, collapse=schedule.steps[place].t) for place in dict.fromkeys(places)]
    for fine, coarse in pairwise(plans):
        assert is_coarser(fine, coarse)


# -- models that we have facts of
def _check(data: TraceData) -> None:
    """Honest and monotone at every step, unrolled and rolled; and a page, or a word on why not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _check_page(data, make(data, collapse="auto"))
        for rolled in (False, True):
            steps = plan_schedule(data, resolve(data, {"rolled": rolled})).steps
            counts = [step.visible_count for step in steps]
            assert counts == sorted(counts, reverse=True)
            chosen = steps[:: len(steps) // 12 + 1]
            plans = [make(data, collapse=mode, rolled=rolled) for mode in (*(step.t for step in chosen), "max")]
            for fine, coarse in pairwise(plans):
                assert is_coarser(fine, coarse)
            full = make(data, rolled=rolled)
            for plan in plans:
                (check_rolled if rolled else check_unrolled)(data, full, plan)


def _check_page(data: TraceData, page: Plan) -> None:
    report, band = page.collapse, readable_band(data)
    assert report is not None
    assert report.band == band
    assert report.nodes <= band or report.reason.startswith("no step reaches the band")
    assert report.planner == "quality"


@pytest.mark.parametrize("key", zoo.ZOO)
def test_hand_written_models_fold_honestly(key: str) -> None:
    factory, inputs, options = zoo.ZOO[key]
    torch.manual_seed(0)
    model = factory().train(options.get("train", False))
    args, kwargs = inputs()
    _check(tl.trace(model, args, input_kwargs=kwargs, save="none").data)


_OTHERS = [record for record in facts.RECORDS if "zoo" not in record["build"]]


@pytest.mark.models
@pytest.mark.parametrize("record", _OTHERS, ids=lambda record: record["key"])
def test_known_networks_fold_honestly(record: dict[str, Any]) -> None:
    _check(facts.trace_second_forward(record).data)
