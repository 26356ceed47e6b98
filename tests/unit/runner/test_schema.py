"""The schema follows the declarations, and job folders have safe names of their own."""

from __future__ import annotations

import dataclasses
import itertools
import pickle

import pytest
from omegaconf import OmegaConf

from torchlens.runner import schema
from torchlens.runner.figures import FIGURE_KEYS
from torchlens.runner.schema import slug
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


# -- folder names
@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["model=rnn", "theme=dark"], "model-rnn_theme-dark"),
        (["collapse=0.25"], "collapse-0.25"),
        (["draw.depth=1", "out=a/b", "explain=true", "threads=2", "hydra.verbose=true"], "draw.depth-1"),
        (["hydra/launcher=joblib", "+trust=[a]", "formats=[svg]"], "job"),
        ([], "job"),
    ],
)
def test_plain_overrides_read_as_they_are(overrides: list[str], name: str) -> None:
    assert slug(overrides) == name


def test_names_are_safe_short_and_different() -> None:
    awkward = ["a=x/y", "a=x y", "a=x:y", "a=[x,y]", "a={x: y}", "a=" + "x" * 200, "a=" + "x" * 201, "a=../..", "a=ä"]
    names = [slug([text]) for text in awkward]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= 90
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-")
        assert not name.startswith(".")


def test_names_tell_every_job_of_a_sweep_apart() -> None:
    jobs = itertools.product(["model=a", "model=b"], ["view=x", "view=x_y"], ["draw.depth=1", "draw.depth=10"])
    names = {slug(list(job)) for job in jobs}
    assert len(names) == 8
