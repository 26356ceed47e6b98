"""Columns of recurrent models: which boxes share one follows from the model's code, and the picture shows it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

import pytest
import torch

import torchlens as tl
from torchlens.base.errors import InvalidArgumentError
from torchlens.drawings import Drawing
from torchlens.examples.cells import BothWays, TwoCells
from torchlens.examples.hooks import timepoint
from torchlens.record_views import Op
from torchlens.runner.main import main

STEPS = 4
SVG = "{http://www.w3.org/2000/svg}"


def centres(drawing: Drawing) -> dict[str, float]:
    """Across the page, the middle of the front of each box of a cell."""
    found: dict[str, float] = {}
    for group in ET.fromstring(drawing.data).iter(f"{SVG}g"):
        name = str(group.get("id"))
        shape = group.find(f"{SVG}polygon")
        shape = group.find(f".//{SVG}polygon") if shape is None else shape
        if name.startswith("module:") and shape is not None:
            across = [float(number) for number in re.findall(r"(-?[\d.]+),", shape.get("points") or "")]
            found[name.removeprefix("module:")] = (min(across) + max(across)) / 2
    return found


def in_columns(drawing: Drawing) -> list[set[str]]:
    """The boxes that stand above each other, from left to right."""
    columns: dict[int, set[str]] = defaultdict(set)
    for name, across in centres(drawing).items():
        columns[round(across)].add(name)
    return [columns[across] for across in sorted(columns)]


@pytest.fixture(scope="module")
def two_cells() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(TwoCells().eval(), torch.rand(2, STEPS, 8))


@pytest.fixture(scope="module")
def both_ways() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(BothWays().eval(), torch.rand(2, STEPS, 8))


def test_cells_in_lockstep_have_a_column_per_step(two_cells: tl.Trace) -> None:
    drawing = two_cells.draw(stack_by=True, direction="leftright", depth=1, file_format="svg")
    assert in_columns(drawing) == [{f"lower:{step}", f"upper:{step}"} for step in range(1, STEPS + 1)]
    plain = two_cells.draw(direction="leftright", depth=1, file_format="svg")
    assert in_columns(plain) != in_columns(drawing)


def test_the_packaged_encoding_is_that_diagram(two_cells: tl.Trace, tmp_path: Path) -> None:
    assert main(["model=cells", "encoding=columns", "draw.depth=1", "formats=[dot]", f"out={tmp_path}"]) == 0
    torch.manual_seed(0)
    trace = tl.trace(TwoCells().eval(), input_shape=(2, 3, 8))
    drawn = next(tmp_path.glob("*.dot")).read_text(encoding="utf-8")
    assert drawn == trace.draw(stack_by=True, direction="leftright", depth=1).dot


def test_loops_one_after_the_other_are_refused_unless_somebody_says_what_belongs_together(both_ways: tl.Trace) -> None:
    for asked in (True, "auto"):
        with pytest.raises(InvalidArgumentError, match="stack_by_auto_underivable"):
            both_ways.draw(stack_by=asked)
    drawing = both_ways.draw(stack_by=timepoint, direction="leftright", depth=1, file_format="svg")
    # The cell that reads backwards sees the last item first.
    assert in_columns(drawing) == [{f"ahead:{step}", f"back:{STEPS + 1 - step}"} for step in range(1, STEPS + 1)]
    texts = [getattr(line, "text", "") for line in drawing._scene.root]
    assert "columns: nodes with the same timepoint" in texts
    assert "aligned: same timepoint" in texts


def test_what_a_user_attached_may_be_the_column(both_ways: tl.Trace) -> None:
    for op in both_ways.ops:
        if (step := timepoint(op)) is not None:
            both_ways.annotate(op.label, {"item": step})

    def item(op: Op) -> object:
        return op.annotations.get("item")

    by_note = both_ways.draw(stack_by=item, direction="leftright", depth=1)._scene
    by_function = both_ways.draw(stack_by=timepoint, direction="leftright", depth=1)._scene
    assert by_note.columns == by_function.columns
    assert len(by_note.columns) == STEPS
    both_ways.annotations.clear()
