"""Every module and every call of every sample can be focused on, with whatever else is asked for."""

from __future__ import annotations

import pytest

from tests import builders
from torchlens.base.errors import UnknownNameError
from torchlens.drawings import draw_trace
from torchlens.plan import make_plan
from torchlens.plan.graph import STUBS
from torchlens.render import dot
from torchlens.render.graphviz import EMBEDDED
from torchlens.scene import build
from torchlens.scene.model import TextLine
from torchlens.settings.compose import resolve

SETTINGS = [
    {},
    {"rolled": True, "show_legend": True},
    {"depth": 1, "color_by": "bytes", "show_orphans": True},
    {"show_buffers": "always", "node_style": "profiling", "direction": "leftright", "theme": "dark"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("sample", builders.SAMPLES)
def test_every_module_and_call_draws(sample: str, settings: dict[str, object]) -> None:
    data = builders.SAMPLES[sample]()
    documents = {}
    for name in [*(module.address for module in data.modules), *(data.call_key(call.index) for call in data.calls)]:
        request = resolve(data, {"module": name, **settings})
        plan = make_plan(data, request)
        scene = build(plan, data, request)
        documents[name] = dot.write(scene)
        assert EMBEDDED.run(documents[name], "svg").rstrip().endswith(b"</svg>")
        (title,) = [line for line in scene.root if isinstance(line, TextLine) and line.bold]
        assert title.text.startswith(data.model_class)
        assert (" > " in title.text) == (plan.focus is not None)
        for node in scene.nodes:
            if node.kind in STUBS:
                first, *rest = [line for row in node.rows for line in row.lines]
                assert first.startswith(f"{node.kind} ")
                assert all(line.startswith("@") for line in rest)
                assert not node.members
    whole = dot.write(build(make_plan(data, resolve(data, settings)), data, resolve(data, settings)))
    assert documents[""] == documents["self:1"] == whole
    assert all(document != whole for name, document in documents.items() if name not in ("", "self:1"))


def test_a_hook_is_told_of_what_is_drawn_and_not_of_stubs() -> None:
    told: list[str] = []

    def note(record: object, spec: object) -> None:
        told.append(record.label)  # type: ignore[attr-defined]

    drawing = draw_trace(builders.residual(3), None, {"module": "blocks.1", "node_spec_fn": note})
    assert told == ["layernorm_2_7", "linear_4_8", "relu_2_9", "linear_5_10", "add_2_11"]
    assert 'id="stub:from:add_1_6"' in drawing.dot


def test_explain_knows_a_stub_by_the_op_that_it_names() -> None:
    drawing = draw_trace(builders.residual(3), None, {"module": "blocks.1"})
    assert str(drawing.explain("add_1_6")).startswith("stub:from:add_1_6 (from, role input)")
    assert str(drawing.explain("@blocks.1")).startswith("add_2_11 ")
    with pytest.raises(UnknownNameError, match="label_not_found"):
        drawing.explain("@blocks.0")
