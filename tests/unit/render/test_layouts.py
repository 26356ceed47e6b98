"""Which layout a figure gets: by counts, with a refusal that names what helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import builders
from torchlens.base.errors import InvalidArgumentError
from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.render import layouts
from torchlens.render.layouts import Layout, check_size, choose, crossed_ranks, lay_out
from torchlens.scene import build
from torchlens.scene.model import Scene, SceneEdge
from torchlens.settings.compose import resolve


def scene_of(data: TraceData, **options: object) -> Scene:
    request = resolve(data, options)
    return build(make_plan(data, request), data, request)


@pytest.fixture
def scene() -> Scene:
    return scene_of(builders.chain())


def longer(scene: Scene, count: int, jump: int = 0) -> Scene:
    """A chain of that many nodes, from each of which an arrow also jumps ahead."""
    edges = [SceneEdge(k, k + 1) for k in range(count - 1)]
    edges += [SceneEdge(k, k + jump) for k in range(count - jump)] if jump else []
    return replace(scene, nodes=(scene.nodes[0],) * count, edges=tuple(edges))


def test_crossed_ranks_count_what_arrows_pass(scene: Scene) -> None:
    assert crossed_ranks(scene) == 0
    assert crossed_ranks(longer(scene, 10, 3)) == 7 * 2


@pytest.mark.parametrize(
    ("count", "jump", "layout"),
    [
        (2_999, 0, Layout.DOT),
        (3_000, 0, Layout.BOUNDED),
        (300, 10, Layout.DOT),
        (400, 10, Layout.BOUNDED),
        (6_000, 0, Layout.BOUNDED),
        (6_001, 0, Layout.RANK),
        (2_000, 20, Layout.RANK),
    ],
)
def test_auto_goes_by_counts(scene: Scene, count: int, jump: int, layout: Layout) -> None:
    assert choose(longer(scene, count, jump)) is layout


def test_what_was_asked_for_wins(scene: Scene) -> None:
    assert choose(scene, "rank") is Layout.RANK
    assert choose(longer(scene, 2_000, 20), "dot") is Layout.BOUNDED


def test_a_channel_keeps_the_layout_of_the_engine(scene: Scene) -> None:
    assert choose(longer(scene, 2_000, 20), channel=True) is Layout.BOUNDED
    assert lay_out(longer(scene, 6_500), channel=True)[1].graph == "nslimit=1 mclimit=0.5"


def test_small_figures_are_left_to_the_engine(scene: Scene) -> None:
    same, placement = lay_out(scene)
    assert same is scene
    assert not placement.graph
    assert lay_out(longer(scene, 3_500))[1].graph == "nslimit=1 mclimit=0.5"
    assert "layout=nop2" in lay_out(scene, "rank")[1].graph


def test_limits() -> None:
    check_size(50_000)
    check_size(1_000_000, "dot")
    check_size(6_000, layout="dot")
    check_size(6_000, channel=True)
    for size, options, remedy in (
        (50_001, {}, 'collapse="auto" or depth='),
        (50_001, {"layout": "rank"}, 'collapse="auto" or depth='),
        (6_001, {"layout": "dot"}, 'or pass layout="rank"'),
        (6_001, {"channel": True}, "or draw without the channel"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"{size} nodes") as caught:
            check_size(size, **options)  # type: ignore[arg-type]
        assert caught.value.code == "graph_too_large"
        assert remedy in str(caught.value)


def test_beyond_the_limit_the_source_is_plain(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "NODE_LIMIT", 3)
    assert not lay_out(scene, "rank")[1].nodes
