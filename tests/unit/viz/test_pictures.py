"""What counts as a picture, and the PNG that a node gets."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from torchlens.base.errors import InvalidArgumentError
from torchlens.records.notes import MOST_PICTURES
from torchlens.viz.pictures import KEPT_SIDE, SHRUNK_SIDE, TINY_SIDE, png_of, pngs_of


def opened(data: bytes) -> Image.Image:
    assert data.startswith(b"\x89PNG")
    return Image.open(io.BytesIO(data))


def test_a_png_of_moderate_size_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGBA", (200, 100), (1, 2, 3, 4)).save(path)
    assert png_of(path) == png_of(str(path)) == path.read_bytes()


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.jpg", "RGB"), ("a.webp", "RGB"), ("a.bmp", "RGB"), ("b.jpg", "CMYK"), ("a.gif", "P"), ("l.png", "1")],
)
def test_other_files_are_converted(tmp_path: Path, name: str, mode: str) -> None:
    Image.new(mode, (200, 100)).save(tmp_path / name)
    picture = opened(png_of(tmp_path / name))
    assert (picture.size, picture.format) == ((200, 100), "PNG")
    assert picture.mode in ("L", "RGB", "RGBA")


def test_a_large_picture_is_made_smaller_and_a_tiny_one_keeps_its_pixels() -> None:
    assert opened(png_of(Image.new("RGB", (KEPT_SIDE + 1, 100)))).width == SHRUNK_SIDE
    digit = Image.new("L", (2, 2))
    digit.putpixel((0, 0), 255)
    picture = opened(png_of(digit))
    assert picture.width == TINY_SIDE
    assert sorted(set(picture.tobytes())) == [0, 255]


def test_sixteen_bits_keep_their_range() -> None:
    picture = opened(png_of(Image.new("I;16", (100, 100), 0x8000)))
    assert picture.getpixel((5, 5)) == 0x80


def test_a_photo_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (200, 100))
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "a.jpg", exif=exif)
    assert opened(png_of(tmp_path / "a.jpg")).size == (100, 200)


def test_the_same_picture_gives_the_same_bytes(tmp_path: Path) -> None:
    image = Image.effect_mandelbrot((900, 700), (-2, -1, 1, 1), 50)
    assert png_of(image) == png_of(image.copy())


def test_of_a_long_list_the_rest_is_only_counted() -> None:
    images = [Image.new("L", (100, 100), k) for k in range(MOST_PICTURES + 3)]
    found = pngs_of(images)
    assert len(found) == len(images)
    assert [bool(png) for png in found] == [True] * MOST_PICTURES + [False] * 3
    assert pngs_of(images[0]) == found[:1]


@pytest.mark.parametrize("image", [3, None, b"\x89PNG", [1], "no such file.png"])
def test_what_is_no_picture_is_refused(image: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        png_of(image)
    assert caught.value.code == "image_unreadable"


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    with pytest.raises(InvalidArgumentError, match=r"a\.png") as caught:
        png_of(tmp_path / "a.png")
    assert caught.value.code == "image_unreadable"
