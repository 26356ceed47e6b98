"""Every theme, view, direction and option draws every sample trace as a document that the engine accepts.

Runs over whatever is registered, so that a new theme, view, row, source or scale is tested by being there.
"""

from __future__ import annotations

import itertools

import pytest

from tests import builders
from tests.option_values import CHOICES, OUTPUT, REFUSALS, keywords_for, words
from torchlens.base.colors import contrast, fill_colors, luminance, parse, text_on
from torchlens.base.errors import TorchLensError
from torchlens.plan import make_plan
from torchlens.plan.graph import Plan
from torchlens.records.trace_data import TraceData
from torchlens.render import dot
from torchlens.render.graphviz import EMBEDDED
from torchlens.scene import build
from torchlens.scene.caption import CAPTIONS
from torchlens.scene.model import BarLine, Scene, SwatchLine
from torchlens.scene.rows import ROWS, RowContext
from torchlens.settings import catalog
from torchlens.settings.compose import DrawRequest, resolve
from torchlens.settings.options import DrawOptions
from torchlens.settings.theme import ROLES, load_theme
from torchlens.settings.view import CAPTION_LINES

THEMES = catalog.names("theme")


def draw(data: TraceData, **given: object) -> tuple[Plan, Scene, DrawRequest]:
    request = resolve(data, given)
    plan = make_plan(data, request)
    return plan, build(plan, data, request), request


@pytest.mark.parametrize(("name", "value"), CHOICES, ids=words)
def test_every_value_of_every_option_draws(name: str, value: object) -> None:
    for make in builders.SAMPLES.values():
        data = make()
        try:
            document = dot.write(draw(data, **keywords_for(name, value, data))[1])
        except TorchLensError as refused:
            if refused.code not in REFUSALS.get(name, ()):
                raise
            continue
        if name in OUTPUT:
            assert document == dot.write(draw(make())[1])
        assert EMBEDDED.run(document, "svg").rstrip().endswith(b"</svg>")


def test_every_option_has_values_here() -> None:
    assert {name for name, _ in CHOICES} == set(DrawOptions.__dataclass_fields__)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("direction", ["bottomup", "topdown", "leftright", "rightleft"])
def test_every_theme_draws_in_every_direction(theme: str, direction: str) -> None:
    for make in builders.SAMPLES.values():
        _, scene, _ = draw(make(), theme=theme, direction=direction, show_legend=True)
        assert EMBEDDED.run(dot.write(scene), "svg").rstrip().endswith(b"</svg>")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("color_by", [None, "time", "bytes", "flops"])
def test_all_text_is_readable_on_its_fill(theme: str, color_by: str | None) -> None:
    for make, depth in itertools.product(builders.SAMPLES.values(), (1, 1000)):
        _, scene, _ = draw(make(), theme=theme, color_by=color_by, depth=depth, show_buffers="always", show_legend=True)
        pairs = [(node.style.fill, node.style.font_color) for node in scene.nodes]
        pairs += [(box.fill, box.font_color) for box in scene.boxes]
        pairs += [(scene.page.background, line.color) for line in scene.root]
        pairs.append((scene.page.background, scene.page.edge_font_color))
        for fill, text in pairs:
            assert all(contrast(color, text or "") >= 4.5 for color in fill_colors(fill or scene.page.background))


@pytest.mark.parametrize("theme", THEMES)
def test_every_role_is_readable_even_where_no_sample_shows_it(theme: str) -> None:
    loaded = load_theme(theme)
    for role in ROLES:
        look = loaded.roles[role]
        fill = look.fill or loaded.page.background
        text = text_on(fill, look.font_color or loaded.page.text)
        assert all(contrast(color, text) >= 4.5 for color in fill_colors(fill)), role


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_samples_can_be_seen_on_the_page(theme: str) -> None:
    _, scene, _ = draw(builders.state(), theme=theme, show_legend=True)
    page = scene.page
    assert contrast(page.edge_color, page.background) >= 3
    assert all(contrast(box.stroke, box.fill) >= 3 for box in scene.boxes)
    assert all(contrast(line.stroke, page.background) >= 3 for line in scene.root if isinstance(line, SwatchLine))


@pytest.mark.parametrize("theme", THEMES)
def test_the_ramp_of_a_theme_runs_one_way_in_lightness_and_is_drawn(theme: str) -> None:
    _, scene, _ = draw(builders.demo(), theme=theme, color_by="time")
    (bar,) = [line for line in scene.root if isinstance(line, BarLine)]
    steps = [luminance(color) for color in bar.cells]
    assert steps in (sorted(steps), sorted(steps, reverse=True))
    assert contrast(bar.cells[-1], scene.page.background) > contrast(bar.cells[0], scene.page.background)
    assert all(parse(color) for color in bar.cells)


def test_the_names_that_settings_know_are_the_ones_that_are_written() -> None:
    assert set(CAPTIONS.names()) == set(CAPTION_LINES)


@pytest.mark.parametrize("token", ROWS.names())
def test_every_row_gives_lines_of_text_or_nothing(token: str) -> None:
    for make, given in itertools.product(builders.SAMPLES.values(), ({}, {"rolled": True}, {"depth": 1})):
        data = make()
        plan, _, request = draw(data, **given)
        context = RowContext(data, plan, request.options)
        for node in plan.nodes:
            lines = ROWS.get(token)(context, node)
            assert all(isinstance(line, str) and line for line in lines)
