"""Arrays to small pictures: a matrix as coloured cells, points in a plane. The same numbers give the same pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchlens.base.colors import Ramp, parse, text_on

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

# Source: matplotlib's viridis at equal steps, dark to light.
VIRIDIS = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
# Where there is no number to show.
NO_VALUE = "#b0b0b0"
SIDE = 240
_FRAME, _DOT, _MARGIN, _SMOOTH = "#666666", 11, 16, 4
# More points than this carry no number.
NUMBERED = 20


def heat_map(values: np.ndarray, *, low: float | None = None, high: float | None = None, cell: int = 1) -> Image:
    """A matrix as coloured cells, dark for low and light for high; grey where it is not finite.

    values: (rows, columns); low, high: ends of the scale, by default the smallest and largest finite value; cell:
    pixels per side.
    """
    import numpy as np
    from PIL import Image

    known = np.isfinite(values)
    finite = values[known]
    low = float(finite.min()) if low is None and finite.size else low or 0.0
    high = float(finite.max()) if high is None and finite.size else high or 0.0
    span = high - low
    share = np.where(known, (np.where(known, values, low) - low) / span if span > 0 else 0.5, 0.0)
    table = np.array([parse(color) for color in Ramp(VIRIDIS).cells(256)], dtype=np.uint8)
    pixels = table[np.clip(np.rint(share * 255), 0, 255).astype(int)]
    pixels[~known] = parse(NO_VALUE)
    return Image.fromarray(np.kron(pixels, np.ones((cell, cell, 1), dtype=np.uint8)), "RGB")


def matrix(values: np.ndarray) -> Image:
    """A square matrix, framed."""
    cell = max(1, SIDE // len(values))
    return _framed(heat_map(values, cell=cell))


def scatter(points: np.ndarray, groups: Sequence[int] | None = None) -> Image:
    """Points in a plane, both axes in one scale. Few points carry their number.

    points: (N, 2); groups: the class of each point, which gives its colour; by default the colour is the order.
    """
    from PIL import Image, ImageDraw

    side = SIDE * _SMOOTH
    page = Image.new("RGB", (side, side), "#ffffff")
    draw = ImageDraw.Draw(page)
    radius = _DOT * _SMOOTH * (1.0 if len(points) <= NUMBERED else 0.5)
    places = _places(points, side)
    for k, ((x, y), color) in enumerate(zip(places, _colors(len(points), groups), strict=True)):
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color, outline="#ffffff", width=_SMOOTH)
        if len(points) <= NUMBERED:
            draw.text((x, y), str(k), fill=text_on(color, "#111111"), anchor="mm", font=_font(radius * 1.2))
    return _framed(page.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def _places(points: np.ndarray, side: int) -> list[tuple[float, float]]:
    """Pixels of the points: centred, in one scale, the second axis upwards."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max()) or 1.0
    scale = (side - 2 * (_MARGIN + _DOT / 2) * _SMOOTH) / span
    middle = (low + high) / 2
    return [(side / 2 + (x - middle[0]) * scale, side / 2 - (y - middle[1]) * scale) for x, y in points.tolist()]


def _colors(count: int, groups: Sequence[int] | None) -> list[str]:
    ramp = Ramp(VIRIDIS)
    if groups is None:
        return [ramp.at(k / max(count - 1, 1)) for k in range(count)]
    names = sorted(set(groups))
    return [ramp.at(names.index(group) / max(len(names) - 1, 1)) for group in groups]


def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(round(size))


def _framed(picture: Image) -> Image:
    from PIL import ImageOps

    return ImageOps.expand(picture, border=1, fill=_FRAME)


# -- representations
def dissimilarities(items: np.ndarray, metric: str) -> np.ndarray:
    """Pairwise dissimilarity of the rows.

    items: (N, F); metric: correlation, 1 - Pearson's r, not a number where a row is constant; cosine, 1 - cosine of the
    angle, not a number where a row is 0; euclidean.
    """
    import numpy as np

    if metric == "euclidean":
        squares = (items**2).sum(axis=1)
        return np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * items @ items.T, 0.0))
    centred = items - items.mean(axis=1, keepdims=True) if metric == "correlation" else items
    lengths = np.linalg.norm(centred, axis=1)
    # What is left of a constant row is rounding.
    lengths[lengths <= 1e-12 * np.linalg.norm(items, axis=1)] = np.nan
    lengths[lengths == 0] = np.nan
    unit = centred / lengths[:, None]
    found = np.clip(1 - unit @ unit.T, 0.0, 2.0)
    np.fill_diagonal(found, np.where(np.isnan(lengths), np.nan, 0.0))
    return found


def classical_mds(distances: np.ndarray) -> tuple[np.ndarray, float]:
    """Places in a plane whose distances are near the given ones, (N, 2), and the share of variance they carry.

    Source: Torgerson, "Multidimensional scaling: I. Theory and method", 1952. The sign of an axis is free; here the
    point that lies farthest out on it lies on its positive side.
    """
    import numpy as np

    count = len(distances)
    centring = np.eye(count) - np.full((count, count), 1 / count)
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    order = np.argsort(values)[::-1][:2]
    kept = np.maximum(values[order], 0.0)
    points = vectors[:, order] * np.sqrt(kept)
    for axis in range(points.shape[1]):
        farthest = int(np.argmax(np.round(np.abs(points[:, axis]), 9)))
        if points[farthest, axis] < 0:
            points[:, axis] *= -1
    total = float(np.maximum(values, 0.0).sum())
    return points, float(kept.sum()) / total if total > 0 else 1.0
