"""Every option of a recording, declared once and checked when it is made: nothing has run when one is refused.

Knows nothing of models or tensors; what a predicate is told about an output is plain names and numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, SupportsIndex, cast

from torchlens.base.errors import TorchLensError, error, fail, nearest, unknown
from torchlens.records.notes import DEFAULT_BATCH, check_batch_render
from torchlens.records.tensors import TensorSpec

SAVES = ("all", "none")
# What torch takes as a seed without turning it around.
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What a `save=` predicate is told about one node, at its call.

    kind: input, op, buffer, constant or output; func_name: bare function name, `conv2d`, or the kind; type: the op
    part of its label, `maxpool2d`; outs: geometry of every output; module: address of the innermost module, "" for the
    model itself; modules: keys of the module calls around it, outermost first, `features.0:1`; params: addresses of
    the parameters it reads; path: address of an input, output, buffer or constant. Inside a function that torch
    writes in Python the name is that of the inner call.
    """

    kind: str
    func_name: str
    type: str
    outs: tuple[TensorSpec, ...]
    module: str
    modules: tuple[str, ...]
    params: tuple[str, ...]
    is_inplace: bool
    path: str

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output, None where there is none."""
        return self.outs[0].shape if self.outs else None

    @property
    def dtype(self) -> str | None:
        """Dtype of the first output, without `torch.`."""
        return self.outs[0].dtype if self.outs else None

    @property
    def device(self) -> str | None:
        """Device of the first output."""
        return self.outs[0].device if self.outs else None

    @property
    def nbytes(self) -> int | None:
        """Bytes of all outputs together, None if one of them is unknown."""
        sizes = [spec.nbytes for spec in self.outs]
        return None if None in sizes else sum(size for size in sizes if size is not None)


Predicate = Callable[[OpFacts], object]
Save = str | Sequence[str] | Predicate


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How `tl.trace` records.

    save: which outputs are kept: "all", "none" (metadata only), a list of labels or addresses, or a predicate over
        `OpFacts`. An address keeps what the module's calls returned.
    random_seed: seed of torch, Python and numpy for the recorded forward; their streams are put back after it. Unset:
        the streams run on as in a plain call.
    warmup: plain runs before the recorded one. Random streams, parameters, buffers, attributes of the modules and the
        tensors of the input are put back after each; side effects beyond the model happen once more per run.
    out_stats: take `OutStats` of every output in passing, whether or not it is kept.
    saved_for_backward: measure what autograd keeps for the backward pass.
    input_image: the picture that the input holds, or a list of them, one per item of the batch: paths or PIL images.
        The input's node shows them.
    batch_render: how many of them: "auto" (4 at most), "all" (16 at most), "first", "first_n:k", "shape_only" (none).
    """

    save: Save = "all"
    random_seed: int | None = None
    warmup: int = 0
    out_stats: bool = False
    saved_for_backward: bool = False
    input_image: object = None
    batch_render: str = DEFAULT_BATCH

    def __post_init__(self) -> None:
        object.__setattr__(self, "save", _checked_save(self.save))
        if self.random_seed is not None:
            object.__setattr__(self, "random_seed", _whole("random_seed", self.random_seed, _MOST_SEED))
        object.__setattr__(self, "warmup", _whole("warmup", self.warmup))
        check_batch_render(self.batch_render)
        for name in ("out_stats", "saved_for_backward"):
            if not isinstance(getattr(self, name), bool):
                raise _refusal(name, getattr(self, name), "True", "False")

    @property
    def keeps_values(self) -> bool:
        """Whether any output may be kept."""
        return self.save != "none"


def capture_options(save: object = None, capture: object = None) -> CaptureOptions:
    """The options of one recording; `save` wins over the one in `capture`.

    capture: a `CaptureOptions`, a mapping of its fields, or None. Raises InvalidArgumentError[trace_save_invalid] or
    [capture_option_invalid] for a wrong value, UnknownNameError[capture_option_unknown] for a name it does not have.
    """
    if capture is None:
        options = CaptureOptions()
    elif isinstance(capture, CaptureOptions):
        options = capture
    elif isinstance(capture, Mapping):
        options = _from_mapping(cast("Mapping[object, object]", capture))
    else:
        fail(
            "capture_option_invalid",
            f"capture={capture!r} is not CaptureOptions",
            allowed=["CaptureOptions(...)", "a mapping of its fields"],
            fix="pass capture=tl.options.CaptureOptions(...)",
            got=capture,
        )
    return options if save is None else replace(options, save=cast("Any", save))


def _from_mapping(given: Mapping[object, object]) -> CaptureOptions:
    names = [field.name for field in fields(CaptureOptions)]
    for name in given:
        if name not in names:
            what = f"capture has no option {name!r}"
            raise unknown("capture_option_unknown", what, str(name), names, otherwise=f"options: {', '.join(names)}")
    return CaptureOptions(**cast("dict[str, Any]", dict(given)))


def _checked_save(save: object) -> Save:
    """The value as it is stored, a list as a tuple of names without repetition."""
    if isinstance(save, str) and save in SAVES:
        return save
    if isinstance(save, str):
        close = nearest(save, SAVES, 1)
        fix = f"perhaps you meant {close[0]!r}" if close else f"pass a list for single names: save=[{save!r}]"
        fail("trace_save_invalid", f"save={save!r} is not a way to keep values", allowed=SAVES, fix=fix, got=save)
    if isinstance(save, (list, tuple)):
        names = cast("Sequence[object]", save)
        wrong = [name for name in names if not isinstance(name, str) or not name]
        if wrong:
            fail("trace_save_invalid", f"save= lists {wrong[0]!r}, which is no label or address", got=names)
        return tuple(dict.fromkeys(cast("list[str]", names)))
    if callable(save) and not isinstance(save, type):
        return cast("Predicate", save)
    words = [*SAVES, "a list of labels or addresses", "a function of OpFacts"]
    raise error("trace_save_invalid", f"save={save!r} is not a way to keep values", allowed=words, got=save)


def _whole(name: str, value: object, most: int | None = None) -> int:
    """A whole number of at least 0."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = operator.index(value)
        if number >= 0 and (most is None or number <= most):
            return number
    raise _refusal(name, value, "a whole number of at least 0" if most is None else f"a whole number from 0 to {most}")


def _refusal(name: str, value: object, *allowed: str) -> TorchLensError:
    return error("capture_option_invalid", f"{name}={value!r} is not allowed", allowed=allowed, got=value)
