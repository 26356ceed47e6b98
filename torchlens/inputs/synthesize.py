"""Make input tensors for declared shapes: values from a local generator, so no global random stream moves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from torchlens.base.errors import fail, nearest
from torchlens.records.provenance import InputProvenance

_SEED = 0
_IDS = ("input_ids", "decoder_input_ids")
_ONES = ("attention_mask", "decoder_attention_mask")
_FLOAT_ENTRIES = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear, nn.RNNBase,
    nn.RNNCellBase, nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.LayerNorm, nn.GroupNorm,
    nn.modules.batchnorm._BatchNorm,
)  # fmt: skip
Shape = tuple[int, ...]


def synthesize(
    model: nn.Module, input_shape: object
) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor], InputProvenance]:
    """Positional and keyword tensors for declared shapes, with their provenance.

    input_shape: a tuple of positive ints is one tensor; a sequence of such tuples the positional tensors; a mapping
    binds forward's keywords. Integers below the vocabulary for id inputs and models that begin with an embedding,
    uniform [0, 1) floats of the parameters' dtype for the rest.
    Raises InputError[input_shape_invalid], [input_shape_unknown_binding] or [input_dtype_ambiguous].
    """
    generator = torch.Generator().manual_seed(_SEED)
    positional, named = _parse(model, input_shape)
    args = tuple(_tensor(model, "", shape, generator) for shape in positional)
    kwargs = {name: _tensor(model, name, shape, generator) for name, shape in named.items()}
    facts = tuple(
        (tuple(t.shape), str(t.dtype).removeprefix("torch."), str(t.device)) for t in (*args, *kwargs.values())
    )
    return args, kwargs, InputProvenance("declared", facts, "random values", _SEED)


def _parse(model: nn.Module, value: object) -> tuple[list[Shape], dict[str, Shape]]:
    if isinstance(value, Mapping):
        known = list(inspect.signature(model.forward).parameters)
        for name in value:
            if name not in known and not _takes_any_keyword(model):
                close = nearest(str(name), known)
                fix = f"did you mean {close[0]!r}?" if close else "use the names that forward takes"
                fail("input_shape_unknown_binding", f"forward has no parameter {name!r}", allowed=known, fix=fix)
        return [], {str(name): _shape(shape) for name, shape in value.items()}
    if (
        isinstance(value, Sequence)
        and value
        and isinstance(value[0], (Sequence, torch.Size))
        and not isinstance(value, str)
    ):
        return [_shape(shape) for shape in value], {}
    return [_shape(value)], {}


def _takes_any_keyword(model: nn.Module) -> bool:
    kinds = [p.kind for p in inspect.signature(model.forward).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def _shape(value: object) -> Shape:
    good = isinstance(value, (tuple, list)) and value and all(type(n) is int and n > 0 for n in value)
    if not good:
        fail("input_shape_invalid", f"input_shape={value!r} is not a shape of positive whole numbers", got=value)
    return tuple(value)  # type: ignore[arg-type]


def _tensor(model: nn.Module, name: str, shape: Shape, generator: torch.Generator) -> torch.Tensor:
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if name in _ONES:
        return torch.ones(shape, dtype=torch.int64, device=device)
    if name == "token_type_ids":
        return torch.zeros(shape, dtype=torch.int64, device=device)
    if name == "position_ids":
        return torch.arange(shape[-1], device=device).expand(shape).clone()
    table = _id_limit(model) if name in _IDS else None if name == "pixel_values" else _entry_limit(model)
    if table is not None:
        return torch.randint(table, shape, generator=generator).to(device)
    floats = (p.dtype for p in model.parameters() if p.dtype.is_floating_point)
    return torch.rand(shape, generator=generator).to(device, next(floats, torch.get_default_dtype()))


def _id_limit(model: nn.Module) -> int:
    sizes = [m.num_embeddings for m in model.modules() if isinstance(m, (nn.Embedding, nn.EmbeddingBag))]
    return min(sizes, default=2)


def _entry_limit(model: nn.Module) -> int | None:
    """Vocabulary bound if the first telling module is an embedding, None if it takes floats."""
    for module in model.modules():
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            return _id_limit(model)
        if isinstance(module, _FLOAT_ENTRIES):
            return None
    return fail(
        "input_dtype_ambiguous",
        f"nothing in {type(model).__name__} tells whether its input holds floats or ids",
        fix="pass the real input",
    )
