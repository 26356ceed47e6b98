"""The verbs of the package: record a model, or record and draw it in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from torch import nn

from torchlens.analysis.recording import record
from torchlens.base.errors import fail
from torchlens.capture.advisories import warn_of_mutation
from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import EventLog
from torchlens.capture.policy import pinned
from torchlens.inputs.synthesize import synthesize
from torchlens.records.notes import DEFAULT_BATCH, attach
from torchlens.records.provenance import InputProvenance
from torchlens.settings.capture_options import CaptureOptions, capture_options
from torchlens.settings.channel_checks import measures
from torchlens.trace_view import Trace
from torchlens.viz.pictures import pngs_of

if TYPE_CHECKING:
    from typing import Unpack

    from torchlens.drawings import Drawing
    from torchlens.settings.capture_options import Save
    from torchlens.settings.keywords import DrawKeywords

# What a quick look starts from: a page, whatever the size of the model.
PRESET = (("verb:torchlens.draw", {"collapse": "auto"}),)
# Attribute of an exception that a traced forward raised: where it had come, in words.
STOPPED = "torchlens_stopped"


def trace(
    model: nn.Module,
    x: object = None,
    *,
    input_kwargs: Mapping[str, object] | None = None,
    input_shape: object = None,
    save: Save | None = None,
    capture: CaptureOptions | Mapping[str, object] | None = None,
) -> Trace:
    """Run a model once and record every op, module call, parameter and buffer.

    x: a tuple is the positional arguments, anything else the one argument. input_kwargs: keyword arguments.
    input_shape: instead of a real input, `(1, 3, 224, 224)`, a list of shapes, or a mapping keyword -> shape; values
    are random and the trace says so. save: which outputs are kept, by reference: "all" (default), "none" (metadata
    only), a list of labels or module addresses, or a predicate over `tl.options.OpFacts`; it wins over the one in
    capture: `tl.options.CaptureOptions`, or a mapping of its fields. A name in the list that comes to nothing is a
    warning [save_name_unmatched] after the run.
    The model runs in its own train/eval and grad mode, exactly as in a plain call. If forward raises, the exception
    carries what was recorded so far as `partial_trace`.
    """
    return trace_through(Recorder, model, x, input_kwargs, input_shape, capture_options(save, capture))


def trace_through(
    recorder: Callable[[EventLog], Recorder],
    model: nn.Module,
    x: object,
    input_kwargs: Mapping[str, object] | None,
    input_shape: object,
    options: CaptureOptions,
) -> Trace:
    """What `trace` does, with the calls seen by a recorder of one's own."""
    _require_module(model)
    pictures = pngs_of(options.input_image) if options.input_image is not None else ()
    args, kwargs, provenance = _arguments(model, x, input_kwargs, input_shape)
    recording, raised = record(model, args, kwargs, options=options, provenance=provenance, recorder=recorder)
    result = Trace(recording)
    _attach_pictures(result, pictures, options.batch_render)
    if raised:
        with suppress(Exception):  # a class that takes no attribute: the trace is lost, the error is not
            setattr(raised[0], STOPPED, _last_op(result))
            raised[0].partial_trace = result  # type: ignore[attr-defined]
            raised[0].add_note(
                f"torchlens: the forward stopped {_last_op(result)}; see partial_trace of this exception"
            )
        raise raised.pop()
    warn_of_mutation(recording.data)
    return result


def _attach_pictures(trace: Trace, pictures: tuple[bytes, ...], batch_render: str) -> None:
    """Pictures belong to the first input that looks like images, else to the first one."""
    if batch_render != DEFAULT_BATCH:
        trace.batch_render = batch_render
    inputs = [i for i, kind in enumerate(trace.data.nodes.kind) if kind == "input"]
    if pictures and inputs:
        shapes = {i: trace.data.nodes.outs[i][0].shape or () for i in inputs if trace.data.nodes.outs[i]}
        images = [i for i, shape in shapes.items() if len(shape) >= 3 and (1 in shape[-3:] or {3, 4} & set(shape[-3:]))]
        attach(trace.data, (images or inputs)[:1], batch=pictures)


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

    Takes the options of `Trace.draw`, with collapse="auto" unless the theme, the view or the call says otherwise.
    `drawing.receipt` says what was restored and verified. Without a path a notebook
    shows the drawing; a script writes `<ModelClass>-graph.pdf` (never over an existing file) and prints its name.
    """
    from torchlens.render.paths import free_path  # recording alone needs no drawing code
    from torchlens.render.rendered import in_notebook
    from torchlens.settled import prepare

    _require_module(model)
    unnamed = path is None and not options.get("file_format") and not in_notebook()
    if unnamed:
        path = free_path(f"{type(model).__name__}-graph", "pdf")
    saved, stats = measures([prepare(path, options, layers=PRESET).options])
    wanted = CaptureOptions(save="none", saved_for_backward=saved, out_stats=stats)
    args, kwargs, provenance = _arguments(model, x, input_kwargs, input_shape)
    with pinned(model) as receipt:
        recording, raised = record(model, args, kwargs, options=wanted, provenance=provenance)
    if raised:
        raise raised.pop()
    drawing = Trace(recording)._draw(path, options, PRESET)
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
