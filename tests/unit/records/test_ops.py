"""What a layer says of the shapes of its passes."""

from __future__ import annotations

import pytest

from torchlens.records.ops import LayerRecord, summarize_shapes


def passes(*shapes):
    return [[shape] for shape in shapes]


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (passes((2, 4), (2, 4)), ""),
        (passes((2, 4), (2, 3), (2, 2)), "4->2"),
        (passes((1, 4), (4, 4), (8, 4)), "1->8"),
        (passes((2, 4), (2, 2), (2, 3)), "2-4"),
        (passes((2, 4), (3, 2)), "(2, 4)->(3, 2)"),
        (passes((2, 4), (4,)), "(2, 4)->(4,)"),
        (passes((2,), ()), "(2,)->scalar"),
        (passes((2, 3), None), "(2, 3)->irregular"),
        (passes(None, None), ""),
        ([[(2,), (3,)], [(2,), (5,)]], "[1] 3->5"),
        ([[(2,), (2,)], [(2,), (2,), (2,)]], "2->3 outputs"),
        ([[], []], ""),
    ],
)
def test_shapes_that_change_are_told_in_a_few_words(shapes, text):
    assert summarize_shapes(shapes) == text


def test_a_layer_has_as_many_passes_as_nodes():
    assert LayerRecord("relu_1_2", "relu", 1, 2, (3, 5, 9)).num_passes == 3
