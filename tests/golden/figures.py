"""The golden figures: hand-made traces with fixed times, each with the settings it is drawn with."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests import builders
from torchlens.plan import make_plan
from torchlens.records.trace_data import TraceData
from torchlens.render import dot
from torchlens.scene import build
from torchlens.scene.model import BarLine, Scene
from torchlens.settings.compose import resolve

FOLDER = Path(__file__).resolve().parent / "expected"

FIGURES: dict[str, tuple[Callable[[], TraceData], dict[str, object]]] = {
    "demo": (builders.demo, {}),
    "demo_speed_paper": (builders.demo, {"view": "speed", "theme": "paper"}),
    "demo_buffers": (builders.demo, {"show_buffers": "always", "show_legend": True, "theme": "colorblind"}),
    "loop": (builders.loop, {"theme": "high_contrast"}),
    "loop_rolled": (builders.loop, {"rolled": True, "direction": "topdown"}),
    "branch": (builders.branch, {}),
    "branches_rolled": (builders.branches_in_loop, {"rolled": True, "depth": 1, "theme": "dark"}),
    "rnn": (builders.loop, {}),
    "rnn_rolled": (builders.loop, {"rolled": True}),
    "residual_boxes": (builders.residual, {"depth": 1, "color_by": "bytes", "theme": "dark", "direction": "leftright"}),
    "demo_depth_1": (builders.demo, {"depth": 1}),
    "demo_depth_2": (builders.demo, {"depth": 2, "rolled": True}),
    "stack_focus": (partial(builders.residual, 8), {"module": "blocks.1"}),
    "stack_focus_depth": (
        partial(builders.residual, 8),
        {"module": "blocks.1", "depth": 1, "color_by": "bytes", "show_legend": True, "theme": "dark"},
    ),
    "loop_focus_rolled": (builders.loop, {"module": "rec", "rolled": True}),
    "norm_buffers": (builders.norm, {"show_buffers": "always"}),
    "memory_rolled": (builders.memory, {"rolled": True}),
    "orphans": (builders.orphans, {"show_orphans": True}),
    "multi_output": (builders.multi_output, {"show_redundant_args": True}),
    "state": (builders.state, {"caption": "Figure 1"}),
}


def draw(name: str) -> tuple[str, str]:
    """DOT text and scene facts of a figure, as they are kept."""
    make, options = FIGURES[name]
    data = make()
    request = resolve(data, options)
    scene = build(make_plan(data, request), data, request)
    return dot.write(scene), json.dumps(facts(scene), indent=1, ensure_ascii=False) + "\n"


def facts(scene: Scene) -> dict[str, object]:
    """What a figure says, without how an engine spells it: a change here is a change of meaning."""
    names = [node.name for node in scene.nodes]
    frames = [box.name for box in scene.boxes]
    nodes: dict[str, object] = {}
    for node in scene.nodes:
        look = f"{node.role} {node.style.shape} {node.style.fill} {node.style.dash} x{node.style.peripheries}"
        place = frames[node.box] if node.box is not None else ""
        nodes[node.name] = [look, place, *(line for row in node.rows for line in row.lines)]
    edges = [
        " ".join(
            [f"{names[e.source]} -> {names[e.target]}", *e.arms, *e.tail, *e.middle, *e.head, *["dashed"] * e.dashed]
        )
        for e in scene.edges
    ]
    root = [f"{line.low} .. {line.high}" if isinstance(line, BarLine) else line.text for line in scene.root]
    return {"root": root, "nodes": nodes, "edges": edges, "frames": {box.name: list(box.lines) for box in scene.boxes}}
