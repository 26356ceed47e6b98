"""Arguments that repeat a dimension, on every module family that has some: hidden where a hook saw the same number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import torchlens as tl

Dimension = Callable[[Tensor, Tensor], object]
# Of what goes in, and of what comes out.
IN_LAST: Dimension = lambda x, y: x.shape[-1]  # noqa: E731 - a table reads best with its columns as they are
OUT_LAST: Dimension = lambda x, y: y.shape[-1]  # noqa: E731
IN_CHANNEL: Dimension = lambda x, y: x.shape[1]  # noqa: E731
OUT_CHANNEL: Dimension = lambda x, y: y.shape[1]  # noqa: E731

FEATURES: dict[str, Dimension] = {"in_features": IN_LAST, "out_features": OUT_LAST}
CHANNELS: dict[str, Dimension] = {"in_channels": IN_CHANNEL, "out_channels": OUT_CHANNEL}
NORM: dict[str, Dimension] = {"num_features": OUT_CHANNEL}
FAMILIES: dict[str, tuple[nn.Module, Tensor, dict[str, Dimension], str]] = {
    "linear": (nn.Linear(32, 10), torch.rand(1, 32), FEATURES, ""),
    "linear on a sequence": (nn.Linear(8, 4), torch.rand(2, 5, 8), FEATURES, ""),
    "conv1d": (nn.Conv1d(3, 8, 3), torch.rand(1, 3, 9), CHANNELS, "kernel_size=(3,)"),
    "conv2d": (nn.Conv2d(3, 8, 3, stride=2), torch.rand(1, 3, 9, 9), CHANNELS, "kernel_size=(3, 3), stride=(2, 2)"),
    "grouped": (nn.Conv2d(4, 8, 3, groups=2), torch.rand(1, 4, 9, 9), CHANNELS, "kernel_size=(3, 3), groups=2"),
    "conv3d": (nn.Conv3d(3, 8, 2), torch.rand(1, 3, 4, 4, 4), CHANNELS, "kernel_size=(2, 2, 2)"),
    "transposed 1d": (nn.ConvTranspose1d(3, 8, 3), torch.rand(1, 3, 9), CHANNELS, "kernel_size=(3,)"),
    "transposed 2d": (
        nn.ConvTranspose2d(4, 8, 3, groups=2), torch.rand(1, 4, 5, 5), CHANNELS, "kernel_size=(3, 3), groups=2",
    ),
    "transposed 3d": (nn.ConvTranspose3d(3, 8, 2), torch.rand(1, 3, 4, 4, 4), CHANNELS, "kernel_size=(2, 2, 2)"),
    "channels last": (
        nn.Conv2d(3, 8, 3), torch.rand(1, 3, 9, 9).to(memory_format=torch.channels_last), CHANNELS,
        "kernel_size=(3, 3)",
    ),
    "batchnorm1d": (nn.BatchNorm1d(6), torch.rand(2, 6), NORM, ""),
    "batchnorm2d": (nn.BatchNorm2d(6), torch.rand(2, 6, 4, 4), NORM, ""),
    "batchnorm3d": (nn.BatchNorm3d(6), torch.rand(2, 6, 2, 2, 2), NORM, ""),
    "instancenorm": (nn.InstanceNorm2d(6, affine=True), torch.rand(2, 6, 4, 4), NORM, ""),
    "layernorm": (nn.LayerNorm(8), torch.rand(2, 5, 8), {"normalized_shape": lambda x, y: tuple(y.shape[-1:])}, ""),
    "layernorm over two": (
        nn.LayerNorm([5, 8]), torch.rand(2, 5, 8), {"normalized_shape": lambda x, y: tuple(y.shape[-2:])}, "",
    ),
    "embedding": (nn.Embedding(10, 4), torch.tensor([[1, 2]]), {"embedding_dim": OUT_LAST}, "num_embeddings=10"),
}  # fmt: skip


def args(trace: tl.Trace, **given: object) -> list[str]:
    """The argument row of each op, its lines joined."""
    scene = trace.draw(**given)._scene  # type: ignore[arg-type]
    return [
        " ".join(line for row in node.rows if row.token == "args" for line in row.lines)
        for node in scene.nodes
        if node.kind == "op"
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_shapes_say_is_hidden_and_the_rest_stays(family: str) -> None:
    module, x, dimensions, rest = FAMILIES[family]
    seen: list[tuple[Tensor, Tensor]] = []

    def see(_: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append((given[0], out))

    handle = module.register_forward_hook(see)
    trace = tl.trace(module.eval(), x)
    handle.remove()
    ((given, out),) = seen
    for name, dimension in dimensions.items():
        assert getattr(module, name) == dimension(given, out), "the module says what the tensors do"
    assert args(trace) == [rest]
    (shown,) = args(trace, show_redundant_args=True)
    for name, dimension in dimensions.items():
        assert f"{name}={dimension(given, out)}" in shown
    assert all(part in shown for part in rest.split(", ") if part.endswith(")"))


class Product(nn.Module):
    """Both factors of the same shape are computed from the input."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(F.linear(x, torch.relu(x[0, 0])), torch.tanh(x))


def test_several_tensors_that_flow_in_keep_what_is_about_the_input_visible() -> None:
    rows = args(tl.trace(Product(), torch.rand(3, 3, 3, 3)))
    assert "in_features=3" in rows
    assert "in_channels=3, kernel_size=(3, 3)" in rows


class Growing(nn.Module):
    """One layer on inputs of growing length."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.fc(torch.cat([x, x]))
        return x


def test_passes_of_different_shapes_keep_rolled_what_each_of_them_hides() -> None:
    trace = tl.trace(Growing(), torch.rand(2, 4))
    assert args(trace, rolled=True) == ["", "in_features=4, out_features=4"]
    assert args(trace) == [""] * 6


def test_without_a_batch_it_is_not_certain_which_dimension_is_the_channel() -> None:
    trace = tl.trace(nn.Conv2d(3, 8, 3), torch.rand(3, 9, 9))
    assert args(trace) == ["in_channels=3, out_channels=8, kernel_size=(3, 3)"]
