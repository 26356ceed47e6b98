"""Kinds of tensors that have to be told apart before one is asked anything."""

from __future__ import annotations

import torch

# Any other type may answer dispatched calls with code of the user.
PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
_NO_CODE = torch._C._disabled_torch_dispatch_impl


def runs_code(kind: type) -> bool:
    """Whether tensors of a class answer at the dispatcher with code of their own."""
    return getattr(kind, "__torch_dispatch__", _NO_CODE) is not _NO_CODE


def in_transform(tensor: torch.Tensor) -> bool:
    """Whether a tensor stands for another one inside a transform of `torch.func`, and is void once that has ended."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))  # pyright: ignore[reportAttributeAccessIssue]
