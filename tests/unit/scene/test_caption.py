"""Caption lines of a view."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import builders
from torchlens.base.errors import TorchLensWarning
from torchlens.plan.collapse import guard
from torchlens.scene.caption import CAPTIONS
from torchlens.scene.model import Scene, SwatchLine, TextLine
from torchlens.settings.view import CAPTION_LINES

MakeScene = Callable[..., Scene]
INSTRUMENTED = "times from an instrumented run: compare ops with each other, not with production latency"


def captions(scene: Scene) -> list[str]:
    return [line.text for line in scene.root if isinstance(line, TextLine) and line.kind == "caption"]


def test_every_line_that_a_view_may_name_is_written_here() -> None:
    assert set(CAPTIONS.names()) == set(CAPTION_LINES)


def test_the_speed_view(scene: MakeScene) -> None:
    assert captions(scene(builders.demo(), view="speed")) == [
        "encoded 10 of 12 ops", "wall-clock time per op call", "colour shows rank order, not proportion", INSTRUMENTED,
    ]  # fmt: skip


def test_rolled_says_that_passes_are_summed(scene: MakeScene) -> None:
    lines = captions(scene(builders.loop(3), view="speed", rolled=True))
    assert lines[:2] == ["encoded 13 of 13 ops", "wall-clock time, sum over passes"]


def test_lines_that_do_not_apply_are_left_out(scene: MakeScene) -> None:
    lines = captions(scene(builders.demo(), view="speed", color_by="flops", color_scale="linear", node_style="default"))
    assert lines == ["encoded 10 of 12 ops", "forward FLOPs, 2 per multiply-accumulate"]
    assert captions(scene(builders.demo(), view="speed", color_by=None, node_style="default")) == []


@pytest.mark.parametrize("given", [{"color_by": "func_duration"}, {"color_by": "bytes", "size_by": "time"}])
def test_times_are_qualified_whatever_shows_them(scene: MakeScene, given: dict[str, str]) -> None:
    lines = captions(scene(builders.demo(), view="speed", node_style="default", **given))
    assert lines[-1] == INSTRUMENTED


def test_a_grey_box_is_explained(scene: MakeScene) -> None:
    data = builders.demo()
    data.nodes.time_s = [None if k == 1 else t for k, t in enumerate(data.nodes.time_s)]
    assert captions(scene(data, view="speed", depth=1))[1] == "grey boxes: aggregate, not encoded"


def test_area_is_explained_only_where_it_shows_counts(scene: MakeScene) -> None:
    (line,) = captions(scene(builders.demo(), view="dims"))
    assert line.startswith("box area shows element count per batch item, not shape")
    assert captions(scene(builders.demo(), view="dims", size_by="bytes")) == []


def test_columns_are_called_what_they_look_like(scene: MakeScene) -> None:
    given = {"view": "sequence", "show_containers": False}
    assert captions(scene(builders.loop(), **given)) == ["columns: same pass, not parallel work"]
    assert captions(scene(builders.loop(), **given, direction="topdown")) == ["rows: same pass, not parallel work"]
    assert captions(scene(builders.loop(), **given, stack_by="dtype")) == ["columns: nodes with the same dtype"]
    assert captions(scene(builders.loop(), **given, stack_by=None)) == []


def test_the_module_shown_and_its_place_among_those_alike(scene: MakeScene) -> None:
    view = {"question": "q", "caption": ["focus"]}
    data = builders.residual(3)
    assert captions(scene(data, view=view, module="blocks.1")) == ["showing blocks.1 (2 of 3 Block)"]
    assert captions(scene(data, view=view, module="embed")) == ["showing embed (Linear)"]
    assert captions(scene(builders.loop(3), view=view, module="rec:2")) == ["showing rec:2 (2 of 3 calls of Linear)"]
    assert captions(scene(builders.loop(3), view=view, module="rec")) == ["showing rec (2 of 2 Linear)"]
    assert captions(scene(data, view=view)) == []


def test_a_folded_figure_of_any_view_says_how_far(scene: MakeScene) -> None:
    data, view = builders.residual(8), {"question": "q"}
    assert captions(scene(data, view=view, collapse=0.5)) == ["collapse level 0.5: 20 of 44 nodes"]
    assert captions(scene(data, view=view, collapse="max")) == ["collapse level 1: 9 of 44 nodes"]
    assert captions(scene(data, view=view, fold_repeats=True)) == ["repeats folded: 6 of 44 nodes"]
    shallow = scene(data, view=view, depth=1, collapse="max")
    total = len(scene(data, depth=1).nodes)
    assert captions(shallow) == [f"collapse level 1: {len(shallow.nodes)} of {total} nodes at depth 1"]
    assert captions(scene(data, view=view, collapse="auto")) == []
    assert captions(scene(builders.residual(40), view=view, collapse="auto")) == ["collapse auto: 5 of 204 nodes"]
    assert captions(scene(data, collapse="max")) == []


def test_a_trace_too_large_to_plan_says_what_is_drawn(scene: MakeScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_pathological", lambda *_: True)
    with pytest.warns(TorchLensWarning, match="collapse_pathological_skip"):
        lines = captions(scene(builders.residual(8), view="overview"))
    assert lines == ["outermost modules only: 12 of 44 nodes"]


def test_grey_boxes_of_any_view_are_explained_once(scene: MakeScene) -> None:
    data, grey = builders.residual(8), "grey boxes: aggregate, not encoded"
    lines = captions(scene(data, view={"question": "q"}, collapse=0.5, color_by="step"))
    assert lines == ["collapse level 0.5: 20 of 44 nodes", grey]
    lines = captions(scene(data, view={"question": "q", "caption": ["coverage"]}, collapse=0.5, color_by="step"))
    assert lines.count(grey) == 1


def test_a_bare_channel_adds_no_caption(scene: MakeScene) -> None:
    assert captions(scene(builders.demo(), color_by="time")) == []


def test_the_users_own_line_comes_last(scene: MakeScene) -> None:
    assert captions(scene(builders.demo(), caption="Figure 1\nsmall")) == ["Figure 1", "small"]
    assert captions(scene(builders.demo(), view="speed", caption="mine"))[-1] == "mine"


def test_a_long_line_is_broken_at_blanks_and_nothing_of_it_is_lost(scene: MakeScene) -> None:
    caption = "a (bracketed " + "text " * 60 + "end)\n\n  indented"
    lines = captions(scene(builders.demo(), caption=caption))
    assert max(map(len, lines)) <= 100
    assert " ".join(lines[:-2]) == caption.splitlines()[0]
    assert lines[-2:] == ["", "  indented"]


def test_stub_copies_are_disclosed(scene: MakeScene) -> None:
    b = builders.Builder("Chain")
    h = x = b.input("x", (2, 8))
    for _ in range(30):
        h = b.op("sub", [b.op("tanh", [h], (2, 8)), x], (2, 8))
    b.output(h)
    made = scene(b.build(), caption="mine")
    stubs = [node for node in made.nodes if node.kind == "copy"]
    assert captions(made) == [
        f"small stubs name what is drawn elsewhere and read far away: input_1 (x{len(stubs)})",
        "mine",
    ]
    assert [row.lines for row in stubs[0].rows] == [("from input_1",), ("@input.x",)]
    assert (stubs[0].role, stubs[0].members) == ("input", ())
    assert stubs[0].style.font_size == 10
    assert not [line for line in made.root if isinstance(line, SwatchLine)]
