"""Pictures in nodes: which ones a node shows, under which name, and how large. Knows no image library: a PNG is bytes.

The name of a picture comes from its content, so that a figure's text is the same wherever and whenever it is written.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from torchlens.base.errors import fail

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Points. The largest side of a lone picture, and of one among up to 4, and of one among more.
SIDES = ((1, 120.0), (4, 78.0), (16, 48.0))
SMALLEST_SIDE = 60.0
# Points per pixel of a picture at its natural size, 96 to the inch.
NATURAL = 0.75


class Picture(NamedTuple):
    """One picture. name: of its file; png: its bytes; width, height: as drawn, points."""

    name: str
    png: bytes
    width: float
    height: float


def lay_out(pngs: Sequence[bytes]) -> tuple[Picture, ...]:
    """Pictures of one node, each as large as their number allows."""
    side = next((side for count, side in SIDES if len(pngs) <= count), SIDES[-1][1])
    return tuple(_picture(png, side) for png in pngs)


def columns(count: int) -> int:
    """Pictures side by side in one row of a node."""
    return math.ceil(math.sqrt(count))


def _picture(png: bytes, side: float) -> Picture:
    width, height, digest = _read(png)
    largest = max(width, height)
    drawn = min(max(largest * NATURAL, SMALLEST_SIDE), side)
    scale = drawn / largest
    # A line of a few pixels still is a line.
    sizes = [max(round(length * scale, 2), 4.0) for length in (width, height)]
    return Picture(f"picture-{digest}.png", png, *sizes)


def _read(png: bytes) -> tuple[int, int, str]:
    """Width and height in pixels, and a digest of the pixels that does not depend on how hard they were compressed.

    Raises: InvalidArgumentError[image_unreadable].
    """
    try:
        if not png.startswith(SIGNATURE) or png[12:16] != b"IHDR":
            raise ValueError("the signature of a PNG is missing")
        width, height = struct.unpack(">II", png[16:24])
        if not width or not height:
            raise ValueError("it has no pixels")
        kept, packed, place = hashlib.sha256(png[16:29]), b"", len(SIGNATURE)
        while place < len(png):
            length = int.from_bytes(png[place : place + 4], "big")
            name, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
            if name == b"IDAT":
                packed += content
            elif name in (b"PLTE", b"tRNS"):
                kept.update(content)
            place += 12 + length
        kept.update(zlib.decompress(packed))
    except (ValueError, struct.error, zlib.error) as cause:
        fail("image_unreadable", f"the picture is no PNG: {cause}")
    return width, height, kept.hexdigest()[:12]
