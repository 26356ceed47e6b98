"""The verbs of the package: record a model, or record and draw it in one call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from torch import nn

from torchlens.base.errors import fail
from torchlens.capture.policy import pinned
from torchlens.capture.session import record
from torchlens.inputs.synthesize import synthesize
from torchlens.records.provenance import InputProvenance
from torchlens.trace_view import Trace

if TYPE_CHECKING:
    from typing import Unpack

    from torchlens.drawings import Drawing
    from torchlens.settings.keywords import DrawKeywords

_SAVES = ("all", "none")
# Attribute of an exception that a traced forward raised: where it had come, in words.
STOPPED = "torchlens_stopped"


def trace(
    model: nn.Module,
    x: object = None,
    *,
    input_kwargs: Mapping[str, object] | None = None,
    input_shape: object = None,
    save: str = "all",
) -> Trace:
    """Run a model once and record every op, module call, parameter and buffer.

    x: a tuple is the positional arguments, anything else the one argument. input_kwargs: keyword arguments.
    input_shape: instead of a real input, `(1, 3, 224, 224)`, a list of shapes, or a mapping keyword -> shape; values
    are random and the trace says so. save: "all" keeps every output by reference, "none" records metadata only.
    The model runs in its own train/eval and grad mode, exactly as in a plain call. If forward raises, the exception
    carries what was recorded so far as `partial_trace`.
    """
    _require_module(model)
    if save not in _SAVES:
        fail("trace_save_invalid", f"save={save!r} is not a way to keep values", allowed=_SAVES, got=save)
    args, kwargs, provenance = _arguments(model, x, input_kwargs, input_shape)
    recording, raised = record(model, args, kwargs, keep_values=save == "all", provenance=provenance)
    result = Trace(recording)
    if raised:
        with suppress(Exception):  # a class that takes no attribute: the trace is lost, the error is not
            setattr(raised[0], STOPPED, _last_op(result))
            raised[0].partial_trace = result  # type: ignore[attr-defined]
            raised[0].add_note(
                f"torchlens: the forward stopped {_last_op(result)}; see partial_trace of this exception"
            )
        raise raised.pop()
    return result


def _last_op(trace: Trace) -> str:
    """Where a forward that raised had come: `after relu_1_2 (net.py:12)`."""
    if not len(trace):
        return "before its first op"
    last = trace.ops[-1]
    place = f" ({PurePath(last.call_site.file).name}:{last.call_site.line})" if last.call_site else ""
    return f"after {last.label}{place}"


def draw(
    model: nn.Module,
    x: object = None,
    input_shape: object = None,
    *,
    input_kwargs: Mapping[str, object] | None = None,
    path: str | Path | None = None,
    **options: Unpack[DrawKeywords],
) -> Drawing:
    """Record a model in eval mode without gradients, draw it, and put everything back.

    Takes the options of `Trace.draw`. `drawing.receipt` says what was restored and verified. Without a path a notebook
    shows the drawing; a script writes `<ModelClass>-graph.pdf` (never over an existing file) and prints its name.
    """
    from torchlens.drawings import free_path, in_notebook, prepare  # recording alone needs no drawing code

    _require_module(model)
    unnamed = path is None and not options.get("file_format") and not in_notebook()
    if unnamed:
        path = free_path(f"{type(model).__name__}-graph", "pdf")
    prepare(path, options)
    args, kwargs, provenance = _arguments(model, x, input_kwargs, input_shape)
    with pinned(model) as receipt:
        recording, raised = record(model, args, kwargs, keep_values=False, provenance=provenance)
    if raised:
        raise raised.pop()
    drawing = Trace(recording).draw(path, **options)
    drawing.receipt = receipt
    if unnamed:
        print(drawing.path)
    return drawing


def _require_module(model: object) -> None:
    if not isinstance(model, nn.Module):
        fail(
            "trace_model_invalid",
            f"the model is a {type(model).__name__}, not a torch.nn.Module",
            got=type(model).__name__,
        )


def _arguments(
    model: nn.Module, x: object, input_kwargs: Mapping[str, object] | None, input_shape: object
) -> tuple[tuple[object, ...], dict[str, object], InputProvenance]:
    given = x is not None or input_kwargs is not None
    if input_shape is not None:
        if given:
            fail("input_rung_conflict", "both a real input and input_shape= were given")
        args, kwargs, provenance = synthesize(model, input_shape)
        return args, dict(kwargs), provenance
    if not given:
        fail(
            "trace_input_missing",
            f"{type(model).__name__} was given no input",
            fix="pass the input, or input_shape=(1, 3, 224, 224)",
        )
    if x is None:
        args = ()
    else:
        args = x if isinstance(x, tuple) else (x,)
    return args, dict(input_kwargs or {}), InputProvenance("user")
