"""The key: a colour bar with its two ends, the rings of inputs and outputs, and with `show_legend=True` the fills and
shapes that this drawing uses. Reads finished styles, so that a sample never differs from what it explains.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.units import range_text
from torchlens.scene.channels import Channel
from torchlens.scene.model import BarLine, RootLine, SceneBox, SceneNode, SwatchLine, TextLine
from torchlens.settings.theme import Theme

CELLS = 48

_FILLS = {
    "input": "input",
    "output": "output",
    "trainable": "trainable parameters",
    "frozen": "frozen parameters",
    "mixed": "trainable and frozen",
    "op": "other operation",
}
_SHAPES = {
    "oval": "ellipse: operation",
    "box": "rectangle: a module's one operation",
    "double": "double border: uses hidden buffers",
    "box3d": "3-D box: module drawn as one node",
    "cylinder": "cylinder: buffer version",
    "dashed": "dashed: not computed from the input",
}


def key_lines(
    channel: Channel | None,
    nodes: Sequence[SceneNode],
    boxes: Sequence[SceneBox],
    theme: Theme,
    show_legend: bool | None,
) -> list[RootLine]:
    """The lines of the key, from the top."""
    if show_legend is False:
        return []
    writer = _KeyWriter(theme, channel.rings if channel else ())
    lines: list[RootLine] = []
    if channel is not None:
        lines.append(writer.scale(channel))
        if not show_legend:
            lines += [writer.swatch(role, nodes) for role in channel.rings]
    if show_legend:
        lines += [writer.swatch(role, nodes) for role in _used_roles(channel, nodes)]
        lines += [writer.text(_SHAPES[name]) for name in _used_shapes(nodes, boxes)]
    return lines


def _used_roles(channel: Channel | None, nodes: Sequence[SceneNode]) -> list[str]:
    """Roles whose fill is on the page; under a channel the fill is the scale's and only the rings are left."""
    if channel is not None and channel.active:
        return list(channel.rings)
    used = {node.role for node in nodes}
    return [role for role in _FILLS if role in used]


def _used_shapes(nodes: Sequence[SceneNode], boxes: Sequence[SceneBox]) -> list[str]:
    used: dict[str, bool] = {}
    for node in nodes:
        shape = node.style.shape or "oval"
        used[shape] = used.get(shape, False) or node.kind == "op" or shape != "oval"
        used["double"] = used.get("double", False) or (node.style.peripheries or 1) > 1
        used["dashed"] = used.get("dashed", False) or node.style.dash == "dashed"
    used["dashed"] = used.get("dashed", False) or any(box.dashed for box in boxes)
    return [name for name in _SHAPES if used.get(name)]


class _KeyWriter:
    """Writes key lines in the theme's secondary text."""

    def __init__(self, theme: Theme, rings: Sequence[str]) -> None:
        self._plain, self._rings = theme.roles["op"].fill, rings
        self._size, self._color = theme.fonts.secondary, theme.page.secondary

    def text(self, text: str) -> TextLine:
        return TextLine("key", text, self._size, self._color)

    def swatch(self, role: str, nodes: Sequence[SceneNode]) -> SwatchLine:
        style = next(node.style for node in nodes if node.role == role)
        # A ring's inside is the scale's: the colour of one node would explain nothing.
        fill, stroke = (self._plain if role in self._rings else style.fill) or "", style.stroke or ""
        return SwatchLine(_FILLS[role], fill, stroke, style.stroke_width or 1.0, self._size, self._color)

    def scale(self, channel: Channel) -> RootLine:
        """`time: 0.098 ms [bar] 1.46 ms`, or in words where there is no range of values."""
        name, domain = channel.source.name, channel.encoding.domain
        if domain is None:
            return self.text(f"{name}: no values")
        low, high = range_text(*domain, channel.source.unit)
        if not channel.active:
            return self.text(f"{name}: all {high}")
        return BarLine(f"{name}: {low}", high, tuple(channel.ramp.cells(CELLS)), self._size, self._color)
