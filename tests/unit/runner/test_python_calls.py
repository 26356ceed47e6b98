"""The Python of a figure."""

from __future__ import annotations

from typing import Any

import pytest

from torchlens.base.errors import ConfigError
from torchlens.runner.figures import Choice, Figure, Run, plan_figure
from torchlens.runner.python_calls import call, imports, keywords, recording


def _figure(name: str = "one", *, base: dict[str, Any] | None = None, **entry: Any) -> Figure:
    none = Choice(None)
    run = Run(Choice("mlp"), Choice("auto"), none, none, none, none, {}, base or {}, ("svg",))
    return plan_figure(run, name, entry)


def test_a_figure_records_and_draws() -> None:
    figure = _figure(model="rnn", theme="dark", view="speed", draw={"rolled": True, "caption": 'a "b"'})
    assert recording(figure, None) == [
        "torch.manual_seed(0)",
        "trace = tl.trace(rnn.Rnn(width=8, steps=3).eval(), input_shape=(2, 8))",
    ]
    assert call(figure) == 'trace.draw("one.svg", view="speed", theme="dark", rolled=True, caption="a \\"b\\"")'


def test_a_recording_serves_the_figures_below() -> None:
    first, second = _figure("a"), _figure("b", draw={"depth": 1})
    assert recording(second, first) == []
    for other in (
        _figure("c", model="rnn"),
        _figure("c", input={"shape": [3, 8]}),
        _figure("c", draw={"show_saved_for_backward": True}),
        _figure("c", annotate=[{"select": "a", "data": 1}]),
    ):
        assert recording(other, first)
        assert recording(first, other)


def test_a_mapping_of_many_words_takes_a_line_for_each() -> None:
    lines = recording(_figure(model="clip_tiny"), None)[1].splitlines()
    assert max(map(len, lines)) <= 100
    assert "            text_config={" in lines
    assert '                "hidden_size": 32,' in lines
    compile("\n".join(lines), "page", "exec")


def test_a_model_of_many_words_takes_a_line_for_each() -> None:
    _, text = recording(_figure(model="bert_tiny"), None)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[:4] == [
        "trace = tl.trace(",
        "    transformers.BertModel(",
        "        config=transformers.BertConfig(",
        "            num_hidden_layers=12,",
    ]
    assert lines[-4:] == ["        ),", "    ).eval(),", "    input_shape=(1, 8),", ")"]
    compile(text, "page", "exec")


def test_what_is_measured_and_noted_is_said() -> None:
    figure = _figure(draw={"show_saved_for_backward": True}, annotate=[{"select": "fc1", "data": {"a": 1}}])
    lines = recording(figure, None)
    assert 'capture={"saved_for_backward": True}' in lines[1]
    assert lines[2] == 'trace.annotate("fc1", data={"a": 1})'


def test_hooks_are_calls_broken_where_they_are_long() -> None:
    relu = {"_target_": "torchlens.func", "_args_": ["relu"]}
    highlight = {"_target_": "torchlens.viz.nodes.highlight", "_args_": [relu]}
    shade = {"_target_": "torchlens.viz.nodes.shade", "_args_": ["flops_forward"], "name": "n" * 40}
    chain = {"_target_": "torchlens.viz.nodes.chain", "_args_": [highlight, shade]}
    assert call(_figure(draw={"node_spec_fn": highlight})) == (
        'trace.draw("one.svg", node_spec_fn=tl.viz.nodes.highlight(tl.func("relu")))'
    )
    assert call(_figure(draw={"node_spec_fn": chain})).splitlines() == [
        "trace.draw(",
        '    "one.svg",',
        "    node_spec_fn=tl.viz.nodes.chain(",
        '        tl.viz.nodes.highlight(tl.func("relu")),',
        f'        tl.viz.nodes.shade("flops_forward", name="{"n" * 40}"),',
        "    ),",
        ")",
    ]
    own = {"_target_": "torchlens.examples.hooks.mark_wide", "_partial_": True}
    figure = _figure(draw={"node_spec_fn": own})
    assert call(figure) == 'trace.draw("one.svg", node_spec_fn=hooks.mark_wide)'
    assert imports([figure]).splitlines()[-1] == "from torchlens.examples import hooks, mlp"


@pytest.mark.parametrize(
    "figure",
    [
        {"input": {"kind": "kwargs", "kwargs": {"x": 1}}},
        {"input": {"shape": [2, 8], "high": 3}},
        {"model": {"factory": {"_target_": "torch.nn.ReLU"}, "checkpoint": "a.pt", "input": {"shape": [1]}}},
    ],
)
def test_what_cannot_be_said_is_refused(figure: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a page cannot write down"):
        recording(_figure(**figure), None)


def test_options_that_only_the_run_sets_are_refused() -> None:
    with pytest.raises(ConfigError, match="the page would have to say"):
        call(_figure(base={"depth": 1}))


def test_what_a_collapse_or_encoding_file_says_is_written_out() -> None:
    figure = _figure(model="resnet18", collapse="auto", encoding="flops", draw={"color_scale": "rank"})
    assert call(figure) == 'trace.draw("one.svg", collapse="auto", color_by="flops", color_scale="rank")'
    assert keywords(figure) == ['collapse="auto"', 'color_by="flops"', 'color_scale="rank"']
    assert call(_figure(collapse=0.25)) == 'trace.draw("one.svg", collapse=0.25)'
    assert imports([figure]) == "import torch\nimport torchvision\n\nimport torchlens as tl"


def test_a_view_or_theme_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="a theme that has a name"):
        call(_figure(theme={"extends": "dark"}))


def test_other_kinds_have_functions_of_their_own() -> None:
    key = _figure("key", kind="legend", theme="dark")
    assert (recording(key, None), call(key)) == ([], 'tl.viz.legend("key.svg", theme="dark")')
    steps = _figure("steps", kind="schedule", draw={"module": "a"})
    assert call(steps) == 'tl.viz.schedule(trace, "steps.svg", module="a")'
    assert recording(steps, _figure("graph")) == []
