"""What dotted names lead to."""

from __future__ import annotations

import pytest
import torch

from torchlens.runner.names import locate, origin


def test_names_lead_through_modules_and_attributes() -> None:
    assert locate("torch.nn.Linear.forward") is torch.nn.Linear.forward
    with pytest.raises(AttributeError):
        locate("torch.nn.Linear.nowhere")
    with pytest.raises(ImportError):
        locate("torch.nowhere.Linear")


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("torchlens.func", "torchlens.records.selectors.func"),
        ("torch.nn.Linear", "torch.nn.modules.linear.Linear"),
        ("torch.nn.functional.conv2d", "torch.nn.functional.conv2d"),
        ("torchlens.viz.nodes.Ramp", "torchlens.base.colors.Ramp"),
    ],
)
def test_what_counts_is_where_a_name_is_defined(name: str, home: str) -> None:
    assert origin(name) == home
