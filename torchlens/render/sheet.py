"""Sheet -> DOT text in which everything has its place, so that every engine and every format draws it alike.

Text is escaped by `dot_text` and nowhere else. The same sheet gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from torchlens.render.dot_nodes import style_attributes
from torchlens.render.dot_text import TABLE, attribute_list, html, number, quote, safe_id, strong
from torchlens.render.placement import INCH, Rect, root_attributes
from torchlens.scene.label_size import LINE_HEIGHT, outer_border
from torchlens.scene.sheet import Area, Line, Shape, Sheet, Words

_HEAD = 9.0


def page_of(sheet: Sheet) -> Rect:
    """What the marks take at most: an engine makes the page as large as they are, and adds the margin."""
    return Rect(0.0, 0.0, sheet.width, sheet.height)


def write(sheet: Sheet) -> str:
    """The sheet as DOT text."""
    lines = [f"digraph {quote(sheet.title)} {{", *_defaults(sheet)]
    for k, mark in enumerate(sheet.marks):
        lines += _writer_of(mark)(k, mark, sheet)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _writer_of(mark: Shape | Words | Line) -> Callable[[int, Any, Sheet], Iterator[str]]:
    if isinstance(mark, Shape):
        return _ground if mark.ground else _shape
    return _words if isinstance(mark, Words) else _line


def _defaults(sheet: Sheet) -> Iterator[str]:
    graph = {"id": "tl-graph", "class": "torchlens", "bgcolor": sheet.background, "pad": sheet.margin / INCH}
    yield f" graph {attribute_list(graph)};"
    yield f" graph [{root_attributes(page_of(sheet), (0, 0)).rpartition(' lp=')[0]} outputorder=edgesfirst];"
    yield f" node {attribute_list({'fontname': sheet.font, 'label': ''})};"
    yield " edge [arrowhead=none];"


def _ground(k: int, mark: Shape, sheet: Sheet) -> Iterator[str]:
    """A frame, because an engine paints frames before anything else; it takes one with something in it."""
    left, top, width, height = mark.area
    corners = [*_turned((left, top + height), sheet), *_turned((left + width, top), sheet)]
    look = {"style": "filled", "fillcolor": mark.style.fill, "color": mark.style.stroke or mark.style.fill}
    x, y = _turned((left + width / 2, top + height / 2), sheet)
    yield f" subgraph cluster_{k} {{"
    name, place = safe_id(mark.name), ",".join(corners)
    yield f'  graph [id="{name}" {attribute_list(look)[1:-1]} penwidth=0 label="" bb="{place}"];'
    yield f'  g{k} [style=invis shape=point width=0.01 height=0.01 pos="{x},{y}"];'
    yield " }"


def _shape(k: int, mark: Shape, sheet: Sheet) -> Iterator[str]:
    """A node of exactly this size, borders included."""
    border = outer_border(mark.style)
    area = mark.area._replace(width=mark.area.width - border, height=mark.area.height - border)
    style = attribute_list({**style_attributes(mark.style), "width": None, "height": None, "fixedsize": "true"})[1:-1]
    yield f' s{k} [id="{safe_id(mark.name)}" class="shape" {style}{_place(_middle(mark.area), area, sheet)}];'


def _words(k: int, mark: Words, sheet: Sheet) -> Iterator[str]:
    # The cell is as high as its text, so that no engine has to centre it.
    width, height = round(mark.area.width), round(mark.size * LINE_HEIGHT) + 2
    text = strong(html(mark.text), mark.bold or sheet.bold)
    font = f'<FONT POINT-SIZE="{number(mark.size)}" COLOR="{mark.color}">{text}</FONT>' if mark.text else ""
    cell = f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}" ALIGN="{mark.align}">{font}</TD>'
    label = f"<{TABLE.format(0, f'<TR>{cell}</TR>')}>"
    place = _place(_middle(mark.area), mark.area._replace(height=height), sheet)
    yield f' w{k} [id="{safe_id(mark.name)}" class="words" shape=plaintext margin=0 label={label}{place}];'


def _middle(area: Area) -> tuple[float, float]:
    return area.left + area.width / 2, area.top + area.height / 2


def _place(middle: tuple[float, float], area: Area, sheet: Sheet) -> str:
    x, y = _turned(middle, sheet)
    return f' pos="{x},{y}" width={area.width / INCH:.3f} height={area.height / INCH:.3f}'


def _line(k: int, line: Line, sheet: Sheet) -> Iterator[str]:
    """Two points that are not drawn, and the line between them as cubic pieces."""
    ends = (line.points[0], line.points[-1])
    for side, end in zip("ab", ends, strict=True):
        x, y = _turned(end, sheet)
        yield f' {side}{k} [style=invis shape=point width=0.01 height=0.01 pos="{x},{y}"];'
    points = list(line.points)
    head = ""
    if line.arrow:
        tip = points[-1]
        points[-1] = _before(points[-2], tip)
        head = f"e,{','.join(_turned(tip, sheet))} "
    path = " ".join(",".join(_turned(point, sheet)) for point in _cubic(points))
    style = {"color": line.color, "penwidth": line.width, "style": "dashed" if line.dashed else None}
    more = " arrowhead=normal arrowsize=0.7" if line.arrow else ""
    yield f' a{k} -> b{k} [id="{safe_id(line.name)}" {attribute_list(style)[1:-1]}{more} pos="{head}{path}"];'


def _before(start: tuple[float, float], tip: tuple[float, float]) -> tuple[float, float]:
    """Where a head begins."""
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    share = _HEAD * 0.7 / max((dx * dx + dy * dy) ** 0.5, _HEAD)
    return tip[0] - dx * share, tip[1] - dy * share


def _cubic(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Straight pieces as curves whose inner points lie at their ends."""
    yield points[0]
    for before, point in pairwise(points):
        yield from (before, point, point)


def _turned(point: tuple[float, float], sheet: Sheet) -> tuple[str, str]:
    """The engine's y grows upwards."""
    return number(point[0]), number(sheet.height - point[1])
