"""JPEG: the finished PNG in a lossy form, with its resolution; what is transparent becomes white."""

from __future__ import annotations

import io

from torchlens.base.errors import fail
from torchlens.render.artifacts import Artifact

# High enough that the rings around letters are not seen.
QUALITY = 92
SIDE_LIMIT_PX = 65_500


def write(raster: Artifact, dpi: int) -> Artifact:
    """A rendered PNG as JPEG.

    Raises: EngineError[render_engine_failed] above 65,500 pixels, which no JPEG holds.
    """
    from PIL import Image

    assert raster.page is not None
    if max(raster.page.width, raster.page.height) > SIDE_LIMIT_PX:
        what = (
            f"the figure has {raster.page.width:g} x {raster.page.height:g} pixels, and a JPEG at most {SIDE_LIMIT_PX}"
        )
        fail("render_engine_failed", what, fix="write svg or pdf, or use a smaller dpi")
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # our own picture is no attack
    try:
        picture = Image.open(io.BytesIO(raster.data)).convert("RGBA")
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    page = Image.new("RGB", picture.size, "white")
    page.paste(picture, mask=picture)
    file = io.BytesIO()
    page.save(file, "JPEG", quality=QUALITY, subsampling=0, dpi=(dpi, dpi))
    return Artifact(file.getvalue(), "jpg", raster.page)
