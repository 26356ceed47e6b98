"""Pin a model to eval and no-grad for one run, put everything back, and prove it with a hash of its state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from torchlens.capture.memory import registered_modules, streams_kept
from torchlens.capture.tensors import changed


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
    flags = [(module, module.training) for _, module in registered_modules(model) if hasattr(module, "training")]
    buffers = _Buffers(model)
    try:
        with streams_kept(), torch.no_grad():
            for module, _ in flags:
                module.training = False
            yield receipt
        receipt.rng_restored = True
    finally:
        for module, training in flags:
            module.training = training
        receipt.flags_restored = len(flags)
        receipt.buffers_restored = tuple(buffers.restore())
        receipt.state_hash = state_hash(model)
        receipt.state_verified = receipt.state_hash == before


class _Buffers:
    """The buffers of a model as they were: which tensors they are, and what these hold."""

    def __init__(self, model: nn.Module) -> None:
        owners = registered_modules(model)
        self._owners = [(prefix, module, dict(module._buffers.items())) for prefix, module in owners]
        tensors = {id(b): b for _, _, held in self._owners for b in held.values() if b is not None and not is_lazy(b)}
        self._values = {key: (tensor, tensor.detach().clone()) for key, tensor in tensors.items()}

    @torch.no_grad()
    def restore(self) -> Iterator[str]:
        """Put back what changed; gives the address of each restored buffer."""
        written = {key for key, (tensor, value) in self._values.items() if changed(value, tensor)}
        for key in sorted(written):
            tensor, value = self._values[key]
            with torch.inference_mode(tensor.is_inference()):
                if tensor.shape == value.shape:
                    tensor.copy_(value)
                else:
                    tensor.data = value
        for prefix, module, held in self._owners:
            for name, tensor in held.items():
                reassigned = module._buffers.get(name) is not tensor
                if reassigned:
                    module._buffers[name] = tensor
                if reassigned or id(tensor) in written:
                    yield f"{prefix}.{name}" if prefix else name


def state_hash(model: nn.Module) -> str:
    """Hash of the state dict; a lazy parameter counts by its name only."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        if not isinstance(value, torch.Tensor) or is_lazy(value):
            continue
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        if value.layout is torch.strided and not value.is_quantized and value.device.type != "meta":
            # A copy: memory that numpy has seen cannot be resized any more.
            flat = value.detach().cpu().contiguous().clone().reshape(-1).view(torch.uint8)
            digest.update(flat.numpy().data)
    return digest.hexdigest()
