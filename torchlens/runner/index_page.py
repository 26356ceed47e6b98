"""Writes `index.html` over the figures of a sweep or a set: one file that opens without a server or a network.

Figures stay beside it and are shown by relative names. What the page searches for are the labels of nodes and frames
with their boxes, read from the SVG files and put into the page as data; nothing of them is ever markup.
"""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchlens.base.files import write_atomically
from torchlens.runner.folders import key_of, value_of
from torchlens.runner.sweep import Ending, Planned

NAME = "index.html"
_PARTS = Path(__file__).with_name("page")
_SVG = "{http://www.w3.org/2000/svg}"
# Formats that a browser shows in an <img>, best first.
_SHOWN = (".svg", ".png", ".jpg")
# Boxes are whole numbers on a page of this side, so that they are short.
_GRID = 10_000
_TEXT_LENGTH = 240
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def write(planned: Sequence[Planned], endings: Sequence[Ending], keys: Sequence[str]) -> Path | None:
    """Write the page into the folder of the run and return its path; None if nothing was drawn.

    keys: what the sweep varied. Raises: InvalidArgumentError[output_path_invalid].
    """
    if not any(ending.files for ending in endings):
        return None
    top = planned[0].folder.parent if planned[0].name else planned[0].folder
    write_atomically(top / NAME, page(planned, endings, keys, top).encode("utf-8", errors="replace"))
    return top / NAME


def page(planned: Sequence[Planned], endings: Sequence[Ending], keys: Sequence[str], top: Path) -> str:
    """The text of the page. top: the folder it is for."""
    data = json.dumps(describe(planned, endings, keys, top), ensure_ascii=False, separators=(",", ":"))
    parts = {
        "title": html.escape(planned[0].job.figure_set if not planned[0].name else top.name or "sweep"),
        "style": (_PARTS / "page.css").read_text(encoding="utf-8"),
        # Neither a closing tag nor a comment may start inside a script.
        "data": data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
        "script": (_PARTS / "page.js").read_text(encoding="utf-8"),
    }
    template = (_PARTS / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def describe(planned: Sequence[Planned], endings: Sequence[Ending], keys: Sequence[str], top: Path) -> dict[str, Any]:
    """What the page shows: axes, figures with their files and choices, and the labels with their boxes."""
    texts: dict[str, int] = {}
    jobs = {item.name: item for item in planned}
    several = any(len(item.job.figures) > 1 for item in planned)
    figures: list[dict[str, Any]] = []
    for ending in endings:
        item = jobs[ending.folder]
        values = _axis_values(item, keys) | ({"figure": ending.figure} if several else {})
        chosen = {figure.name: dict(figure.chosen) for figure in item.job.figures}.get(ending.figure, {})
        figures.append(
            {"name": ending.figure, "values": values, "chosen": chosen, "status": ending.status, "text": ending.text}
            | _picture(ending, top, texts)
        )
    axes = [*keys, *(["figure"] if several else [])]
    return {
        "axes": [{"key": axis, "values": list(dict.fromkeys(_value(f, axis) for f in figures))} for axis in axes],
        "figures": figures,
        "texts": list(texts),
        "grid": _GRID,
    }


def _value(figure: dict[str, Any], axis: str) -> str:
    return figure["values"].get(axis, "")


def _axis_values(item: Planned, keys: Sequence[str]) -> dict[str, str]:
    found = dict.fromkeys(keys, "")
    for override in item.overrides:
        if key_of(override) in found:
            found[key_of(override)] = value_of(override)
    return found


def _picture(ending: Ending, top: Path, texts: dict[str, int]) -> dict[str, Any]:
    """The files of a figure, the one to show, and its boxes."""
    place = f"{ending.folder}/" if ending.folder else ""
    files = [{"href": quote(place + file), "format": Path(file).suffix.lstrip(".")} for file in ending.files]
    by_suffix = {Path(file).suffix: file for file in ending.files}
    shown = next((by_suffix[suffix] for suffix in _SHOWN if suffix in by_suffix), None)
    found: dict[str, Any] = {"files": files, "shown": quote(place + shown) if shown else "", "boxes": []}
    if ".svg" in by_suffix:
        found |= _boxes((top / ending.folder / by_suffix[".svg"]).read_bytes(), texts)
    return found


# -- boxes
def _boxes(data: bytes, texts: dict[str, int]) -> dict[str, Any]:
    """Size of an SVG figure, and its nodes and frames as [label, text, left, top, width, height], frames first.

    label and text are indexes into the texts, which all figures of a page share; numbers are parts of the grid.
    """
    try:
        root = ET.fromstring(data)
    except ET.ParseError:
        return {}
    numbers = [float(number) for number in (root.get("viewBox") or "").split()]
    if len(numbers) != 4 or min(numbers[2:]) <= 0:
        return {}
    left, top, width, height = numbers
    graph = root.find(f"{_SVG}g")
    shift = _shift(graph.get("transform") or "") if graph is not None else (0.0, 0.0)
    boxes: list[list[int]] = []
    for element in graph.iter(f"{_SVG}g") if graph is not None else ():
        name, kind = element.get("id"), (element.get("class") or "").partition(" ")[0]
        corners = _corners(element) if name and kind in ("node", "cluster") else None
        if name is None or corners is None:
            continue
        x0, y0, x1, y1 = corners
        part = [
            _GRID * (x0 + shift[0] - left) / width,
            _GRID * (y0 + shift[1] - top) / height,
            _GRID * (x1 - x0) / width,
            _GRID * (y1 - y0) / height,
        ]
        words = " ".join("".join(text.itertext()) for text in element.iter(f"{_SVG}text"))
        named = [texts.setdefault(text, len(texts)) for text in (name, words[:_TEXT_LENGTH])]
        boxes.append([*named, *(round(number) for number in part)])
    return {"width": width, "height": height, "boxes": boxes}


def _shift(transform: str) -> tuple[float, float]:
    found = re.search(r"translate\(([^)]*)\)", transform)
    numbers = [float(number) for number in _NUMBER.findall(found[1])] if found else []
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0.0, 0.0)


def _corners(element: ET.Element) -> tuple[float, float, float, float] | None:
    points = [point for shape in element.iter() for point in _points(shape)]
    if not points:
        return None
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def _points(shape: ET.Element) -> Iterator[tuple[float, float]]:
    """Points that a shape does not leave: its own, those that steer its curves, the ends of its axes."""
    kind = shape.tag.removeprefix(_SVG)
    if kind in ("polygon", "polyline", "path"):
        numbers = [float(number) for number in _NUMBER.findall(shape.get("points") or shape.get("d") or "")]
        yield from zip(numbers[::2], numbers[1::2], strict=False)
    elif kind == "ellipse":
        cx, cy, rx, ry = (float(shape.get(name) or 0) for name in ("cx", "cy", "rx", "ry"))
        yield from ((cx - rx, cy - ry), (cx + rx, cy + ry))
