"""Folded drawings in context: under focus, depth, rolled, the buffers modes, rules and every theme, what a node says of
its ops is the exact sum over them.

Sums are worked out from the facts of the trace; that the members themselves are right is shown elsewhere.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.base.colors import oklab
from torchlens.base.units import bytes_text, count_text, flops_text
from torchlens.drawings import Drawing
from torchlens.plan import make_plan
from torchlens.plan.graph import FOLD, MODULE, OUTPUTS, SEGMENT, Plan, PlanNode
from torchlens.records.trace_data import TraceData
from torchlens.scene.model import TextLine
from torchlens.settings import catalog
from torchlens.settings.compose import resolve

THEMES = catalog.names("theme")
COLUMNS = {"bytes": "activation_memory", "flops": "flops_forward", "time": "func_duration"}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.BatchNorm1d(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class Net(nn.Module):
    """Blocks in a row, a cell that runs again and again, and buffers that a norm writes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*[Block(6) for _ in range(5)])
        self.cell = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        for _ in range(4):
            x = self.cell(x)
        return self.head(x.reshape(-1, 6))


CONTEXTS: dict[str, dict[str, Any]] = {
    "whole": {},
    "rolled": {"rolled": True},
    "focus": {"module": "body"},
    "depth": {"depth": 2},
    "buffers": {"show_buffers": "always"},
    "no buffers": {"show_buffers": "never", "rolled": True},
    "repeats": {"fold_repeats": True},
    "rules": {"collapse_rules": [{"op": "re*", "do": "hide"}, {"address": "head", "do": "keep"}]},
}
ROUNDING = 0.004
MODES = ("none", "auto", "max", 0.3, 0.7)


@cache
def _trace() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(Net().train(), torch.randn(4, 6), save="none")


def _cases() -> Iterator[tuple[dict[str, Any], Any]]:
    for context in CONTEXTS.values():
        for mode in MODES:
            yield context, mode


def _plan(**options: Any) -> Plan:
    data = _trace().data
    return make_plan(data, resolve(data, options))


def _sum(node: PlanNode, source: str) -> float | None:
    """What the ops behind a node come to, by the facts of each; None if one is not known."""
    data = _trace().data
    values = [getattr(data.record(i).cost, COLUMNS[source]) for i in node.members if data.nodes.kind[i] == "op"]
    return None if None in values else sum(values)


@pytest.mark.parametrize("source", ["bytes", "flops"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_the_rows_of_boxes_and_segments_are_sums_over_their_ops(context: str, source: Any) -> None:
    write = bytes_text if source == "bytes" else flops_text
    kinds: set[str] = set()
    for mode in MODES:
        given = {**CONTEXTS[context], "collapse": mode}
        plan = _plan(**given)
        drawing = _trace().draw(**given, node_label_fields=["name", source])
        for node, drawn in zip(plan.nodes, drawing._scene.nodes, strict=True):
            if node.kind not in (MODULE, SEGMENT):
                continue
            kinds.add(node.kind)
            total = _sum(node, source)
            (text,) = [" ".join(row.lines) for row in drawn.rows if row.token == source] or [""]
            assert (write(int(total)) in text) if total is not None else not text, (node.name, text, total)
    assert MODULE in kinds


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("source", COLUMNS)
def test_fills_order_nodes_by_their_exact_sums(theme: str, source: Any) -> None:
    for context, mode in _cases():
        given = {**context, "collapse": mode}
        plan, drawing = _plan(**given), _trace().draw(**given, theme=theme, color_by=source)
        coloured: list[tuple[float, str]] = []
        for node, drawn in zip(plan.nodes, drawing._scene.nodes, strict=True):
            total = _sum(node, source)
            measured = node.kind in ("op", MODULE, SEGMENT) and total is not None
            if measured and total is not None:
                coloured.append((total, str(drawn.style.fill)))
        _check_ramp(drawing, coloured)
        _check_account(drawing, plan, source)


def _check_ramp(drawing: Drawing, coloured: list[tuple[float, str]]) -> None:
    """Equal sums have one fill, and fills go along the ramp as the sums do, from its one end to the other."""
    by_sum = dict(coloured)
    assert all(by_sum[total] == fill for total, fill in coloured)
    if len(by_sum) < 2:
        return
    fills = [by_sum[total] for total in sorted(by_sum)]
    lights = [oklab(fill)[0] for fill in fills]
    falls = lights[0] > lights[-1]
    # Colours have 256 steps, so that neighbours may be off by one.
    assert all(a >= b - ROUNDING if falls else a <= b + ROUNDING for a, b in pairwise(lights))
    assert drawing.encoding is not None
    assert drawing.encoding.color is not None
    low, high = drawing.encoding.color.domain or (0, 0)
    assert low <= min(by_sum)
    assert high >= max(by_sum)


def _check_account(drawing: Drawing, plan: Plan, source: str) -> None:
    """Every op of the page is encoded, folded, hidden or said to have no value."""
    data, state = _trace().data, drawing.encoding.color if drawing.encoding else None
    assert state is not None

    def ops(node: PlanNode) -> int:
        return sum(data.nodes.kind[i] == "op" for i in node.members)

    shown = sum(ops(node) for node in plan.nodes if node.kind not in (FOLD, OUTPUTS) and _sum(node, source) is not None)
    assert state.encoded in (shown, 0)
    notes = " ".join(state.notes)
    assert (f"{len(plan.left_out)} ops hidden by collapse_rules" in notes) == (len(plan.left_out) > 1)


@pytest.mark.parametrize("theme", THEMES)
def test_sizes_follow_exact_sums(theme: str) -> None:
    for context, mode in _cases():
        given = {**context, "collapse": mode}
        plan, drawing = _plan(**given), _trace().draw(**given, theme=theme, size_by="bytes", size_cap=4)
        state = drawing.encoding.size if drawing.encoding else None
        assert state is not None
        data = _trace().data
        sums = [
            data.nbytes[node.first] if node.kind in ("input", "output") else _sum(node, "bytes")
            for node in plan.nodes
            if node.kind in ("op", "input", "output", MODULE, SEGMENT)
        ]
        assert state.domain == (min(filter(None, sums)), max(filter(None, sums)))


@pytest.mark.parametrize("theme", THEMES)
def test_headers_count_the_whole_network_whatever_is_drawn(theme: str) -> None:
    data = _trace().data
    ops, nbytes = len(data.op_indexes), sum(data.nbytes[i] or 0 for i in data.op_indexes)
    for context, mode in _cases():
        if "module" in context:
            continue
        drawing = _trace().draw(**context, collapse=mode, theme=theme)
        texts = [line.text for line in drawing._scene.root if isinstance(line, TextLine)]
        assert f"{count_text(ops)} ops ({bytes_text(nbytes)})" in texts
        hidden = [text for text in texts if text.endswith("hidden by collapse_rules")]
        left = len(_plan(**context, collapse=mode).left_out)
        assert hidden == ([f"{left} op{'s' * (left > 1)} hidden by collapse_rules"] if left else [])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("context", CONTEXTS)
def test_the_contents_of_boxes_and_segments_are_counted_from_the_trace(context: str, mode: Any) -> None:
    data: TraceData = _trace().data
    given = {**CONTEXTS[context], "collapse": mode}
    plan, drawing = _plan(**given), _trace().draw(**given)
    for node, drawn in zip(plan.nodes, drawing._scene.nodes, strict=True):
        if node.kind not in (MODULE, SEGMENT):
            continue
        kinds = [data.nodes.kind[i] for i in (node.groups[0] if node.kind == MODULE else node.members)]
        text = " ".join(line for row in drawn.rows if row.token in ("contents", "name") for line in row.lines)
        found = re.search(r"(\d+) ops?(?: \+ (\d+) buffers?)?( total)?", text)
        assert found, text
        if found[3]:
            kinds = [data.nodes.kind[i] for i in node.members]
        per_round = node.passes if node.kind == SEGMENT and not found[3] else 1
        assert int(found[1]) * per_round == kinds.count("op"), text
        buffers = re.search(r"(\d+) buffers?", text)
        assert (int(buffers[1]) * per_round if buffers else 0) == kinds.count("buffer"), text
        used = {p for i in node.members for p in data.nodes.params[i]}
        params = sum(data.params[p].numel for p in used)
        said = " ".join(line for row in drawn.rows for line in row.lines)
        assert f"{count_text(params)} params" in said or not params


def test_rules_in_all_contexts_draw_without_complaint() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for context, mode in _cases():
            given: dict[str, Any] = {**context, "collapse_rules": [{"op": "relu", "do": "hide"}], "collapse": mode}
            _trace().draw(**given)
