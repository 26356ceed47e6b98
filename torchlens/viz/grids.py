"""Activations as grids of pictures: one map per channel of a kept value."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import fail
from torchlens.base.files import write_atomically
from torchlens.record_views import Module
from torchlens.viz.plots import heat_map

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from torchlens.trace_view import Trace

# Pixels: of the smallest side that a map is enlarged to, of the longest that it is left at, between two maps; height
# of the strip of one feature.
SMALL, LARGE, GAP = 56, 224, 4
STRIP = 12
SCALES = ("channel", "shared")


def feature_maps(
    trace: Trace,
    label: str,
    max_channels: int = 16,
    path: str | os.PathLike[str] | None = None,
    *,
    item: int = 0,
    scale: str = "channel",
) -> Image | Path:
    """The channels of a kept activation as a grid of small maps, dark for low and light for high.

    label: of an op, or address of a module, whose output is (N, C, H, W), one map per channel, or (N, L, D), one strip
    per feature over its L positions; max_channels: the first ones; path: of a PNG to write; item: of the batch; scale:
    "channel" spreads each map over all colours, "shared" gives all maps one scale. Cells that are not finite are grey.
    Returns a PIL image, or the path that was written.
    Raises: UnknownNameError[label_not_found], UnavailableError[payload_unavailable],
    InvalidArgumentError[feature_maps_invalid].
    """
    record = trace[label]
    if isinstance(record, Module):
        returned = record.output_ops
        if not returned:
            fail("feature_maps_invalid", f"the module {label!r} returned nothing in this run")
        record = trace.nodes[returned[0]]
    picture = draw_maps(record.out, max_channels, item=item, scale=scale, name=label)
    if path is None:
        return picture
    from torchlens.viz.pictures import encoded

    target = Path(path)
    target = target if target.suffix.lower() == ".png" else target.with_name(f"{target.name}.png")
    write_atomically(target, encoded(picture))
    return target


def draw_maps(value: object, max_channels: int = 16, *, item: int = 0, scale: str = "channel", name: str = "") -> Image:
    """See `feature_maps`. value: the tensor itself; name: of what it belongs to, for errors."""
    from PIL import Image

    if scale not in SCALES:
        fail("feature_maps_invalid", f"scale={scale!r} is not a scale", allowed=SCALES, fix="use one of these")
    if isinstance(max_channels, bool) or not isinstance(max_channels, int) or max_channels < 1:
        fail("feature_maps_invalid", f"max_channels={max_channels!r} is no number of maps", fix="pass 1 or more")
    maps = _maps(value, item, name)[:max_channels]
    finite = maps[_finite(maps)]
    ends = (float(finite.min()), float(finite.max())) if scale == "shared" and finite.size else (None, None)
    height, width = maps.shape[1:]
    size = _size(height, width)
    pictures = [heat_map(one, low=ends[0], high=ends[1]) for one in maps]
    way = Image.Resampling.NEAREST if size[0] >= width else Image.Resampling.BOX
    across = 1 if height == 1 else math.ceil(math.sqrt(len(maps)))
    down = -(-len(maps) // across)
    page = Image.new("RGB", (across * (size[0] + GAP) + GAP, down * (size[1] + GAP) + GAP), "#ffffff")
    for k, picture in enumerate(pictures):
        corner = GAP + k % across * (size[0] + GAP), GAP + k // across * (size[1] + GAP)
        page.paste(picture.resize(size, way), corner)
    return page


def _size(height: int, width: int) -> tuple[int, int]:
    """Width and height of one map, pixels: whole steps where it is enlarged, a strip for a single row."""
    if height == 1:
        return (width * (LARGE // width) if width <= LARGE else LARGE), STRIP
    factor = min(max(1, SMALL // min(height, width)), max(1, LARGE // max(height, width)))
    shrink = min(1.0, LARGE / (max(height, width) * factor))
    return max(1, round(width * factor * shrink)), max(1, round(height * factor * shrink))


def _maps(value: object, item: int, name: str) -> np.ndarray:
    """(maps, height, width) of one item of the batch."""
    array = numbers_of(value)
    words = f"the value of {name}" if name else "the value"
    if array is None or array.ndim not in (3, 4) or 0 in array.shape:
        shape = "no tensor" if array is None else f"of shape {array.shape}"
        fail("feature_maps_invalid", f"{words} is {shape}, not (N, C, H, W) or (N, L, D)")
    if isinstance(item, bool) or not isinstance(item, int) or not -len(array) <= item < len(array):
        fail("feature_maps_invalid", f"{words} has {len(array)} items, no item {item!r}", fix="pass item=0")
    one = array[item]
    return one if array.ndim == 4 else one.T[:, None, :]


def numbers_of(value: object) -> np.ndarray | None:
    """A tensor's values in double precision, None for what is no tensor of real numbers in strided memory."""
    import torch

    if not isinstance(value, torch.Tensor) or value.is_complex() or value.layout != torch.strided:
        return None
    plain: Any = value.detach()
    if plain.is_quantized or plain.is_meta or plain.is_nested:
        return None
    return plain.to(device="cpu", dtype=torch.float64, copy=True).numpy()


def _finite(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.isfinite(values)
