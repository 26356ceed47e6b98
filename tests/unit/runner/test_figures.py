"""The figures of a job: what an entry replaces, which layer wins, and which files are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlens.base.errors import ConfigError, InvalidArgumentError, TorchLensError, UnknownNameError
from torchlens.runner.figures import Choice, Figure, Run, plan_figure, plan_figures, read_formats
from torchlens.settings import catalog

RUN = Run(
    model=Choice("demo"),
    input=Choice("auto"),
    view=Choice("plain"),
    theme=Choice("torchlens"),
    collapse=Choice("unset"),
    encoding=Choice("unset"),
    explicit={},
    base={},
    formats=("svg",),
)


def _figure(entry: object = None, **run: Any) -> Figure:
    return plan_figure(replace(RUN, **run), "x", entry)


def test_an_empty_entry_takes_everything_from_the_run() -> None:
    figure = _figure({}, view=Choice("speed"), theme=Choice("paper"))
    assert figure.request.view is not None
    assert (figure.request.view.name, figure.request.theme.name, figure.model.name) == ("speed", "paper", "demo")
    assert (figure.path, figure.files) == ("x", ("x.svg",))


def test_plain_and_null_are_no_view() -> None:
    assert _figure({}).request.view is None
    assert _figure({"view": None}, view=Choice("speed")).request.view is None
    assert _figure({"view": "plain"}, view=Choice("speed")).request.view is None


@pytest.mark.parametrize(
    ("group", "name", "read"),
    [
        ("view", "speed", lambda f: f.request.view.name),
        ("theme", "dark", lambda f: f.request.theme.name),
        ("model", "rnn", lambda f: f.model.name),
        ("encoding", "flops", lambda f: f.request.options.color_by),
        ("collapse", "none", lambda f: f.request.options.collapse),
    ],
)
def test_a_name_in_the_entry_replaces_the_runs_choice(group: str, name: str, read: Any) -> None:
    assert read(_figure({group: name})) == name
    assert _figure({group: name}).chosen[group] == name


def test_an_entry_may_hold_a_whole_mapping() -> None:
    figure = _figure({"theme": {"extends": "paper", "page": {"background": "ivory"}}, "input": {"shape": [2, 3, 8, 8]}})
    assert figure.request.theme.page.background == "#fffff0"
    assert figure.model.input.shape == [2, 3, 8, 8]


def test_a_mapping_is_reported_by_the_name_it_gives_itself() -> None:
    changed = {"extends": "speed", "draw": {"depth": 2}}
    assert _figure({"view": changed}).chosen["view"] == "speed (changed)"
    assert _figure({"view": {"question": "q"}}).chosen["view"] == "given"
    assert _figure({}, view=Choice("speed", changed)).chosen["view"] == "speed (changed)"
    assert _figure({"view": None}).chosen["view"] == "none"


def test_changes_of_the_command_line_go_with_the_runs_choice_only() -> None:
    changed = Choice("paper", {"extends": "paper", "page": {"background": "ivory"}})
    assert _figure({}, theme=changed).request.theme.page.background == "#fffff0"
    assert _figure({}, theme=changed).request.theme.name == "paper (changed)"
    assert _figure({"theme": "paper"}, theme=changed).request.theme.page.background == "#ffffff"


def test_the_layers_of_a_run_fold_in_order() -> None:
    """Every ordered pair of view, collapse, encoding, file, entry and command line."""
    steps: list[tuple[str, Any]] = [
        ("view", {"view": Choice("v", {"question": "q", "draw": {"depth": 1}})}),
        ("collapse", {"collapse": Choice("c", {"draw": {"depth": 2}})}),
        ("encoding", {"encoding": Choice("e", {"draw": {"depth": 3}})}),
        ("base", {"base": {"depth": 4}}),
        ("entry", {"entry": {"draw": {"depth": 5}}}),
        ("explicit", {"explicit": {"depth": 6}}),
    ]
    for low, (_, first) in enumerate(steps):
        for high, (_, second) in enumerate(steps):
            if low < high:
                parts = {**first, **second}
                entry = parts.pop("entry", {})
                assert _figure(entry, **parts).request.options.depth == high + 1


def test_an_explicit_null_beats_an_entry() -> None:
    figure = _figure({"encoding": "time"}, explicit={"color_by": None})
    assert figure.request.options.color_by is None
    assert figure.request.origin["color_by"] == "explicit"


@pytest.mark.parametrize(
    ("entry", "error", "words"),
    [
        ({"veiw": "speed"}, ConfigError, "figures.x: veiw is not a known key"),
        ({"view": 3}, ConfigError, "figures.x: view is neither a name nor a mapping"),
        ({"view": "nope"}, InvalidArgumentError, "draw_view_invalid"),
        ({"theme": "nope"}, InvalidArgumentError, "visualization_theme_invalid"),
        ({"model": "nope"}, UnknownNameError, "no model is named 'nope'"),
        ({"model": None}, ConfigError, "figures.x: model is not chosen"),
        ({"encoding": "nope"}, UnknownNameError, "no encoding is named 'nope'"),
        ({"draw": {"depht": 1}}, ConfigError, "figures.x: draw.depht is not a known key"),
        ({"draw": {"depth": 0}}, InvalidArgumentError, "figures.x: draw.depth=0"),
        ({"draw": {"file_format": "tga"}}, InvalidArgumentError, "file_format_invalid"),
        ({"draw": {"pdf_font": "no.ttf", "file_format": "pdf"}}, InvalidArgumentError, "pdf_font_invalid"),
        ({"path": "../x"}, ConfigError, "figures.x: path is not a name below the job's folder"),
        ({"path": "/x"}, ConfigError, "path is not a name"),
        ({"path": "C:\\x"}, ConfigError, "path is not a name"),
        ({"path": ""}, ConfigError, "path is not a name"),
        ({"path": 3}, ConfigError, "path is not a name"),
        ([1], ConfigError, "is not a mapping"),
    ],
)
def test_wrong_entries_name_the_figure_and_key(entry: object, error: type[TorchLensError], words: str) -> None:
    with pytest.raises(error) as caught:
        _figure(entry)
    assert words in str(caught.value)


# -- files
def test_formats() -> None:
    assert read_formats("auto") == (("svg", "png"), ("png",))
    assert read_formats(["pdf", "SVG", "pdf"]) == (("pdf", "svg"), ())
    assert read_formats("svg, dot") == (("svg", "dot"), ())
    for wrong in ([], "", 3, ["svg", 3], None):
        with pytest.raises(ConfigError, match="is not a list of formats"):
            read_formats(wrong)
    with pytest.raises(InvalidArgumentError, match="file_format_invalid"):
        read_formats(["svg", "tga"])


def test_a_figures_own_format_replaces_the_runs() -> None:
    figure = _figure({"draw": {"file_format": "pdf"}}, formats=("svg", "png"), optional=("png",))
    assert (figure.files, figure.optional) == (("x.pdf",), ())


def test_two_figures_of_one_file_are_refused() -> None:
    for path in ("plain", "PLAIN", "./plain"):
        with pytest.raises(ConfigError, match=r"\[figure_path_conflict\] figure 'plain' and figure 'b' both write"):
            plan_figures(RUN, {"plain": {}, "b": {"path": path}})
    assert len(plan_figures(RUN, {"plain": {}, "b": {"path": "plain", "draw": {"file_format": "pdf"}}})) == 2


def test_a_path_may_have_folders() -> None:
    assert _figure({"path": "speed/flops"}).files == ("speed/flops.svg",)


def test_no_figures_is_refused() -> None:
    with pytest.raises(ConfigError, match="figures names no figure"):
        plan_figures(RUN, {})


def test_every_shipped_set_can_be_planned() -> None:
    for name in catalog.names("figures"):
        figures = plan_figures(RUN, catalog.load("figures", name).data)
        assert figures
    assert len(figures) >= 5


def test_the_users_folders_serve_entries_too(tmp_path: Path) -> None:
    (tmp_path / "theme").mkdir()
    (tmp_path / "theme" / "mine.yaml").write_text("extends: dark\npage: {text: white}\n")
    assert _figure({"theme": "mine"}, folders=(str(tmp_path),)).request.theme.page.text == "#ffffff"


# -- kinds
def test_a_legend_has_no_model_and_a_schedule_has_one() -> None:
    key = _figure(
        {"kind": "legend", "theme": "dark"}, model=Choice("rnn"), view=Choice("speed"), collapse=Choice("auto")
    )
    assert (key.kind, key.model, key.recording) == ("legend", None, "")
    assert dict(key.chosen) == {"theme": "dark"}
    steps = _figure({"kind": "schedule"}, model=Choice("rnn"), view=Choice("speed"), collapse=Choice("auto"))
    assert steps.model is not None
    assert (steps.kind, steps.model.name, steps.request.options.collapse) == ("schedule", "rnn", "none")
    assert _figure({"kind": "schedule"}, explicit={"collapse": "max", "depth": 2}).given.keys() == {"depth", "theme"}
    assert _figure({}).kind == _figure({"kind": None}).kind == "graph"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "schedul"}, "perhaps you meant 'schedule'"),
        ({"kind": "legend", "model": "rnn"}, "model is not for a figure of kind legend"),
        ({"kind": "legend", "view": "speed"}, "view is not for"),
        ({"kind": "legend", "annotate": []}, "annotate is not for"),
        ({"kind": "legend", "draw": {"depth": 1}}, "draw.depth is not for a figure of kind legend"),
        ({"kind": "schedule", "collapse": "auto"}, "collapse is not for"),
        ({"kind": "schedule", "encoding": "flops"}, "encoding is not for"),
        ({"kind": "schedule", "draw": {"collapse": "auto"}}, "shows all of them"),
    ],
)
def test_what_changes_nothing_of_a_kind_is_refused(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _figure(entry)
