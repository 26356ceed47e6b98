"""Pictures in every format: there, at their place, unchanged, and the same bytes twice."""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader

from tests import builders
from torchlens.drawings import Drawing, draw_trace
from torchlens.records.notes import attach
from torchlens.render import svg
from torchlens.render.engine import ENGINES
from torchlens.render.graphviz import SYSTEM
from torchlens.render.pictures import places

ENGINE_NAMES = [name for name in ENGINES if name != "system" or SYSTEM.locate()]
RED, BLUE = (250, 10, 20), (10, 20, 250)


def png(color: tuple[int, ...], size: tuple[int, int] = (200, 100), mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, color).save(buffer, "PNG")
    return buffer.getvalue()


def drawing(engine: str = "embedded", image: bytes | None = None, **options: object) -> Drawing:
    data = builders.chain()
    attach(data, [data.index_of["relu_1_2"]], image=image or png(RED))
    attach(data, [0], batch=(png(BLUE, (100, 100)),) * 3)
    return draw_trace(data, None, {"engine": engine, **options})


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_svg_holds_the_pictures_themselves(engine: str) -> None:
    root = ET.fromstring(drawing(engine).data)
    images = list(root.iter("{http://www.w3.org/2000/svg}image"))
    links = [image.get("{http://www.w3.org/1999/xlink}href", "") for image in images]
    assert len(links) == 4
    assert {base64.b64decode(link.removeprefix("data:image/png;base64,")) for link in links} == {
        png(RED),
        png(BLUE, (100, 100)),
    }
    assert all(float(image.get("width", "")) > 0 for image in images)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize("dpi", [72, 100, 200])
def test_the_png_shows_them_where_the_layout_put_them(engine: str, dpi: int) -> None:
    made = drawing(engine, file_format="png", dpi=dpi)
    image = Image.open(io.BytesIO(made.data)).convert("RGB")
    figure = svg.read(made._artifact("svg").data, pictures={})
    scale = image.width / figure.width
    found = list(places(figure.root))
    assert len(found) == 4
    for place in found:
        color = RED if place.png == png(RED) else BLUE
        for dx, dy in ((0, 0), (-0.45, -0.45), (0.45, 0.45)):
            point = round((place.x + dx * place.width) * scale), round((place.y + dy * place.height) * scale)
            assert image.getpixel(point) == color
    share = sum(image.getpixel((x, y)) == RED for x in range(0, image.width, 3) for y in range(0, image.height, 3))
    expected = next(place.width * place.height for place in found if place.png == png(RED)) * scale**2 / 9
    assert share == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_pdf_holds_them(engine: str) -> None:
    (page,) = PdfReader(io.BytesIO(drawing(engine, file_format="pdf").data)).pages
    colors = {image.image.convert("RGB").getpixel((5, 5)) for image in page.images if image.image}
    assert colors == {RED, BLUE}
    assert "relu_1_2" in page.extract_text()


def test_a_transparent_picture_shows_the_fill_below_it() -> None:
    made = drawing(image=png((0, 0, 0, 0), mode="RGBA"), file_format="png")
    figure = svg.read(made._artifact("svg").data)
    image = Image.open(io.BytesIO(made.data)).convert("RGB")
    scale = image.width / figure.width
    (place,) = [place for place in places(figure.root) if place.width > 78]
    assert image.getpixel((round(place.x * scale), round(place.y * scale))) == (255, 255, 255)
    assert len(made._artifact("pdf").data) > 1000


def test_a_turned_page_turns_its_pictures() -> None:
    made = drawing(image=png(RED, (200, 40)), file_format="png", graph_attrs={"rotate": 90})
    figure = svg.read(made._artifact("svg").data)
    image = Image.open(io.BytesIO(made.data)).convert("RGB")
    scale = image.width / figure.width
    (place,) = [place for place in places(figure.root) if place.png == png(RED, (200, 40))]
    assert abs(place.turn) == pytest.approx(90)
    along = round(place.y * scale + 0.45 * place.width * scale)
    assert image.getpixel((round(place.x * scale), along)) == RED


@pytest.mark.parametrize("file_format", ["svg", "png", "pdf", "dot"])
def test_the_same_figure_gives_the_same_bytes(file_format: str) -> None:
    assert drawing(file_format=file_format).data == drawing(file_format=file_format).data


def test_the_document_names_them_and_a_folder_beside_it_holds_them(tmp_path: Path) -> None:
    made = drawing()
    names = {picture.name for node in made._scene.nodes for picture in node.pictures}
    assert len(names) == 2
    assert all(f'SRC="{name}"' in made.dot for name in names)
    target = made.save(tmp_path / "a & b.dot")
    assets = tmp_path / "a & b.assets"
    assert {path.name for path in assets.iterdir()} == names
    text = target.read_text(encoding="utf-8")
    assert all(f'SRC="a &amp; b.assets/{name}"' in text for name in names)
    draw_trace(builders.chain(), tmp_path / "plain.dot", {})
    assert not (tmp_path / "plain.assets").exists()


@pytest.mark.skipif(SYSTEM.locate() is None, reason="needs an installed Graphviz")
def test_the_written_document_can_be_drawn_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = drawing().save(tmp_path / "a.dot")
    monkeypatch.chdir(tmp_path)
    drawn = SYSTEM.run(target.read_text(encoding="utf-8"), "svg")
    assert drawn.count(b"<image ") == 4


def test_no_files_are_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for file_format in ("svg", "png", "pdf"):
        assert drawing(file_format=file_format).data
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["dot", "rank"])
@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_node_has_room_for_its_pictures(engine: str, layout: str) -> None:
    space = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(drawing(engine, image=png(RED, (100, 300)), layout=layout).data)
    for name, count in (("relu_1_2", 1), ("input_1", 3)):
        (group,) = [element for element in root.iter(f"{space}g") if element.get("id") == name]
        (outline,) = list(group.iter(f"{space}path"))
        numbers = [float(text) for text in re.findall(r"-?\d+\.?\d*", outline.get("d", ""))]
        left, right, top, bottom = min(numbers[::2]), max(numbers[::2]), min(numbers[1::2]), max(numbers[1::2])
        images = list(group.iter(f"{space}image"))
        assert len(images) == count
        for image in images:
            x, y, width, height = (float(image.get(side, "")) for side in ("x", "y", "width", "height"))
            assert left <= x <= x + width <= right
            assert top <= y <= y + height <= bottom
