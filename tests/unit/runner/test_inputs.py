"""What goes into a model: random values, files, pictures, texts and keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from torchlens.base.errors import InputError, UnavailableError
from torchlens.runner.build import make_tokenizer, record
from torchlens.runner.input_spec import InputSpec
from torchlens.runner.inputs import Arguments, arguments
from torchlens.runner.spec import ModelSpec

LINEAR = {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": 3}


def _make(spec: InputSpec, model: torch.nn.Module) -> Arguments:
    return arguments(spec, model, tokenizer=lambda: make_tokenizer(ModelSpec("m", {}, spec, "eval", 0), model))


def test_a_bare_shape_is_left_to_trace() -> None:
    model = torch.nn.Linear(2, 3)
    assert _make(InputSpec(shape=[1, 2]), model) == Arguments({"input_shape": (1, 2)})
    assert _make(InputSpec(shape=[[1, 2], [3]]), model).call == {"input_shape": ((1, 2), (3,))}
    assert _make(InputSpec(shape={"x": [1, 2]}), model).call == {"input_shape": {"x": (1, 2)}}


def test_values_of_a_range_and_dtype() -> None:
    model = torch.nn.Linear(2, 3)
    args = _make(InputSpec(shape=[500], values={"dtype": "int32", "low": 3, "high": 6}), model)
    call, provenance = args.call, args.provenance
    (made,) = call["x"]
    assert made.dtype == torch.int32
    assert set(made.tolist()) == {3, 4, 5}
    assert provenance is not None
    assert (provenance.origin, provenance.tensors) == ("declared", (((500,), "int32", "cpu"),))
    (floats,) = _make(InputSpec(shape=[500], values={"low": -2, "high": -1}), model).call["x"]
    assert floats.dtype == torch.float32
    assert -2 <= floats.min() < floats.max() < -1


def test_values_per_keyword_and_position() -> None:
    model = torch.nn.Linear(2, 3)
    spec = InputSpec(shape={"a": [2], "b": [3]}, values={"dtype": {"a": "int64"}, "high": {"a": 9}})
    named = _make(spec, model).call["input_kwargs"]
    assert (named["a"].dtype, named["b"].dtype) == (torch.int64, torch.float32)
    first, second = _make(InputSpec(shape=[[2], [3]], values={"dtype": ["bool", "float16"]}), model).call["x"]
    assert (first.dtype, second.dtype, second.shape) == (torch.bool, torch.float16, (3,))


def test_a_range_keeps_the_dtype_that_the_model_wants() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(50, 4), torch.nn.Linear(4, 2))
    (ids,) = _make(InputSpec(shape=[1, 8], values={"high": 3}), model).call["x"]
    assert ids.dtype == torch.int64
    assert ids.max() < 3


def test_tensors_of_files(tmp_path: Path) -> None:
    import numpy

    made = torch.arange(4.0).reshape(2, 2)
    torch.save(made, tmp_path / "x.pt")
    numpy.save(tmp_path / "x.npy", made.numpy())
    for name in ("x.pt", "x.npy"):
        args = _make(InputSpec(path=str(tmp_path / name)), torch.nn.Linear(2, 3))
        call, provenance = args.call, args.provenance
        assert torch.equal(call["x"], made)
        assert provenance is None
    data = record(ModelSpec("m", LINEAR, InputSpec(path=str(tmp_path / "x.pt")), "eval", 0))
    assert data.provenance.origin == "user"


def test_a_file_with_code_in_it_is_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    torch.save(Trap(), tmp_path / "trap.pt")
    with pytest.raises(InputError, match=r"\[input_file_unreadable\].* holds more than tensors") as caught:
        _make(InputSpec(path=str(tmp_path / "trap.pt")), torch.nn.Linear(2, 3))
    assert "weights_only" not in str(caught.value)  # no advice to run it
    assert not (tmp_path / "sprung").exists()


# -- pictures
def test_a_generated_picture_is_the_same_every_time() -> None:
    spec = InputSpec(kind="image", shape=[2, 3, 16, 24])
    first, again = _make(spec, torch.nn.ReLU()), _make(spec, torch.nn.ReLU())
    batch = first.call["x"]
    assert torch.equal(batch, again.call["x"])
    assert (batch.shape, batch.dtype) == ((2, 3, 16, 24), torch.float32)
    assert 0 <= batch.min() < batch.max() <= 1
    # red grows to the right, green downwards
    assert batch[0, 0, 0, 0] < batch[0, 0, 0, -1]
    assert batch[0, 1, 0, 0] < batch[0, 1, -1, 0]
    assert first.provenance is not None
    assert (first.provenance.origin, first.provenance.recipe) == ("declared", "a generated picture, resized to 24 x 16")


def test_a_picture_of_a_file_is_cut_resized_and_normalised(tmp_path: Path) -> None:
    picture = Image.new("RGB", (40, 20), (255, 0, 0))
    picture.paste((0, 0, 255), (10, 0, 30, 20))  # the middle, which stays when it is cut to a square
    picture.save(tmp_path / "p.png")
    spec = InputSpec(kind="image", path=str(tmp_path / "p.png"), shape=[3, 10, 10], mean=(0.5,) * 3, std=(0.25,) * 3)
    made = _make(spec, torch.nn.ReLU())
    assert made.call["x"].shape == (3, 10, 10)
    assert torch.allclose(made.call["x"][:, 5, 5], torch.tensor([-2.0, -2.0, 2.0]))
    assert torch.allclose(made.call["x"][:, 5, 1], torch.tensor([-2.0, -2.0, 2.0]))
    assert made.provenance is not None
    assert made.provenance.origin == "user"
    assert made.provenance.recipe == "picture p.png, resized to 10 x 10, normalised"
    assert made.picture.size == (10, 10)
    grey = _make(InputSpec(kind="image", path=str(tmp_path / "p.png"), shape=[1, 1, 4, 4]), torch.nn.ReLU())
    assert grey.call["x"].shape == (1, 1, 4, 4)


def test_a_file_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_text("no picture")
    with pytest.raises(InputError, match=r"\[input_file_unreadable\]"):
        _make(InputSpec(kind="image", path=str(tmp_path / "p.png"), shape=[1, 3, 4, 4]), torch.nn.ReLU())


# -- keywords
def test_keywords_are_made_read_or_passed_on(tmp_path: Path) -> None:
    torch.save(torch.ones(2), tmp_path / "m.pt")
    named = {"ids": {"shape": [2, 3], "dtype": "int64", "high": 9}, "mask": {"path": str(tmp_path / "m.pt")}, "n": 3}
    made = _make(InputSpec(kind="kwargs", kwargs=named), torch.nn.ReLU())
    call = made.call["input_kwargs"]
    assert (call["ids"].dtype, call["ids"].shape, call["n"]) == (torch.int64, (2, 3), 3)
    assert torch.equal(call["mask"], torch.ones(2))
    assert made.provenance is not None
    assert made.provenance.origin == "declared"
    assert _make(InputSpec(kind="kwargs", kwargs={"n": 3}), torch.nn.ReLU()).provenance is None


# -- texts
class _Words(torch.nn.Module):
    """A model with a tokenizer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(20, 4)

    def tokenizer(self, text: str, return_tensors: str) -> dict[str, torch.Tensor]:
        ids = torch.tensor([[len(word) for word in text.split()]])
        return {"ids": ids, "attention_mask": torch.ones_like(ids)}

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids)


def test_a_text_becomes_the_ids_that_the_model_takes() -> None:
    made = _make(InputSpec(kind="text", text="a few words"), _Words())
    assert made.call["input_kwargs"].keys() == {"ids"}
    assert made.call["input_kwargs"]["ids"].tolist() == [[1, 3, 5]]
    assert made.provenance is not None
    assert made.provenance.origin == "user"


def test_a_model_without_a_tokenizer_takes_no_text() -> None:
    with pytest.raises(UnavailableError, match=r"\[tokenizer_unavailable\] model 'm' has no tokenizer"):
        _make(InputSpec(kind="text", text="hi"), torch.nn.Linear(2, 2))


@pytest.mark.models
def test_the_tokenizer_of_a_pretrained_folder_and_of_the_models_file(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1, "world": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(tmp_path)
    sizes = {"num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    model = BertModel(BertConfig(vocab_size=9, **sizes))
    model.save_pretrained(tmp_path)
    model = BertModel.from_pretrained(tmp_path)
    call = _make(InputSpec(kind="text", text="hello world"), model).call
    assert call["input_kwargs"]["input_ids"].tolist() == [[1, 2]]
    named = {"_target_": "transformers.AutoTokenizer.from_pretrained", "pretrained_model_name_or_path": str(tmp_path)}
    factory = {"_target_": "transformers.BertModel", "config": {"_target_": "transformers.BertConfig", **sizes}}
    spec = ModelSpec("m", factory, InputSpec(kind="text", text="world hello"), "eval", 0, tokenizer=named)
    data = record(spec)
    assert data.provenance.origin == "user"
    assert data.nodes.outs[0][0].shape == (1, 2)
