"""PNG: the engine's own raster, with its resolution written into the file and a warning when it cannot be looked at."""

from __future__ import annotations

import struct
import zlib

from torchlens.base.errors import fail, warn
from torchlens.render.artifacts import Artifact, Page

DEFAULT_DPI = 144
SIDE_LIMIT_PX = 30_000
AREA_LIMIT_PX = 300_000_000
# What no program should be asked to paint: 4 bytes each make 4 GB.
REFUSED_AREA_PX = 1_000_000_000
READABLE_DPI = 40  # below it, labels of 14 points are less than 8 pixels high

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_END = 33  # signature 8, IHDR: length 4, name 4, content 13, checksum 4


def check_area(width: float, height: float, dpi: int) -> None:
    """Refuse a page, in points, that would take all memory as a raster.

    Raises: InvalidArgumentError[graph_too_large].
    """
    across, down = (int(side * dpi / 72) for side in (width, height))
    if across * down > REFUSED_AREA_PX:
        fail(
            "graph_too_large",
            f"the raster figure would have {across} x {down} pixels at {dpi} dpi",
            fix='write svg or pdf, or draw fewer nodes with collapse="auto" or depth=',
            width=across,
            height=down,
            dpi=dpi,
        )


def write(data: bytes, dpi: int) -> Artifact:
    """The engine's PNG, marked with its dots per inch.

    Raises: EngineError[render_engine_failed] if it is no PNG. Warns: figure_unreadable.
    """
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR":
        fail("render_engine_failed", "the engine did not write a PNG")
    width, height = struct.unpack(">II", data[16:24])
    if max(width, height) > SIDE_LIMIT_PX or width * height > AREA_LIMIT_PX:
        fitting = int(dpi * min(SIDE_LIMIT_PX / max(width, height), (AREA_LIMIT_PX / (width * height)) ** 0.5))
        smaller = f"or pass dpi={fitting}" if fitting >= READABLE_DPI else "or draw fewer nodes with depth="
        warn(
            "figure_unreadable",
            f"the PNG has {width} x {height} pixels at {dpi} dpi, more than most programs open",
            fix=f"write svg or pdf, {smaller}",
            width=width,
            height=height,
            dpi=dpi,
        )
    return Artifact(_with_resolution(data, dpi), "png", Page(width, height, "px", dpi / 72))


def _with_resolution(data: bytes, dpi: int) -> bytes:
    """Insert the pHYs chunk, so that programs place the figure at its real size. Source: PNG 11.3.4.3."""
    if b"pHYs" in data[_HEADER_END:200]:
        return data
    per_metre = round(dpi / 0.0254)
    content = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    chunk = struct.pack(">I", 9) + content + struct.pack(">I", zlib.crc32(content))
    return data[:_HEADER_END] + chunk + data[_HEADER_END:]
