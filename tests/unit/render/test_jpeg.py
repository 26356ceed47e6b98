"""JPEG files: the picture of the PNG, its size and its resolution."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from torchlens.base.errors import EngineError
from torchlens.render import jpeg
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.engine import make_artifact


def test_it_is_the_png(document: str) -> None:
    png, jpg = (make_artifact(document, file_format, dpi=96) for file_format in ("png", "jpg"))
    assert jpg.page == png.page
    one, other = Image.open(io.BytesIO(png.data)).convert("RGB"), Image.open(io.BytesIO(jpg.data))
    assert (other.format, other.size) == ("JPEG", one.size)
    assert other.info["dpi"] == (96, 96)
    spots = [(one.width // 2, one.height // 2), (3, 3), (one.width - 3, one.height - 3)]
    for spot in spots:
        pixels = zip(one.getpixel(spot), other.getpixel(spot), strict=True)  # type: ignore[arg-type]
        assert all(abs(a - b) < 40 for a, b in pixels)


def test_what_is_transparent_becomes_white() -> None:
    file = io.BytesIO()
    Image.new("RGBA", (20, 10), (0, 0, 0, 0)).save(file, "PNG")
    made = jpeg.write(Artifact(file.getvalue(), "png", Page(20, 10, "px")), 72)
    assert Image.open(io.BytesIO(made.data)).getpixel((5, 5)) == (255, 255, 255)


def test_a_side_that_no_jpeg_has_is_refused() -> None:
    with pytest.raises(EngineError, match="65500") as caught:
        jpeg.write(Artifact(b"", "png", Page(10, 65_501, "px")), 72)
    assert caught.value.code == "render_engine_failed"
