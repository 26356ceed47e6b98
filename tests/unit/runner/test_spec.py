"""Model and input keys: what is combined, what is refused, and which names a factory may call."""

from __future__ import annotations

from typing import Any

import pytest

from torchlens.base.errors import ConfigError, InputError
from torchlens.runner.spec import ModelSpec, read_model
from torchlens.settings import catalog

FACTORY = {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": 3}


def _read(chosen: dict[str, Any] | None = None, *, trust: tuple[str, ...] = (), **keys: Any) -> ModelSpec:
    return read_model("m", "m.yaml", {"factory": FACTORY, **keys}, chosen or {}, trust=trust)


@pytest.mark.parametrize("name", catalog.names("model"))
def test_every_shipped_model_is_well_formed_and_downloads_nothing(name: str) -> None:
    entry = catalog.load("model", name)
    spec = read_model(name, str(entry.path), entry.data, {})
    assert spec.input.shape
    assert spec.seed == 0
    text = str(spec.factory)
    assert "from_pretrained" not in text
    assert "'pretrained': True" not in text
    assert spec.factory.get("weights") is None


def test_the_models_that_the_documents_speak_of() -> None:
    assert set(catalog.names("model")) >= {
        "demo", "rnn", "mlp", "resnet18", "resnet50", "vit_b_16", "convnext_tiny", "gpt2_tiny", "bert_tiny",
    }  # fmt: skip


def test_defaults_are_eval_mode_and_seed_zero() -> None:
    spec = _read({"shape": [1, 2]})
    assert (spec.mode, spec.seed) == ("eval", 0)


# -- inputs
def test_auto_lays_the_chosen_keys_over_the_declared_ones() -> None:
    declared = {"shape": [1, 2], "high": 5}
    assert _read(input=declared).input.shape == [1, 2]
    assert _read({"kind": "auto", "shape": [4, 2]}, input=declared).input.shape == [4, 2]
    assert dict(_read({"dtype": "int64"}, input=declared).input.values) == {"high": 5, "dtype": "int64"}
    assert _read({"path": "x.pt"}, input={"shape": [1, 2]}).input.path == "x.pt"
    assert _read({"shape": [3, 2]}, input={"path": "x.pt"}).input.path is None


def test_the_other_kinds_ignore_the_declared_input() -> None:
    declared = {"shape": [1, 2], "high": 5}
    spec = _read({"kind": "shape", "shape": {"x": [4, 2], "y": [1]}, "dtype": {"y": "int64"}}, input=declared)
    assert spec.input.shape == {"x": [4, 2], "y": [1]}
    assert dict(spec.input.values) == {"dtype": {"y": "int64"}}
    assert _read({"kind": "tensor", "path": "x.npy"}, input=declared).input.path == "x.npy"


def test_a_picture_takes_its_size_and_normalisation_from_the_model() -> None:
    declared = {"shape": [1, 3, 8, 8], "mean": [0.5, 0.5, 0.5], "std": [2, 2, 2], "dtype": "float32"}
    for chosen in ({"kind": "image"}, {"kind": "image", "path": "a.png"}, {"path": "a.JPG"}):
        spec = _read(dict(chosen), input=declared).input
        assert (spec.kind, spec.shape, spec.mean, spec.std) == ("image", [1, 3, 8, 8], (0.5,) * 3, (2.0,) * 3)
        assert spec.path == chosen.get("path")
    assert _read({"kind": "image", "shape": [1, 1, 4, 4], "std": 2, "mean": 1}, input=declared).input.std == (2.0,)
    # Without a picture, what normalises one is of no account.
    assert _read(input=declared).input.kind == "shape"


def test_keywords_and_texts() -> None:
    named = {"ids": {"shape": [1, 8], "dtype": "int64"}, "flag": True, "sizes": [1, 2], "opts": {"a": 1}}
    spec = _read({"kind": "kwargs", "kwargs": {**named, "m": {"path": "m.pt"}}}).input
    assert (spec.kind, spec.files) == ("kwargs", ("m.pt",))
    assert _read({"text": "hello"}, input={"shape": [1, 2]}).input.text == "hello"
    assert _read(input={"text": "hello"}).input.kind == "text"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"checkpoint": 3}, "checkpoint is not the name of a file of weights"),
        ({"checkpoint": "x.txt"}, "Allowed: .pt, .pth, .bin, .safetensors"),
        ({"tokenizer": "bert"}, "tokenizer has no _target_"),
    ],
)
def test_wrong_weights_and_tokenizers(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read({"shape": [1]}, **keys)
    assert words in str(caught.value)


def test_what_a_tokenizer_calls_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"\[config_target_untrusted\] m.yaml: tokenizer._target_ calls 'os.system'"):
        _read({"shape": [1]}, tokenizer={"_target_": "os.system"})


def test_nothing_to_put_in_is_refused() -> None:
    with pytest.raises(InputError, match=r"\[trace_input_missing\] m.yaml: nothing says what goes into the model"):
        _read()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"kind": "video"}, "kind is 'video'. Allowed: auto, shape, tensor, image, text, kwargs"),
        ({"kind": "image"}, "shape is missing: a picture needs [N, C, H, W]"),
        ({"kind": "image", "shape": [1, 5, 8, 8]}, "a picture needs [N, C, H, W], with 1 or 3 channels"),
        ({"kind": "image", "shape": [1, 3, 8, 8], "mean": [0.5]}, "mean is not one number per channel"),
        ({"kind": "image", "shape": [1, 3, 8, 8], "std": [1, 0, 1]}, "std has a zero"),
        ({"kind": "image", "shape": [1, 3, 8, 8], "path": "x.pt"}, "path is not the name of a picture"),
        ({"kind": "image", "shape": [1, 3, 8, 8], "dtype": "int64"}, "dtype does not go with a picture"),
        ({"kind": "text"}, "text is missing: input=text needs input.text="),
        ({"kind": "text", "text": 3}, "text is not a text"),
        ({"text": "hi", "dtype": "int64"}, "dtype does not go with a text"),
        ({"kind": "kwargs"}, "kwargs is missing: write input.kwargs.NAME=VALUE"),
        ({"kind": "kwargs", "kwargs": 3}, "kwargs is not a mapping"),
        ({"kwargs": {"x": {"shape": [0]}}}, "shape is not a list of positive whole numbers"),
        ({"kwargs": {"x": {"shape": [[1], [2]]}}}, "shape is one shape"),
        ({"kwargs": {"x": {"shape": [1], "dtype": "x"}}}, "dtype is 'x'"),
        ({"kwargs": {"x": {"path": "x.pt", "low": 1}}}, "low goes with random values"),
        ({"kwargs": {"x": {"path": "x.txt"}}}, "path is not the name of a tensor file"),
        ({"shape": [1, 2], "mean": [1]}, "mean does not go with random values"),
        ({"kind": "shape"}, "shape is missing"),
        ({"kind": "tensor"}, "path is missing"),
        ({"shap": [1]}, "shap is not a known key"),
        ({"shape": []}, "shape is not a list of positive whole numbers"),
        ({"shape": [1, 0]}, "shape is not"),
        ({"shape": [1, True]}, "shape is not"),
        ({"shape": [[1, 2], 3]}, "shape is not"),
        ({"shape": "1,2"}, "shape is not"),
        ({"shape": {"x": 3}}, "shape is not"),
        ({"shape": [1], "dtype": "float31"}, "dtype is 'float31'"),
        ({"shape": [1], "high": "x"}, "high is not a number"),
        ({"shape": {"x": [1]}, "dtype": {"y": "int64"}}, "dtype says something of 'y'"),
        ({"shape": [[1], [2]], "low": [0, 0, 0]}, "low says something of 2"),
        ({"path": "x.txt"}, "path is not the name of a tensor file"),
        ({"path": "x.pt", "dtype": "int64"}, "dtype goes with random values"),
    ],
)
def test_wrong_inputs_name_the_key(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(chosen)
    assert str(caught.value).startswith("[config_invalid] input: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"factory": None}, "factory is missing"),
        ({"factory": {"width": 3}}, "factory is missing or has no _target_"),
        ({"mode": "test"}, "mode is 'test'. Allowed: eval, train"),
        ({"seed": "x"}, "seed is not a whole number"),
        ({"model": 3}, "model is not a known key"),
        ({"input": {"kind": "shape"}}, "input.kind is not a known key"),
        ({"input": [1, 2]}, "input is not a mapping"),
    ],
)
def test_wrong_model_keys_name_the_file_and_key(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read({"shape": [1]}, **keys)
    assert str(caught.value).startswith("[config_invalid] m.yaml: ")
    assert words in str(caught.value)


# -- targets
@pytest.mark.parametrize(
    "target",
    ["os.system", "torch.load", "torch.hub.load", "builtins.eval", "torchlens.run.main", "timmy.x", "mynet.Net"],
)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_untrusted_targets_are_refused_at_any_depth(target: str, depth: int) -> None:
    factory: dict[str, Any] = {"_target_": target}
    if depth:
        factory = {"_target_": "torch.nn.Sequential", "_args_": [factory]}
    if depth == 2:
        factory = {"_target_": "torch.nn.Sequential", "inner": {"deep": factory}}
    with pytest.raises(ConfigError) as caught:
        _read({"shape": [1]}, factory=factory)
    assert caught.value.code == "config_target_untrusted"
    assert target in str(caught.value)
    assert f"trust=[{target.partition('.')[0]}.*]" in str(caught.value)


@pytest.mark.parametrize("pattern", ["mynet.*", "mynet", "mynet.Net", "my*"])
def test_trust_covers_a_name_or_what_is_below_it(pattern: str) -> None:
    factory = {"_target_": "mynet.Net"}
    assert _read({"shape": [1]}, factory=factory, trust=(pattern,)).factory == factory
    with pytest.raises(ConfigError, match="config_target_untrusted"):
        _read({"shape": [1]}, factory={"_target_": "other.Net"}, trust=(pattern,))


def test_equal_specs_share_a_recording_and_different_ones_do_not() -> None:
    first = _read(input={"shape": [1, 2]})
    assert first.key == _read({"shape": [1, 2]}, input={"shape": [9, 9]}).key
    others = [_read({"shape": [2, 2]}), _read({"shape": [1, 2]}, mode="train"), _read({"shape": [1, 2]}, seed=1)]
    others.append(_read({"shape": [1, 2], "dtype": "float64"}))
    others.append(_read({"shape": [1, 2]}, factory={**FACTORY, "bias": False}))
    others.append(_read({"shape": [1, 2]}, checkpoint="x.pt"))
    others += [_read({"kind": "kwargs", "kwargs": {"x": value}}) for value in (1, 2)]
    others += [_read({"kind": "image", "shape": [1, 3, 4, 4]}), _read({"text": "a"}), _read({"text": "b"})]
    assert len({spec.key for spec in (first, *others)}) == 12
