"""Pin a model to eval and no-grad for one run, put everything back, and prove it with a hash of its state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy


@dataclass(slots=True)
class Receipt:
    """What was restored. state_hash: blake2b-128 over names, dtypes, shapes and bytes of the state dict."""

    policy: str = "eval_no_grad_restored"
    flags_restored: int = 0
    rng_restored: bool = False
    buffers_restored: tuple[str, ...] = ()
    state_verified: bool = False
    state_hash: str = ""


@contextmanager
def pinned(model: nn.Module) -> Iterator[Receipt]:
    """Run the body with the model in eval mode and without gradients; the receipt is complete after it."""
    receipt = Receipt()
    before = state_hash(model)
    flags = [(module, module.training) for module in model.modules()]
    buffers = [(name, buffer, buffer.detach().clone()) for name, buffer in _plain_buffers(model)]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            for module, _ in flags:
                module.training = False
            yield receipt
        receipt.rng_restored = True
    finally:
        for module, training in flags:
            module.training = training
        receipt.flags_restored = len(flags)
        receipt.buffers_restored = tuple(_restore(buffers))
        receipt.state_hash = state_hash(model)
        receipt.state_verified = receipt.state_hash == before


def _plain_buffers(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [(n, b) for n, b in model.named_buffers() if not is_lazy(b)]


def _restore(buffers: list[tuple[str, torch.Tensor, torch.Tensor]]) -> Iterator[str]:
    with torch.no_grad():
        for name, buffer, before in buffers:
            if not torch.equal(buffer, before):
                buffer.copy_(before)
                yield name


def state_hash(model: nn.Module) -> str:
    """Hash of the state dict; a lazy parameter counts by its name only."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        if not isinstance(value, torch.Tensor) or is_lazy(value):
            continue
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        if value.layout is torch.strided and not value.is_quantized and value.device.type != "meta":
            flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(flat.numpy().data)
    return digest.hexdigest()
