"""Building models and loading weights, and what is said when that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from torchlens.base.errors import ConfigError, InputError, TorchLensError, UnavailableError, UnknownNameError
from torchlens.runner.build import build, record
from torchlens.runner.input_spec import InputSpec
from torchlens.runner.spec import ModelSpec, read_model
from torchlens.settings import catalog

LINEAR = {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": 3}
MLP = {"_target_": "torchlens.examples.mlp.Mlp"}


def _spec(
    factory: dict[str, Any], shape: Any = (1, 2), *, mode: str = "eval", seed: int = 0, **values: Any
) -> ModelSpec:
    return ModelSpec("m", factory, InputSpec(shape=shape, values=values), mode, seed)


def _shipped(name: str) -> ModelSpec:
    entry = catalog.load("model", name)
    return read_model(name, str(entry.path), entry.data, {})


# -- the example models are the ones the documentation describes
def test_the_demo_is_the_first_drawing() -> None:
    data = record(_shipped("demo"))
    assert data.totals["ops"] == 12
    assert data.totals["params"] == data.totals["trainable_params"] == 1610
    assert data.totals["output_bytes"] == 19832
    assert data.training
    assert [data.nodes.label[i] for i in data.op_indexes][:5] == [
        "conv2d_1_1", "add_1_2", "batchnorm_1_3", "relu_1_4", "conv2d_2_5",
    ]  # fmt: skip
    assert (data.provenance.origin, data.provenance.tensors[0][0]) == ("declared", (1, 3, 8, 8))


def test_the_rnn_has_three_steps() -> None:
    data = record(_shipped("rnn"))
    assert data.totals["ops"] == 13
    passes = {layer.label: layer.num_passes for layer in data.layers}
    assert (passes["linear_1_2"], passes["linear_2_3"]) == (3, 3)


def test_the_mlp_drops_out_in_train_mode() -> None:
    data = record(_shipped("mlp"))
    assert [data.nodes.func[i] for i in data.op_indexes] == ["linear", "relu", "dropout", "linear"]
    assert data.training


# -- seeds and state
def test_weights_follow_the_seed_and_the_callers_stream_does_not_move() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    record(_spec(MLP, (1, 8), mode="train"), warm=True)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = build(_spec(LINEAR)).state_dict()["weight"]
        torch.manual_seed(0)
        again = build(_spec(LINEAR)).state_dict()["weight"]
        other = build(_spec(LINEAR)).state_dict()["weight"]
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_modes() -> None:
    assert not record(_spec(MLP, (1, 8))).training
    assert record(_spec(MLP, (1, 8), mode="train")).training


def test_a_warm_up_leaves_no_trace() -> None:
    cold, warm = record(_shipped("demo")), record(_shipped("demo"), warm=True)
    assert warm.nodes.label == cold.nodes.label
    assert [(b.address, len(b.versions)) for b in warm.buffers] == [(b.address, len(b.versions)) for b in cold.buffers]


# -- weights
def _net(checkpoint: Path | None, out_features: int = 3) -> ModelSpec:
    factory = {**LINEAR, "out_features": out_features}
    return ModelSpec("m", factory, InputSpec(shape=[1, 2]), "eval", 0, checkpoint=str(checkpoint))


@pytest.mark.parametrize("wrapped", [None, "state_dict", "model"])
@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_weights_of_a_file(name: str, wrapped: str | None, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    state = torch.nn.Linear(2, 3).state_dict()
    if name.endswith(".pt"):
        torch.save(state if wrapped is None else {wrapped: state, "epoch": 3}, tmp_path / name)
    else:
        save_file(state, tmp_path / name)
    assert torch.equal(build(_net(tmp_path / name)).state_dict()["weight"], state["weight"])


def test_weights_with_code_in_them_or_for_another_model_are_refused(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    torch.save(Trap(), tmp_path / "trap.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(torch.nn.Linear(2, 3).state_dict(), tmp_path / "other.pt")
    cases = [
        ("trap.pt", "holds more than tensors"),
        ("list.pt", "holds a list"),
        ("other.pt", "does not fit the model"),
    ]
    for name, words in cases:
        with pytest.raises(InputError, match=r"\[model_checkpoint_invalid\]") as caught:
            build(_net(tmp_path / name, out_features=4))
        assert words in str(caught.value)
    assert not (tmp_path / "sprung").exists()


# -- trust
@pytest.mark.parametrize(
    ("target", "real"),
    [
        ("torch.nn.functional.importlib.import_module", "importlib.import_module"),
        ("torch.nn.functional.torch.load", "torch.serialization.load"),
        ("torch.nn.functional.torch.from_file", "torch.from_file"),
        ("torch.nn.functional.torch.os.getcwd", "posix.getcwd"),
        ("torch.nn.functional.importlib.sys.path.append", "builtins.list.append"),
        ("shelf.write", "pathlib"),
        ("shelf.Path.cwd", "pathlib"),
        ("shelf.system", "posix.system"),
        ("shelf.Own.write_text", "pathlib"),
        ("shelf.number", "builtins.int"),
    ],
)
def test_what_a_trusted_package_merely_imports_is_not_called(
    target: str, real: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shelf.py").write_text(
        "from pathlib import Path\nfrom os import system\nwrite = Path.write_text\nnumber = 3\n"
        "class Own(Path):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    written = tmp_path / "written"
    call = {"_target_": target, "_args_": [str(written), "x"]}
    spec = ModelSpec("m", {"_target_": "torch.nn.Sequential", "_args_": [call]}, InputSpec(), "eval", 0, ("shelf.*",))
    with pytest.raises(ConfigError, match=rf"\[config_target_untrusted\].*{real}") as caught:
        build(spec)
    assert target in str(caught.value)
    assert f"trust=[{real.partition('.')[0]}.*]" in str(caught.value)
    assert not written.exists()


def test_the_exact_name_trusts_what_is_defined_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner_shelf.py").write_text("from torch import nn\nclass Net(nn.ReLU):\n    pass\n")
    (tmp_path / "outer_shelf.py").write_text("from inner_shelf import Net\n")
    monkeypatch.syspath_prepend(tmp_path)
    factory = {"_target_": "outer_shelf.Net"}
    for trust in (("outer_shelf.Net",), ("*_shelf.*",)):
        assert isinstance(build(ModelSpec("m", factory, InputSpec(), "eval", 0, trust)), torch.nn.ReLU)
    with pytest.raises(ConfigError, match=r"really 'inner_shelf.Net'.*trust=\[inner_shelf"):
        build(ModelSpec("m", factory, InputSpec(), "eval", 0, ("outer_shelf.*",)))


@pytest.mark.parametrize("name", ["relu", "conv2d", "gelu", "max_pool2d", "scaled_dot_product_attention", "softplus"])
def test_functions_of_torch_may_be_parts_of_a_model(name: str) -> None:
    part = {"_target_": f"torch.nn.functional.{name}", "_partial_": True}
    layer = {"_target_": "torch.nn.TransformerEncoderLayer", "d_model": 4, "nhead": 2, "activation": part}
    assert isinstance(build(_spec(layer)), torch.nn.TransformerEncoderLayer)


@pytest.mark.models
@pytest.mark.parametrize("name", catalog.names("model"))
def test_every_shipped_model_is_trusted(name: str) -> None:
    assert isinstance(build(_shipped(name)), torch.nn.Module)


# -- failures
SEQUENTIAL = {"_target_": "torch.nn.Sequential", "_args_": [{"_target_": "torch.nn.Relu"}]}
GAIN = {"_target_": "torch.nn.init.calculate_gain", "nonlinearity": "relu"}
NEAREST = "nothing is called 'torch.nn.Linearr'. Fix: perhaps you meant 'torch.nn.Linear'"


@pytest.mark.parametrize(
    ("factory", "error", "words"),
    [
        ({"_target_": "torch.nn.Linearr"}, UnknownNameError, NEAREST),
        ({"_target_": "torch.nn.nowhere.Linear"}, UnknownNameError, "model_target_unknown"),
        (SEQUENTIAL, UnknownNameError, "'torch.nn.ReLU'"),
        ({**LINEAR, "bogus": 3}, InputError, "cannot build model 'm' with torch.nn.Linear: TypeError"),
        ({**LINEAR, "in_features": "x"}, InputError, "model_build_failed"),
        (GAIN, InputError, "made a float, not a torch.nn.Module"),
        ({"_target_": "timmmm.create_model"}, UnavailableError, "needs the package 'timmmm', which is not installed"),
    ],
)
def test_a_factory_that_fails_says_why(factory: dict[str, Any], error: type[TorchLensError], words: str) -> None:
    with pytest.raises(error) as caught:
        build(_spec(factory))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_known_packages_are_named_in_an_install_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mynet.py").write_text("import timm_missing_part\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnavailableError, match=r"\[model_package_missing\].*'timm_missing_part'.*run from its folder"):
        build(_spec({"_target_": "mynet.Net"}))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "pictures.py").write_text("raise ModuleNotFoundError(name='PIL')\n")
    with pytest.raises(UnavailableError, match="pip install pillow"):
        build(_spec({"_target_": "pictures.Net"}))


def test_a_forward_that_fails_names_the_model() -> None:
    with pytest.raises(
        InputError,
        match=r"\[model_run_failed\] the forward of model 'm' failed before its first op: RuntimeError: mat1",
    ):
        record(_spec(LINEAR, (1, 5)))
