"""Makes an engine's SVG the package's own: one form for both engines, the same bytes everywhere, safe to put inline.

The picture is untouched. What changes: fonts with metric-compatible fallbacks, tooltips as titles, one block of
gradients with names made from their content (so that several figures share a page), no engine version, no doctype.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from torchlens.base.errors import fail
from torchlens.base.text import clean
from torchlens.render.artifacts import Artifact, Page
from torchlens.render.pictures import HREF, embed

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_NAMESPACES = {_SVG: "", _XLINK: "xlink:", "http://www.w3.org/XML/1998/namespace": "xml:"}

# All metric-compatible, so that text fits the boxes that were laid out for the first.
FONT_STACKS = {
    "Helvetica": "Helvetica,Arial,Liberation Sans,Arimo,sans-serif",
    "Arial": "Helvetica,Arial,Liberation Sans,Arimo,sans-serif",
    "Times": "Times,Times New Roman,Liberation Serif,Tinos,serif",
    "Courier": "Courier,Courier New,Liberation Mono,Cousine,monospace",
}
BASE_FONT = FONT_STACKS["Helvetica"]

_ROOT_PARTS = ("key", "caption")
_ROOT_TAG = re.compile(r"<svg [^>]*>")
_SIZE = re.compile(r' width="([\d.]+)pt" height="([\d.]+)pt"')


@dataclass(frozen=True, slots=True)
class Figure:
    """A parsed figure. width, height: points; title: of the whole figure."""

    root: ET.Element
    width: float
    height: float
    title: str


# -- reading
def read(data: bytes, *, title: str = "", pictures: Mapping[str, bytes] | None = None) -> Figure:
    """Parse and tidy what an engine wrote.

    title: replaces the figure's own; pictures: the PNG files it names, which become part of it.
    Raises: EngineError[render_engine_failed] if it is not well-formed.
    """
    try:
        root = ET.fromstring(data)
    except ET.ParseError as cause:
        fail("render_engine_failed", f"the engine wrote SVG that cannot be read: {cause}")
    for element in root.iter():
        element.tag = _plain(element.tag)
        element.attrib = {_plain(name): text for name, text in element.attrib.items()}
        element.tail = "\n"
    graph = root.find("g")
    if graph is None:
        fail("render_engine_failed", "the engine wrote SVG without a graph")
    title = clean(title or graph.findtext("title") or "")
    _unwrap_tooltips(root)
    _collect_paints(root)
    _name_fonts(root)
    embed(root, pictures or {})
    width, height = (float(root.get(side, "0").removesuffix("pt")) for side in ("width", "height"))
    return Figure(root, width, height, title)


@cache
def _plain(name: str) -> str:
    for uri, prefix in _NAMESPACES.items():
        name = name.replace(f"{{{uri}}}", prefix)
    return name


def _unwrap_tooltips(root: ET.Element) -> None:
    """Turn each tooltip link into a title of its group, and drop titles that only repeat an internal name.

    The lines of header, caption and key are cells with an id, which the engine wraps like tooltips: they keep it.
    """
    for group in reversed([element for element in root.iter() if element.tag in ("g", "a")]):
        children: list[ET.Element] = []
        tips: list[str] = []
        for child in group:
            link = _tooltip_link(child)
            part = child.get("id", "").removeprefix("a_")
            if link is not None and part.startswith(_ROOT_PARTS):
                named = ET.Element("g", {"id": part})
                named.extend(link)
                named.text = named.tail = "\n"
                children.append(named)
            elif link is not None:
                tips.append(link.get("xlink:title", ""))
                children.extend(link)
            elif child.tag != "title":
                children.append(child)
        if any(tips):
            title = ET.Element("title")
            title.text, title.tail = next(tip for tip in tips if tip), "\n"
            children.insert(0, title)
        group[:] = children


def _tooltip_link(group: ET.Element) -> ET.Element | None:
    """The link inside a group that holds nothing else and leads nowhere."""
    if group.tag != "g" or len(group) != 1 or group[0].tag != "a" or group[0].get("xlink:href"):
        return None
    return group[0]


def _collect_paints(root: ET.Element) -> None:
    """Move all gradients to one block, named by their content; equal ones become one. No paint is always `none`."""
    names: dict[str, str] = {}
    kept: dict[str, ET.Element] = {}
    for parent in list(root.iter("g")):
        for block in parent.findall("defs"):
            for gradient in block:
                old = gradient.attrib.pop("id")
                content = ET.tostring(gradient, encoding="unicode")
                name = "gradient-" + hashlib.sha256(content.encode()).hexdigest()[:12]
                gradient.attrib = {"id": name, **gradient.attrib}
                names[f"url(#{old})"] = f"url(#{name})"
                kept.setdefault(name, gradient)
            parent.remove(block)
    if kept:
        block = ET.Element("defs")
        block.text = block.tail = "\n"
        block.extend(kept.values())
        root.insert(0, block)
    names["transparent"] = "none"  # the word of older versions
    for element in root.iter():
        for side in ("fill", "stroke"):
            color = element.get(side)
            if color in names:
                element.set(side, names[color])


def _name_fonts(root: ET.Element) -> None:
    for text in root.iter("text"):
        text.attrib.pop("xml:space", None)
        family = text.attrib.pop("font-family", "Helvetica")
        stack = FONT_STACKS.get(family.partition(",")[0], family)
        if stack != BASE_FONT:
            text.set("font-family", stack)


# -- writing
def write(figure: Figure) -> Artifact:
    """The figure as an SVG file in points."""
    root = figure.root
    attributes = {
        "xmlns": _SVG,
        "class": "torchlens",
        "width": f"{figure.width:g}pt",
        "height": f"{figure.height:g}pt",
        "viewBox": root.get("viewBox", f"0 0 {figure.width:g} {figure.height:g}"),
        "font-family": BASE_FONT,
        "xml:space": "preserve",
    }
    if any(element.get(HREF) for element in root.iter() if element.tag in ("a", "image")):
        attributes["xmlns:xlink"] = _XLINK
    outer = ET.Element("svg", attributes)
    outer.text = "\n"
    if figure.title:
        title = ET.SubElement(outer, "title")
        title.text, title.tail = figure.title, "\n"
    outer.extend(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(outer, encoding="unicode") + "\n"
    return Artifact(text.encode("utf-8"), "svg", Page(figure.width, figure.height))


def inline(data: bytes) -> str:
    """A written SVG for a notebook or a web page: as wide as its cell at most, never cut, no XML declaration."""
    text = data.decode("utf-8")
    text = text[text.index("<svg ") :]
    head = _ROOT_TAG.match(text)
    assert head is not None
    sized = _SIZE.sub(lambda m: f' width="100%" style="max-width:{m[1]}pt;height:auto"', head[0], count=1)
    return sized + text[head.end() :]
