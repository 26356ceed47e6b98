"""Grids of activations: which value, how many maps, which scale."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from PIL import Image

from torchlens.base.errors import InvalidArgumentError, UnavailableError, UnknownNameError
from torchlens.trace_view import Trace
from torchlens.viz import feature_maps
from torchlens.viz.grids import GAP, STRIP, draw_maps, numbers_of


def test_channels_stand_in_a_grid(trace: Trace) -> None:
    image = feature_maps(trace, "conv2d_1_1")
    side = 8 * 7
    assert image.size == (3 * (side + GAP) + GAP, 2 * (side + GAP) + GAP)
    few = feature_maps(trace, "conv2d_1_1", max_channels=1)
    assert few.size == (side + 2 * GAP, side + 2 * GAP)
    assert (
        few.crop((GAP, GAP, GAP + side, GAP + side)).tobytes()
        == image.crop((GAP, GAP, GAP + side, GAP + side)).tobytes()
    )


def test_an_address_means_what_the_module_returned(trace: Trace) -> None:
    assert feature_maps(trace, "features").tobytes() == feature_maps(trace, "maxpool2d_1_3").tobytes()


def test_a_sequence_gives_one_strip_per_feature() -> None:
    value = torch.arange(2 * 12 * 5, dtype=torch.float32).reshape(2, 12, 5)
    image = draw_maps(value, 3)
    step = 224 // 12
    assert image.size == (12 * step + 2 * GAP, 3 * (STRIP + GAP) + GAP)
    row = [image.getpixel((GAP + k * step, GAP)) for k in range(12)]
    assert len(set(row)) == 12
    assert row == [image.getpixel((GAP + k * step, GAP + 2 * (STRIP + GAP))) for k in range(12)]


def test_the_item_and_the_scale_matter() -> None:
    value = torch.stack([torch.stack([torch.eye(4), 10 * torch.eye(4)]), torch.zeros(2, 4, 4)])
    plain, shared = draw_maps(value), draw_maps(value, scale="shared")
    box = (GAP, GAP, GAP + 4 * 14, GAP + 4 * 14)
    assert plain.crop(box).getextrema() != shared.crop(box).getextrema()
    assert draw_maps(value, item=1).tobytes() != plain.tobytes()


def test_large_maps_are_bounded_and_bad_cells_are_grey() -> None:
    value = torch.zeros(1, 1, 1000, 500)
    value[0, 0, :10] = float("nan")
    image = draw_maps(value)
    assert max(image.size) <= 224 + 2 * GAP
    assert image.getpixel((GAP, GAP)) == (0xB0, 0xB0, 0xB0)


def test_a_path_gets_a_png(trace: Trace, tmp_path: Path) -> None:
    written = feature_maps(trace, "conv2d_1_1", path=tmp_path / "maps")
    assert written == tmp_path / "maps.png"
    assert isinstance(written, Path)
    assert Image.open(io.BytesIO(written.read_bytes())).tobytes() == feature_maps(trace, "conv2d_1_1").tobytes()
    assert feature_maps(trace, "relu_1_2", path=tmp_path / "b.png") == tmp_path / "b.png"


@pytest.mark.parametrize(
    "value", [torch.zeros(3, 4), torch.zeros(1, 0, 4, 4), [1], torch.zeros(1, 2, 2, 2, dtype=torch.complex64)]
)
def test_what_is_no_stack_of_maps_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        draw_maps(value, name="here")
    assert caught.value.code == "feature_maps_invalid"


@pytest.mark.parametrize("options", [{"item": 9}, {"item": True}, {"scale": "log"}, {"max_channels": 0}])
def test_wrong_options_are_refused(trace: Trace, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        feature_maps(trace, "conv2d_1_1", **options)  # type: ignore[arg-type]
    assert caught.value.code == "feature_maps_invalid"


def test_a_wrong_label_and_a_missing_value_have_their_own_codes(trace: Trace, facts: Trace) -> None:
    with pytest.raises(UnknownNameError, match="label_not_found"):
        feature_maps(trace, "conv9")
    with pytest.raises(UnavailableError, match="payload_unavailable"):
        feature_maps(facts, "conv2d_1_1")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_every_real_dtype_has_numbers(dtype: torch.dtype) -> None:
    found = numbers_of(torch.ones(2, 2, dtype=dtype))
    assert found is not None
    assert found.tolist() == [[1, 1], [1, 1]]
