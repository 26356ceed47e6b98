"""PNG: size, resolution, and the warning about figures that cannot be looked at."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import pytest
from PIL import Image

from torchlens.base.errors import EngineError, TorchLensWarning
from torchlens.render import png
from torchlens.render.engine import make_artifact
from torchlens.render.graphviz import SYSTEM

ENGINES = ["embedded", *(["system"] if SYSTEM.locate() else [])]


def blank(width: int, height: int) -> bytes:
    """A PNG's signature, header and end; nothing looks at the pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dpi", [72, 110, 300])
def test_pixels_are_points_times_dpi_over_72(document: str, engine: str, dpi: int) -> None:
    drawn = make_artifact(document, "svg", engine=engine).page
    artifact = make_artifact(document, "png", engine=engine, dpi=dpi)
    image = Image.open(io.BytesIO(artifact.data))
    image.load()
    assert drawn is not None
    assert artifact.page is not None
    assert image.size == (artifact.page.width, artifact.page.height)
    assert image.width == pytest.approx(drawn.width * dpi / 72, abs=dpi / 72 + 1)
    assert image.height == pytest.approx(drawn.height * dpi / 72, abs=dpi / 72 + 1)
    assert image.info["dpi"] == pytest.approx((dpi, dpi), abs=0.02)
    assert (artifact.page.unit, artifact.page.scale) == ("px", dpi / 72)


def test_default_resolution(document: str) -> None:
    assert make_artifact(document, "png").data == make_artifact(document, "png", dpi=144).data


def test_the_page_is_filled_with_its_colour(document: str) -> None:
    image = Image.open(io.BytesIO(make_artifact(document, "png").data)).convert("RGBA")
    assert image.getpixel((1, 1)) == (255, 255, 240, 255)


def test_resolution_is_written_once_and_the_file_stays_valid() -> None:
    artifact = png.write(blank(30, 20), 144)
    assert Image.open(io.BytesIO(artifact.data)).info["dpi"] == pytest.approx((144, 144), abs=0.02)
    assert png.write(artifact.data, 72).data == artifact.data


@pytest.mark.parametrize(
    ("width", "height", "way_out"),
    [
        (30_001, 10, "or pass dpi=299"),
        (10, 30_001, "or pass dpi=299"),
        (20_000, 15_001, "or pass dpi=299"),
        (60_000, 10, "or pass dpi=150"),
        (30_000, 40_000, "or pass dpi=150"),
        (1_000, 300_000, "depth="),
    ],
)
def test_too_large_pictures_are_disclosed(width: int, height: int, way_out: str) -> None:
    with pytest.warns(TorchLensWarning, match=f"{width} x {height}.*{way_out}") as caught:
        artifact = png.write(blank(width, height), 300)
    assert caught[0].message.code == "figure_unreadable"  # type: ignore[union-attr]
    assert artifact.data.startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "height"), [(30_000, 10_000), (20_000, 15_000)])
def test_the_limit_itself_is_fine(width: int, height: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        png.write(blank(width, height), 300)


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(EngineError) as caught:
        png.write(data, 144)
    assert caught.value.code == "render_engine_failed"
