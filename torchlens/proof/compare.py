"""Whether two tensors are the same value, and which tensors have no values to compare."""

from __future__ import annotations

import torch
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.parameter import is_lazy

from torchlens.capture.kinds import PLAIN_TYPES

# rtol and atol by dtype. A replay calls the same kernel on the same values, so what remains is the order of sums in
# parallel kernels and another backend chosen for the same function.
_TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.complex128: (1e-7, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.complex64: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (2e-2, 1e-2),
}
# Wider than any dtype without a row, which has a handful of mantissa bits.
_COARSE = (0.15, 1e-2)


def no_values(tensor: torch.Tensor) -> str:
    """Why the values of a tensor cannot be compared, "" if they can."""
    if is_functorch_wrapped_tensor(tensor):
        return "a tensor of a function transform (vmap, grad), which is dead after its call"
    if is_lazy(tensor):
        return "a lazy parameter without a shape"
    if tensor.is_nested:
        return "a nested tensor"
    if type(tensor) not in PLAIN_TYPES:
        return f"a tensor of class {type(tensor).__name__}"
    if tensor.device.type == "meta":
        return "a tensor on the meta device"
    return ""


def same_bits(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold equal values; NaN equals NaN."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    got, want = dense(got), dense(want)
    return torch.equal(got, want) or bool(((got == want) | ((got != got) & (want != want))).all())


def difference(got: object, want: torch.Tensor) -> str:
    """What a replayed value has otherwise than the recorded one, "" for nothing."""
    if not isinstance(got, torch.Tensor):
        return f"{type(got).__name__} instead of a tensor"
    for name in ("dtype", "shape", "device", "layout"):
        mine, wanted = getattr(got, name), getattr(want, name)
        if mine != wanted:
            return f"{name} {_text(mine)} instead of {_text(wanted)}"
    if same_bits(got, want):
        return ""
    got, want = dense(got), dense(want)
    if want.is_floating_point() or want.is_complex():
        rtol, atol = _TOLERANCES.get(want.dtype, _COARSE)
        if want.element_size() == 1:
            got, want = got.float(), want.float()
        if torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
            return ""
        apart = (got - want).abs().nan_to_num(nan=float("inf")).max().item()
        return f"values up to {apart:.3g} apart, at a size of {want.abs().nan_to_num().max().item():.3g}"
    return f"{int((got != want).sum())} of {want.numel()} values"


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """A strided tensor of the same values, without gradient."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() == 1:  # compares are not defined for the float8 types
        return tensor.float()
    return tensor.resolve_conj().resolve_neg()


def _text(value: object) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value).removeprefix("torch.")
