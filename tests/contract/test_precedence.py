"""Who wins over a node's look: every ordered pair of the seven style layers, in the figures that people get.

Read from the DOT of `trace.draw`; what a layer sets is first drawn alone, so that no value is written down here twice.
Who wins over an option: `test_settings_precedence.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, permutations
from typing import Any, NamedTuple

import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

import torchlens
from tests import dot_reading
from torchlens.drawings import Drawing
from torchlens.scene.layers import WORDS, Patch, StyleLayer, merge, overlay
from torchlens.scene.model import NodeStyle, SceneNode
from torchlens.scene.node_spec import NodeSpec
from torchlens.settings.layers import merge as merge_keys

OP, INPUT, ATTENTION = "linear_1_1", "input_1", "scaleddotproductattention_1_2"
PAIRS = list(combinations(StyleLayer, 2))


def test_there_are_21_ordered_pairs_of_the_seven_layers() -> None:
    assert [WORDS[layer] for layer in StyleLayer] == [
        "theme", "view", "keyword", "mark", "channel", "view's own styling", "node_spec_fn",
    ]  # fmt: skip
    assert len(PAIRS) == 21


# -- every pair, every attribute: the merge itself
# Per attribute of a node two values that differ.
VALUES: dict[str, tuple[object, object]] = {
    "shape": ("box", "oval"),
    "peripheries": (1, 2),
    "fill": ("#000000", "#ffffff"),
    "stroke": ("#111111", "#eeeeee"),
    "stroke_width": (1.0, 3.0),
    "dash": ("solid", "dashed"),
    "font_color": ("#222222", "#dddddd"),
    "font_size": (9.0, 14.0),
    "rounded": (False, True),
    "width": (1.0, 2.0),
    "height": (0.5, 0.7),
    "fixed_size": ("false", "true"),
    "attributes": ((("sides", 4),), (("sides", 6),)),
}


def test_the_values_are_of_every_attribute() -> None:
    assert set(VALUES) | {"split"} == set(NodeStyle.__dataclass_fields__)


@pytest.mark.parametrize("attribute", VALUES)
@pytest.mark.parametrize(("low", "high"), PAIRS, ids=lambda layer: layer.name.lower())
def test_of_two_layers_the_higher_one_wins_each_attribute(low: StyleLayer, high: StyleLayer, attribute: str) -> None:
    beaten, winning = VALUES[attribute]
    under = Patch(low, low.name, NodeStyle(**{attribute: beaten}))  # type: ignore[arg-type]
    over = Patch(high, high.name, NodeStyle(**{attribute: winning}))  # type: ignore[arg-type]
    for node in (_bare(under, over), _bare(over, under), overlay(_bare(under), over), overlay(_bare(over), under)):
        assert getattr(node.style, attribute) == winning
        assert node.origin[attribute] == high.name
        assert [(step.source, step.value) for step in node.trail[attribute]] == [
            (low.name, beaten),
            (high.name, winning),
        ]


@pytest.mark.parametrize(("low", "high"), PAIRS, ids=lambda layer: layer.name.lower())
def test_how_a_fill_is_laid_out_goes_with_the_fill_that_wins(low: StyleLayer, high: StyleLayer) -> None:
    split, plain = NodeStyle(fill="#ff0000:#ffffff", split=True), NodeStyle(fill="#00ff00")
    assert _bare(Patch(low, "low", split), Patch(high, "high", plain)).style == plain
    assert _bare(Patch(low, "low", plain), Patch(high, "high", split)).style == split


def _bare(*patches: Patch) -> SceneNode:
    style, origin, trail = merge(patches)
    return SceneNode("x", "op", "op", (), style, origin, "", None, (), (), trail)


# -- the same with what people really write, in the DOT of a drawing
class Way(NamedTuple):
    """One way in which a user makes a layer set an attribute of a node.

    attribute: as the style calls it, or `rows`; node: of the drawing; given: keywords of `draw`; source: how `explain`
    names the layer's word.
    """

    layer: StyleLayer
    attribute: str
    given: Mapping[str, Any]
    source: str
    node: str = OP


def _hook(**changes: Any) -> Callable[[object, NodeSpec], None]:
    def own(record: object, spec: NodeSpec) -> None:
        for name, value in changes.items():
            setattr(spec, name, value)

    return own


def _role(role: str, **look: Any) -> dict[str, Any]:
    return {"theme": {"roles": {role: look}}}


def _view(**draw: Any) -> dict[str, Any]:
    return {"view": {"question": "mine?", "draw": draw}}


def _values(record: Any) -> float:
    return float(record.shape[-1])


THEME, VIEW, KEYWORD, MARK, CHANNEL, VIEW_STYLE, NODE_SPEC = StyleLayer
HOOK = "node_spec_fn"
STATUS = "nonfinite status: "
NAN, UNCHECKED = ({"marked": name, "show_nonfinite": True} for name in ("nan", "forgotten"))
WAYS = [
    Way(THEME, "fill", _role("trainable", fill="#abcdef"), "role trainable"),
    Way(THEME, "stroke", _role("op", stroke="#102030"), "role trainable"),
    Way(THEME, "stroke_width", _role("op", stroke_width=4), "role trainable"),
    Way(THEME, "dash", _role("op", dash="dotted"), "role trainable"),
    Way(THEME, "font_color", _role("op", font_color="#203040"), "role trainable"),
    Way(THEME, "font_size", {"theme": {"fonts": {"base": 15}}}, "role trainable"),
    Way(THEME, "shape", {}, "what the node is"),
    Way(THEME, "peripheries", {}, "what the node is"),
    Way(THEME, "rows", {"theme": {"draw": {"node_label_fields": ["name"]}}}, "theme:"),
    Way(THEME, "fill", _role("input", fill="#abcdef"), "role input", INPUT),
    Way(THEME, "stroke", _role("op", stroke="#102030"), "role input", INPUT),
    Way(THEME, "stroke_width", _role("op", stroke_width=4), "role input", INPUT),
    Way(VIEW, "font_size", _view(font_size=16), "font_size from view:"),
    Way(VIEW, "rows", _view(node_label_fields=["name", "shape"]), "view:"),
    Way(KEYWORD, "font_size", {"font_size": 17}, "font_size from explicit"),
    Way(KEYWORD, "rows", {"node_label_fields": ["name", "dtype"]}, "explicit"),
    Way(THEME, "shape", {}, "what the node is", INPUT),
    Way(MARK, "shape", {"marked": "picture"}, "carries a picture", INPUT),
    Way(MARK, "rounded", {"marked": "picture"}, "carries a picture", INPUT),
    *(Way(MARK, name, NAN, STATUS, OP) for name in ("fill", "stroke", "stroke_width")),
    *(Way(MARK, name, NAN, STATUS, INPUT) for name in ("fill", "stroke_width")),
    *(Way(MARK, name, UNCHECKED, STATUS, OP) for name in ("stroke", "stroke_width", "dash")),
    Way(MARK, "stroke", UNCHECKED, STATUS, INPUT),
    Way(MARK, "stroke_width", UNCHECKED, STATUS, ATTENTION),
    Way(CHANNEL, "fill", {"color_by": _values}, "color_by _values"),
    Way(CHANNEL, "width", {"size_by": _values}, "size_by _values"),
    Way(CHANNEL, "height", {"size_by": _values}, "size_by _values"),
    Way(CHANNEL, "fill", {"color_by": _values}, "color_by _values", INPUT),
    Way(CHANNEL, "stroke", {"color_by": _values}, "color_by _values", INPUT),
    Way(CHANNEL, "stroke_width", {"color_by": _values}, "color_by _values", INPUT),
    Way(VIEW_STYLE, "stroke_width", {"node_style": "attention"}, "node_style attention", ATTENTION),
    Way(THEME, "stroke_width", _role("op", stroke_width=4), "role op", ATTENTION),
    Way(NODE_SPEC, "stroke_width", {HOOK: _hook(penwidth=7)}, HOOK, ATTENTION),
    Way(NODE_SPEC, "fill", {HOOK: _hook(fillcolor="#123456")}, HOOK),
    Way(NODE_SPEC, "stroke", {HOOK: _hook(color="#654321")}, HOOK),
    Way(NODE_SPEC, "stroke_width", {HOOK: _hook(penwidth=7)}, HOOK),
    Way(NODE_SPEC, "dash", {HOOK: _hook(style="filled,bold")}, HOOK),
    Way(NODE_SPEC, "font_color", {HOOK: _hook(fontcolor="#900000")}, HOOK),
    Way(NODE_SPEC, "font_size", {HOOK: _hook(extra_attrs={"fontsize": 18})}, HOOK),
    Way(NODE_SPEC, "shape", {HOOK: _hook(shape="hexagon")}, HOOK),
    Way(NODE_SPEC, "peripheries", {HOOK: _hook(extra_attrs={"peripheries": 3})}, HOOK),
    Way(NODE_SPEC, "width", {HOOK: _hook(width=9.0)}, HOOK),
    Way(NODE_SPEC, "height", {HOOK: _hook(height=8.0)}, HOOK),
    Way(NODE_SPEC, "rows", {HOOK: _hook(lines=["mine"])}, HOOK),
    Way(NODE_SPEC, "shape", {HOOK: _hook(shape="hexagon")}, HOOK, INPUT),
    Way(NODE_SPEC, "rounded", {HOOK: _hook(style="filled,solid")}, HOOK, INPUT),
    Way(NODE_SPEC, "fill", {HOOK: _hook(fillcolor="#123456")}, HOOK, INPUT),
    Way(NODE_SPEC, "stroke", {HOOK: _hook(color="#654321")}, HOOK, INPUT),
    Way(NODE_SPEC, "stroke_width", {HOOK: _hook(penwidth=7)}, HOOK, INPUT),
]
CONTESTS = [
    (low, high)
    for low, high in permutations(WAYS, 2)
    if low.layer < high.layer and (low.node, low.attribute) == (high.node, high.attribute)
]
# Layers that never set the same attribute: what there is to prove of them is in the table above.
APART = {
    (VIEW, MARK), (VIEW, CHANNEL), (VIEW, VIEW_STYLE), (KEYWORD, MARK), (KEYWORD, CHANNEL), (KEYWORD, VIEW_STYLE),
    (CHANNEL, VIEW_STYLE),
}  # fmt: skip
_IN_DOT = {
    "fill": "fillcolor",
    "stroke": "color",
    "stroke_width": "penwidth",
    "dash": "style",
    "rounded": "style",
    "font_color": "fontcolor",
    "font_size": "fontsize",
    "rows": "label",
}


class Attending(nn.Module):
    """A linear layer, attention of its output to itself, and ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.project(x)
        return functional.scaled_dot_product_attention(y, y, y).relu()


class Traces(NamedTuple):
    """plain: as recorded; picture: at the input; nan: of an input of NaN; forgotten: without most values."""

    plain: torchlens.Trace
    picture: torchlens.Trace
    nan: torchlens.Trace
    forgotten: torchlens.Trace


@pytest.fixture(scope="module")
def traces() -> Traces:
    torch.manual_seed(0)
    model, x = Attending().eval(), torch.zeros(1, 4, 8)
    picture = torchlens.trace(model, x)
    picture.annotate(INPUT, image=Image.new("L", (8, 8)))
    nan = torchlens.trace(model, x / 0)
    return Traces(torchlens.trace(model, x), picture, nan, torchlens.trace(model, x, save=["relu_1_3"]))


def _draw(traces: Traces, *ways: Way) -> Drawing:
    given: dict[str, Any] = {}
    for way in ways:
        given = merge_keys((given, way.given), depth=4)
    return getattr(traces, given.pop("marked", "plain")).draw(**given)


def _seen(drawing: Drawing, way: Way) -> str:
    """The attribute as the DOT has it."""
    found = dot_reading.nodes(drawing.dot)[way.node].get(_IN_DOT.get(way.attribute, way.attribute), "")
    if way.attribute == "rounded":
        return str("rounded" in found.split(","))
    return " | ".join(dot_reading.rows(found)) if way.attribute == "rows" else found.rpartition(",")[2]


def _of(way: Way) -> str:
    return f"{way.layer.name.lower()}-{way.attribute}-{way.node}"


def test_every_pair_of_layers_that_can_meet_meets_here() -> None:
    assert {(low.layer, high.layer) for low, high in CONTESTS} == set(PAIRS) - APART
    assert {way.attribute for _, way in CONTESTS} == {
        "fill", "stroke", "stroke_width", "dash", "rounded", "font_color", "font_size", "shape", "peripheries", "width",
        "height", "rows",
    }  # fmt: skip


@pytest.mark.parametrize(("low", "high"), CONTESTS, ids=_of)
def test_in_a_drawing_the_higher_layer_wins_and_explain_says_over_whom(low: Way, high: Way, traces: Traces) -> None:
    beaten, winning = _seen(_draw(traces, low), low), _seen(_draw(traces, high), high)
    assert beaten != winning
    both = _draw(traces, low, high)
    assert _seen(both, high) == winning
    _check_told(both, low, high)


def _check_told(drawing: Drawing, low: Way, high: Way) -> None:
    """That `explain` names the winner before the beaten; of rows that the settings do, and the hook after them."""
    style, settings = str(drawing.explain(high.node)).split("\nsetting")
    rows = high.attribute == "rows"
    name = "node_label_fields" if rows else high.attribute
    (line,) = [line for line in (settings if rows else style).splitlines() if line.split()[:1] == [name]]
    if rows and high.layer == NODE_SPEC:
        (contents,) = [line for line in style.splitlines() if line.split()[:1] == ["lines"]]
        assert high.source in contents
        assert low.source in line
        return
    assert 0 < line.index(high.source) < line.rindex(low.source), line


@pytest.mark.parametrize("way", WAYS, ids=_of)
def test_alone_each_way_shows_and_is_named(way: Way, traces: Traces) -> None:
    drawing = _draw(traces, way)
    # A hook that asks for no rounded corners changes a node only where a mark has rounded it.
    if way.given and (way.layer, way.attribute) != (NODE_SPEC, "rounded"):
        assert way.source in str(drawing.explain(way.node))
        assert _seen(drawing, way) != _seen(traces.plain.draw(), way)
