"""From whatever a user calls a picture - a path, a PIL image - to the bytes of a PNG that a node can show."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torchlens.base.errors import error, fail, first_line
from torchlens.records.notes import MOST_PICTURES

if TYPE_CHECKING:
    from PIL.Image import Image

# Pixels of the longer side: of a picture made smaller, of one kept as it is, and below which pixels are made larger.
SHRUNK_SIDE, KEPT_SIDE, TINY_SIDE = 320, 640, 96
_KEPT_MODES = ("L", "LA", "RGB", "RGBA")


def png_of(image: object) -> bytes:
    """The PNG of one picture. A PNG file of moderate size stays as it is; a photo is turned upright.

    image: a path of any file that Pillow opens, or a PIL image.
    Raises: InvalidArgumentError[image_unreadable].
    """
    from PIL import Image

    if isinstance(image, Image.Image):
        return _encoded(image)
    if not isinstance(image, (str, os.PathLike)):
        fail("image_unreadable", f"{image!r:.80} is neither a path nor a PIL image", got=type(image).__name__)
    path = os.fspath(cast("str | os.PathLike[str]", image))
    try:
        data = Path(path).read_bytes()
        with Image.open(io.BytesIO(data)) as opened:
            opened.load()
            kept = opened.format == "PNG" and opened.mode in _KEPT_MODES and not getattr(opened, "is_animated", False)
            if kept and TINY_SIDE <= max(opened.size) <= KEPT_SIDE:
                return data
            return _encoded(opened)
    except Exception as cause:  # Pillow raises a great many things at what is no image
        if getattr(cause, "code", None) == "image_unreadable":
            raise
        raise error("image_unreadable", f"{path!r} cannot be read: {first_line(cause)}", path=path) from cause


def pngs_of(images: object) -> tuple[bytes, ...]:
    """The PNGs of one picture or of a list of them; of a long list those that a node can show, the others empty."""
    if isinstance(images, (list, tuple)):
        several = cast("Sequence[object]", images)
        return tuple(png_of(image) if k < MOST_PICTURES else b"" for k, image in enumerate(several))
    return (png_of(images),)


def encoded(image: Image) -> bytes:
    """A PIL image as PNG, pixel by pixel."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _encoded(image: Image) -> bytes:
    """8-bit, upright and of a size that a node can use."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I;16"):
        upright = upright.point(lambda value: value / 256).convert("L")
    if upright.mode not in _KEPT_MODES:
        upright = upright.convert("RGBA" if "transparency" in upright.info or "A" in upright.getbands() else "RGB")
    longer = max(upright.size)
    if not longer:
        fail("image_unreadable", "the picture has no pixels")
    if longer > KEPT_SIDE:
        upright.thumbnail((SHRUNK_SIDE, SHRUNK_SIDE), Image.Resampling.LANCZOS)
    elif longer < TINY_SIDE:
        # Whole steps and no smoothing: a small digit stays the pixels that the model saw.
        factor = -(-TINY_SIDE // longer)
        upright = upright.resize((upright.width * factor, upright.height * factor), Image.Resampling.NEAREST)
    return encoded(upright)
