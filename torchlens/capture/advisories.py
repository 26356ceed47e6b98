"""What a reader of a trace has to know because recording could not do without it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

_PADDING = (
    "a padded nn.TransformerEncoder ran without torch's fast path, which is off while functions are watched: "
    "a plain run gives zeros at padded positions"
)


def about_call(module: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
    """What a module call does otherwise than in a plain run, "" for nothing.

    Torch's fast path for encoders turns itself off under any function mode. Its results are those of the ordinary
    path to rounding, except that positions masked as padding come out as zeros.
    """
    if not isinstance(module, nn.TransformerEncoder) or module.training or torch.is_grad_enabled():
        return ""
    mask = kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None)
    return _PADDING if mask is not None and module.enable_nested_tensor else ""
