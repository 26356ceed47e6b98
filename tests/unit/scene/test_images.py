"""Pictures in nodes: their names, sizes and what is no picture."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from torchlens.base.errors import InvalidArgumentError
from torchlens.scene.images import columns, lay_out


def png(size: tuple[int, int] = (40, 20), color: str = "red", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "PNG", **options)
    return buffer.getvalue()


def test_the_name_is_that_of_the_pixels_not_of_the_compression() -> None:
    small, large = png(compress_level=9), png(compress_level=0)
    assert small != large
    (first,), (second,), (other,) = lay_out([small]), lay_out([large]), lay_out([png(color="blue")])
    assert first.name == second.name
    assert first.name != other.name
    assert first.name.startswith("picture-")
    assert first.name.endswith(".png")


@pytest.mark.parametrize(
    ("size", "drawn"),
    [
        ((40, 20), (60, 30)),
        ((100, 50), (75, 37.5)),
        ((640, 480), (120, 90)),
        ((480, 640), (90, 120)),
        ((9999, 1), (120, 4)),
    ],
)
def test_the_longer_side_is_bounded_and_the_proportions_stay(size: tuple[int, int], drawn: tuple[float, float]) -> None:
    (picture,) = lay_out([png(size)])
    assert (picture.width, picture.height) == pytest.approx(drawn)


def test_many_pictures_are_smaller() -> None:
    for count, side, across in ((1, 120, 1), (2, 78, 2), (4, 78, 2), (5, 48, 3), (16, 48, 4)):
        pictures = lay_out([png((400, 400))] * count)
        assert {picture.width for picture in pictures} == {side}
        assert columns(count) == across


@pytest.mark.parametrize("data", [b"", b"GIF89a", png()[:20], png()[:-30], png().replace(b"IDAT", b"JDAT")])
def test_what_is_no_whole_png_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        lay_out([data])
    assert caught.value.code == "image_unreadable"
