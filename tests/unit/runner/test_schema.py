"""The schema follows the declarations."""

from __future__ import annotations

import dataclasses
import pickle

from omegaconf import OmegaConf

from torchlens.runner import schema
from torchlens.runner.figures import FIGURE_KEYS
from torchlens.runner.input_spec import INPUT_KEYS
from torchlens.runner.spec import MODEL_KEYS
from torchlens.settings import catalog, theme, view
from torchlens.settings.options import options


def _keys(kind: type) -> set[str]:
    return {item.name for item in dataclasses.fields(kind)}


def test_the_draw_node_has_exactly_the_options() -> None:
    assert _keys(schema.Draw) == set(options())


def test_the_other_nodes_have_exactly_the_declared_keys() -> None:
    assert _keys(schema.View) == set(view.KEYS)
    assert _keys(schema.Theme) == set(theme.KEYS)
    assert _keys(schema.Figure) == set(FIGURE_KEYS)
    assert _keys(schema.Input) == set(INPUT_KEYS)
    assert _keys(schema.Model) == set(MODEL_KEYS)
    roles = dataclasses.fields(schema.Theme().roles)
    assert {item.name for item in roles} == set(theme.ROLES)
    assert _keys(type(schema.Theme().page)) == _keys(theme.PageStyle)


def test_every_group_is_a_key_of_the_configuration() -> None:
    assert {group for group in catalog.GROUPS if group != "output"} <= _keys(schema.Config)


def test_every_key_starts_missing() -> None:
    draw = OmegaConf.structured(schema.Draw)
    assert all(OmegaConf.is_missing(draw, key) for key in draw)


def test_nodes_survive_the_way_to_another_process() -> None:
    config = OmegaConf.structured(schema.Config)
    again = pickle.loads(pickle.dumps(config))
    again.merge_with({"figures": {"a": {"draw": {"depth": 2}}}})
    assert again.figures.a.draw.depth == 2
