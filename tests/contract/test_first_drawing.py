"""The facts of the guide's first drawings, on the real model."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.examples.demo import Demo

SHAPE = (1, 3, 8, 8)


@pytest.fixture(scope="module")
def trace():
    with warnings.catch_warnings():  # once per process: another test may have been told
        warnings.simplefilter("ignore", tl.TorchLensWarning)
        return tl.trace(Demo().train(), torch.ones(SHAPE), save="none")


def facts(trace, **options):
    scene = trace.draw(**options)._scene
    return {node.name: [line for row in node.rows for line in row.lines] for node in scene.nodes}


def header(trace, **options):
    return [line.text for line in trace.draw(**options)._scene.root if getattr(line, "kind", "") == "header"]


@pytest.mark.parametrize("options", [{}, {"depth": 1}, {"show_buffers": "always"}, {"rolled": True}], ids=str)
def test_the_header_counts_the_network_whatever_is_drawn(trace, options):
    assert header(trace, **options) == ["Demo", "12 ops (19.4 KB)", "1.61K params (all trainable)"]


def test_the_names_of_the_first_drawing(trace):
    found = facts(trace)
    assert [name for name in found if not name.startswith(("input", "output"))] == [
        "conv2d_1_1", "batchnorm_1_3", "relu_1_4", "conv2d_2_5", "batchnorm_2_7", "relu_2_8", "maxpool2d_1_9",
        "maxpool2d_2_10", "mean_1_11", "linear_1_12",
    ]  # fmt: skip
    assert found["relu_1_4"][-1] == "@features.0.act"
    assert found["mean_1_11"] == ["mean_1_11", "(1, 16), 64 B", "dim=(2, 3)"]


def test_the_boxes_of_both_depths(trace):
    assert facts(trace, depth=1)["module:features:1"] == [
        "@features", "Sequential", "(1, 16, 8, 8), 4.0 KB", "8 ops + 12 buffers", "1.44K params (all trainable)",
    ]  # fmt: skip
    assert facts(trace, depth=2)["module:features.0:1"] == [
        "@features.0", "ConvBlock", "(1, 8, 8, 8), 2.0 KB", "4 ops + 6 buffers", "240 params (all trainable)",
    ]  # fmt: skip
    assert set(facts(trace, depth=3)) == set(facts(trace))


def test_the_buffers_of_a_norm_in_training(trace):
    place = "buffer:features.0.norm"
    assert list(facts(trace, show_buffers="always", module="features.0.norm")) == [
        "stub:from:conv2d_1_1", f"{place}.num_batches_tracked:1", "add_1_2", f"{place}.num_batches_tracked:2",
        f"{place}.running_mean:1", f"{place}.running_var:1", "batchnorm_1_3", f"{place}.running_mean:2",
        f"{place}.running_var:2", "stub:to:relu_1_4",
    ]  # fmt: skip
    scene = trace.draw(show_buffers="always")._scene
    names = [node.name for node in scene.nodes]
    (arrow,) = [e for e in scene.edges if names[e.source] == f"{place}.running_mean:1"]
    assert (names[arrow.target], (*arrow.head, *arrow.middle), arrow.dashed) == ("batchnorm_1_3", ("arg 3",), True)


class Odd(nn.Module):
    """A buffer made anew by assignment, one written through a view, one never read."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        for name, shape in (("memory", (2, 4)), ("unread", (3,)), ("table", (4, 4))):
            self.register_buffer(name, torch.zeros(shape))

    def forward(self, x):
        self.memory = torch.tanh(self.fc(x) + self.memory)
        row = self.table[0]
        row.add_(x.mean())
        return self.memory + self.table.sum()


def test_written_and_unread_buffers():
    scene = tl.trace(Odd(), torch.ones(2, 4), save="none").draw()._scene
    names = [node.name for node in scene.nodes]
    arrows = {(names[e.source], names[e.target]) for e in scene.edges}
    assert [name for name in names if name.startswith("buffer")] == [
        "buffer:memory:1", "buffer:memory:2", "buffer:table:1",
    ]  # fmt: skip
    assert ("tanh_1_3", "buffer:memory:2") in arrows
    # What was written through the view reaches whoever reads the buffer.
    assert {source for source, target in arrows if target == "sum_1_7"} == {"buffer:table:1", "add_2_6"}
    assert {source for source, target in arrows if target == "add_3_8"} == {"buffer:memory:2", "sum_1_7"}


def test_a_module_record_is_taken_for_its_address(trace):
    by_name = trace.draw(module="features.1").dot
    assert trace.draw(module=trace.modules["features.1"]).dot == by_name
    assert trace.draw(module=trace.data.modules[trace.data.module_of["features.1"]]).dot == by_name
    assert trace.draw(module=trace.modules[""]).dot == trace.draw().dot
