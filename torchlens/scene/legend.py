"""The key: a colour bar with its two ends, the rings of inputs and outputs, how to read the stubs of a focused module,
and with `show_legend=True` the fills and shapes that this drawing uses. Reads finished styles, so that a sample never
differs from what it explains.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.base.units import range_text
from torchlens.plan.graph import CAPSULES, FROM, STUBS, TO
from torchlens.scene.channels import Channel
from torchlens.scene.layers import HOOK
from torchlens.scene.marks import SOURCE, samples, unmarked
from torchlens.scene.model import BarLine, NodeStyle, RootLine, SceneBox, SceneNode, SwatchLine, TextLine
from torchlens.settings.theme import Theme

CELLS = 48

FILLS = {
    "input": "input",
    "output": "output",
    "trainable": "trainable parameters",
    "frozen": "frozen parameters",
    "mixed": "trainable and frozen",
    "branch_test": "branch test",
    "op": "other operation",
}
# Roles that look like other operations unless a theme gives them a fill of their own.
OWN_FILLS = {"buffer": "buffer version", "constant": "constant", "box": "module without parameters"}
_STUB_TEXTS = {FROM: "from: feeds this module", TO: "to: reads from it"}
SHAPES = {
    "oval": "ellipse: operation",
    "box": "rectangle: a module's one operation",
    "double": "double border: uses hidden buffers",
    "box3d": "3-D box: module drawn as one node",
    "cylinder": "cylinder: buffer version",
    "picture": "rounded box: carries a picture",
    "segment": "dashed rounded: run of blocks or operations",
    "fold": "... +N more: modules like the one before",
    "outputs": "double ellipse: several outputs alike",
    "dashed": "dashed: not computed from the input",
}


def key_lines(
    channel: Channel | None,
    nodes: Sequence[SceneNode],
    boxes: Sequence[SceneBox],
    theme: Theme,
    show_legend: bool | None,
    further: Sequence[str] = (),
) -> list[RootLine]:
    """The lines of the key, from the top. further: those of the size and the column channel."""
    if show_legend is False:
        return []
    writer = _KeyWriter(theme, channel.rings if channel else ())
    lines: list[RootLine] = []
    if channel is not None:
        lines.append(writer.scale(channel))
    lines += map(writer.text, further)
    if channel is not None and not show_legend:
        lines += [writer.swatch(role, nodes) for role in channel.rings]
    if show_legend:
        lines += [writer.swatch(role, nodes) for role in _used_roles(channel, nodes, theme)]
    lines += [writer.stub(kind, nodes) for kind in _STUB_TEXTS if any(node.kind == kind for node in nodes)]
    if show_legend:
        lines += [writer.mark(*sample) for sample in samples(nodes)]
        lines += [writer.text(SHAPES[name]) for name in _used_shapes(nodes, boxes)]
    return lines


def _used_roles(channel: Channel | None, nodes: Sequence[SceneNode], theme: Theme) -> list[str]:
    """Roles whose fill is on the page; under a channel the fill is the scale's and only the rings are left."""
    if channel is not None and channel.active:
        return list(channel.rings)
    used = {node.role for node in nodes if node.kind not in STUBS and _is_usual(node, "fill")}
    own = [role for role in OWN_FILLS if theme.roles[role].fill != theme.roles["op"].fill]
    return [role for role in (*FILLS, *own) if role in used]


def _used_shapes(nodes: Sequence[SceneNode], boxes: Sequence[SceneBox]) -> list[str]:
    used: dict[str, bool] = {}
    for node in nodes:
        shape = "picture" if node.pictures else node.style.shape or "oval"
        if node.kind in CAPSULES:
            used[node.kind] = True
            continue
        shown = {shape: _is_usual(node, "shape") and (node.kind == "op" or shape != "oval")}
        shown["double"] = _is_usual(node, "peripheries") and (node.style.peripheries or 1) > 1
        shown["dashed"] = _is_usual(node, "dash") and node.style.dash == "dashed"
        used.update((name, True) for name, seen in shown.items() if seen)
    used["dashed"] = used.get("dashed", False) or any(box.dashed for box in boxes)
    return [name for name in SHAPES if used.get(name)]


def _is_usual(node: SceneNode, attribute: str) -> bool:
    """Whether an attribute means what it always means, and not what a mark or the user's own function made of it."""
    return not any(word in node.origin.get(attribute, "") for word in (HOOK, SOURCE))


class _KeyWriter:
    """Writes key lines in the theme's secondary text."""

    def __init__(self, theme: Theme, rings: Sequence[str]) -> None:
        self._plain, self._rings = theme.roles["op"].fill, rings
        self._size, self._color = theme.fonts.secondary, theme.page.secondary

    def text(self, text: str) -> TextLine:
        return TextLine("key", text, self._size, self._color)

    def swatch(self, role: str, nodes: Sequence[SceneNode]) -> SwatchLine:
        bearers = [node for node in nodes if node.role == role and node.kind not in STUBS]
        style = unmarked(next((node for node in bearers if _is_usual(node, "fill")), bearers[0]))
        # A ring's inside is the scale's: the colour of one node would explain nothing.
        return self._sample({**FILLS, **OWN_FILLS}[role], style, self._plain if role in self._rings else style.fill)

    def mark(self, text: str, style: NodeStyle) -> SwatchLine:
        line = self._sample(text, style, style.fill)
        return line._replace(split=bool(style.split), dash=style.dash or "solid")

    def stub(self, kind: str, nodes: Sequence[SceneNode]) -> SwatchLine:
        style = unmarked(next(node for node in nodes if node.kind == kind))
        return self._sample(_STUB_TEXTS[kind], style, style.fill)

    def _sample(self, text: str, style: NodeStyle, fill: str | None) -> SwatchLine:
        return SwatchLine(text, fill or "", style.stroke or "", style.stroke_width or 1.0, self._size, self._color)

    def scale(self, channel: Channel) -> RootLine:
        """`time: 0.098 ms [bar] 1.46 ms`, or in words where there is no range of values."""
        name, domain = channel.source.name, channel.encoding.domain
        if domain is None:
            return self.text(f"{name}: no values")
        low, high = range_text(*domain, channel.source.unit)
        if not channel.active:
            return self.text(f"{name}: all {high}")
        return BarLine(f"{name}: {low}", high, tuple(channel.ramp.cells(CELLS)), self._size, self._color)
